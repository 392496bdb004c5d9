"""`heedful.load`: a translator from a MODEL or a RUN."""

from __future__ import annotations

from pathlib import Path

from heedful.decoding.translator import Translator
from heedful.devices import pick_device
from heedful.storage.run_directory import open_model


def load(path: str | Path, *, checkpoint: str | None = None, device: str = "auto") -> Translator:
    """`checkpoint`: of a RUN, "averaged" (also the default), "best" or "last"."""
    return Translator(open_model(Path(path), checkpoint, pick_device(device)))
