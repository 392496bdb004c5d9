"""Every way heedful can say no.

HeedfulError                    one message for a person; `exit_code` is the command line's answer
├── UsageError             2    a wrong option, or options that do not go together
│   └── ConfigError        2    a recipe: unknown key, wrong type, value out of range, rules between keys
├── InputError             3    what was given to read
│   ├── CorpusError        3    text files: missing, empty, not UTF-8, unequal sides (names file:line)
│   ├── TokenizerError     3    a tokenizer that cannot be learnt, read or used
│   │   └── VocabularyTooSmallError 3    fewer tokens asked for than the text has characters
│   ├── ModelError         3    a MODEL directory: missing, damaged, of another format
│   ├── CheckpointError    3    a RUN: no valid checkpoint, or it began with something else
│   └── NonFiniteError     3    the loss or a gradient is not a number
├── MachineError           4    disk full, out of memory
└── Interrupted      130/143    a signal, after saving
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HeedfulError(Exception):
    """Base of all: the message says what was wrong, what was given, what is allowed, what to do."""

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
