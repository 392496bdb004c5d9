"""Every exception that heedful raises.

HeedfulError                    base class: one message for the user, and an exit code
├── UsageError             2    a wrong option, or options that exclude each other
│   └── ConfigError        2    a recipe: unknown key, wrong type, value out of range
├── InputError             3    unusable input
│   ├── CorpusError        3    text files: missing, empty, not UTF-8, unequal sides
│   ├── TokenizerError     3    a tokenizer that cannot be trained, read or used
│   │   └── VocabularyTooSmallError 3    data.vocab_size is below the number of characters
│   ├── ModelError         3    a MODEL directory: missing, damaged or in another format
│   ├── CheckpointError    3    a RUN: no valid checkpoint, or started with other settings
│   └── NonFiniteError     3    the loss or a gradient is NaN or infinite
├── MachineError           4    disk full, out of memory, port in use
└── Interrupted      130/143    SIGINT or SIGTERM; training saves first
"""

from __future__ import annotations

from collections.abc import Iterable


class HeedfulError(Exception):
    """Base class of all errors.

    The message says what happened, what is allowed and what to do next.
    """

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
    """Raised when data.vocab_size is below `required`, the number of distinct characters."""

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
    """Raised after saving or cleaning up; the exit code is 128 + signal, as in a shell."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means out of memory, as Python, torch or CUDA words it."""
    if isinstance(error, MemoryError):
        return True
    words = ("not enough memory", "can't allocate memory", "Cannot allocate memory", "out of memory")
    return isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in words)


def cause(error: Exception) -> str:
    """Return the reason to name after a colon: one clause, no path, capital or full stop."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    if isinstance(error, KeyError):
        return f'key "{error.args[0]}" is missing'
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start + 1:,}"
    if isinstance(error, TypeError | AttributeError):  # from indexing parsed JSON of another structure
        return "its content has an unexpected structure"
    if "set_int_max_str_digits" in str(error):  # advice for programmers, from int()
        return "a number has too many digits"
    return str(error).rstrip(".")


def as_sentence(error: Exception) -> str:
    """Return the cause of an error, with a full stop unless it ends in a question mark."""
    message = cause(error)
    return message if message.endswith("?") else f"{message}."


def nearest(word: str, allowed: Iterable[str]) -> str:
    """Return ' Did you mean "x"?' for a close allowed name, otherwise all allowed names."""
    import difflib  # slow to import, and needed only here

    names = sorted(allowed)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f' Did you mean "{close[0]}"?'
    return f" Allowed: {', '.join(names)}."
