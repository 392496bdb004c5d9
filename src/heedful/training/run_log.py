"""log.jsonl: one object a line with `step` and `kind`; TensorBoard beside it where that is installed."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from heedful.files import disk_errors
from heedful.storage.file_names import TENSORBOARD


class RunLog:
    """Appends; a line is in the file before the next step begins."""

    def __init__(self, path: Path, keep_bytes: int | None = None) -> None:
        """`keep_bytes`: the length at the checkpoint that the run goes on from; what came after is forgotten."""
        self.path = path
        with disk_errors(path):
            self._file = path.open("ab")
            if keep_bytes is not None and self._file.tell() > keep_bytes:
                self._file.truncate(keep_bytes)
                self._file.seek(0, os.SEEK_END)
            self._board = _tensorboard(path.parent / TENSORBOARD)

    def write(self, step: int, kind: str, **figures: Any) -> None:
        # Infinity and NaN are no JSON; other tools could not read the line.
        sound = {name: None if _is_wild(value) else value for name, value in figures.items()}
        line = json.dumps({"step": step, "kind": kind, **sound}, ensure_ascii=False)
        with disk_errors(self.path):
            self._file.write(line.encode("utf-8") + b"\n")
            self._file.flush()
            for name, value in figures.items():
                if self._board is not None and isinstance(value, int | float):
                    self._board.add_scalar(f"{kind}/{name}", value, step)

    def length(self) -> int:
        """Bytes so far, all of them on disk: a checkpoint remembers this."""
        with disk_errors(self.path):
            os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """On a full disk this fails as the last line did: what could not be written is tried again."""
        with disk_errors(self.path):
            self._file.close()
            if self._board is not None:
                self._board.close()


def _is_wild(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _tensorboard(directory: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(directory))


def read_log(path: Path) -> list[dict[str, Any]]:
    """All entries; a half-written last line (a killed run) is left out."""
    entries = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and {"step", "kind"} <= entry.keys():
            entries.append(entry)
    return entries
