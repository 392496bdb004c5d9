"""Every exception that heedful raises.

HeedfulError                    base class: one message for the user, and an exit code
├── UsageError             2    a wrong option, or options that exclude each other
│   └── ConfigError        2    a recipe: unknown key, wrong type, value out of range
├── InputError             3    unusable input
│   ├── CorpusError        3    text files: missing, empty, not UTF-8, unequal sides
│   ├── TokenizerError     3    a tokenizer that cannot be learned, read or used
│   │   └── VocabularyTooSmallError 3    data.vocab_size is below the characters of the text
│   ├── ModelError         3    a MODEL directory: missing, damaged or in another format
│   ├── CheckpointError    3    a RUN: no valid checkpoint, or started with other settings
│   └── NonFiniteError     3    the loss or a gradient is NaN or infinite
├── MachineError           4    disk full, out of memory
└── Interrupted      130/143    SIGINT or SIGTERM, after saving
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HeedfulError(Exception):
    """Base class of all errors. The message says what happened, what is allowed and what to do next."""

    exit_code = 1


class UsageError(HeedfulError):
    exit_code = 2


class ConfigError(UsageError):
    pass


class InputError(HeedfulError):
    exit_code = 3


class CorpusError(InputError):
    pass


class TokenizerError(InputError):
    pass


class VocabularyTooSmallError(TokenizerError):
    """The text has more different characters than tokens were asked for; `required` would do."""

    def __init__(self, message: str, required: int) -> None:
        super().__init__(message)
        self.required = required


class ModelError(InputError):
    pass


class CheckpointError(InputError):
    pass


class NonFiniteError(InputError):
    pass


class MachineError(HeedfulError):
    exit_code = 4


class Interrupted(HeedfulError):
    """Raised after the run was saved; 128 + the signal's number, as shells have it."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


def is_out_of_memory(error: BaseException) -> bool:
    """Python, torch's CPU allocator (in two wordings) and CUDA each say it in their own way."""
    if isinstance(error, MemoryError):
        return True
    words = ("not enough memory", "can't allocate memory", "Cannot allocate memory", "out of memory")
    return isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in words)


def nearest(word: str, allowed: Iterable[str]) -> str:
    """' Did you mean "x"?' where something allowed is near, otherwise the list of what is allowed."""
    names = sorted(allowed)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f' Did you mean "{close[0]}"?'
    return f" Allowed: {', '.join(names)}."
