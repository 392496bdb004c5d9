"""What a server takes on, and what it does not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Each is the most that is accepted; one more is refused before any work is done for it."""

    body: int = 1_000_000  # bytes of a request
    texts: int = 100  # of a request
    characters: int = 10_000  # of a request, all its texts together
    tokens: int = 8_000  # of a request, all its texts together; a character may be several (docs/serving.md)
    attended: int = 64  # tokens of a sentence whose attention is shown: the page grows with their square
    file: int = 1_000_000  # bytes of a file to translate
    files: int = 100  # translated files that are kept, and files in translation
    files_bytes: int = 50_000_000  # of all translated files that are kept
    file_seconds: float = 600.0  # that a translated file is kept
    suggestions_bytes: int = 100_000_000  # of the file of suggestions
    alternatives: int = 5  # beside the best translation
    waiting: int = 16_000  # tokens of all the requests that wait or are translated
    connections: int = 500  # at once
    receive_seconds: float = 20.0  # for a request to come, whole; and for a new connection to say something
    idle_seconds: float = 20.0  # between a connection's requests
    send_seconds: float = 20.0  # that a client may leave what is ready for it
