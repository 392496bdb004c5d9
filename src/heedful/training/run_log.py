"""log.jsonl: an object per line with `step` and `kind`; TensorBoard events if installed."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from heedful.atomic_files import disk_errors
from heedful.storage.file_names import TENSORBOARD


class RunLog:
    """Append entries; each is in the file before the next step starts."""

    def __init__(self, path: Path, keep_bytes: int | None = None) -> None:
        """Open the log and truncate it to `keep_bytes`, its size at the resumed checkpoint."""
        self.path = path
        with disk_errors(path):
            self._file = path.open("ab")
            if keep_bytes is not None and self._file.tell() > keep_bytes:
                self._file.truncate(keep_bytes)
                self._file.seek(0, os.SEEK_END)
            self._board = _tensorboard(path.parent / TENSORBOARD)

    def write(self, step: int, kind: str, **figures: Any) -> None:
        """Append an entry."""
        # JSON has no infinity and no NaN; other tools could not read the line.
        finite = {name: None if _is_non_finite(value) else value for name, value in figures.items()}
        line = json.dumps({"step": step, "kind": kind, **finite}, ensure_ascii=False)
        with disk_errors(self.path):
            self._file.write(line.encode("utf-8") + b"\n")
            self._file.flush()
            for name, value in figures.items():
                if self._board is not None and isinstance(value, int | float):
                    self._board.add_scalar(f"{kind}/{name}", value, step)

    def length(self) -> int:
        """Flush the log to disk and return its size in bytes, which a checkpoint stores."""
        with disk_errors(self.path):
            os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the log.

        On a full disk this raises, because it retries the entry that could not be written.
        """
        with disk_errors(self.path):
            self._file.close()
            if self._board is not None:
                self._board.close()


def _is_non_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _tensorboard(directory: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(directory))


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return all entries, without a last line that a killed run left incomplete."""
    entries = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and {"step", "kind"} <= entry.keys():
            entries.append(entry)
    return entries
