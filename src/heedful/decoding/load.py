"""`heedful.load`: a translator from a MODEL or a RUN."""

from __future__ import annotations

from pathlib import Path

from heedful.decoding.translator import Translator
from heedful.devices import pick_device
from heedful.storage.run_directory import open_model


def load(path: str | Path, *, checkpoint: str | None = None, device: str = "auto", int8: bool = False) -> Translator:
    """Load a MODEL or a RUN as a translator.

    `checkpoint` selects the model of a RUN: "averaged" (the default), "best" or "last". `int8` stores the decoder's
    weights as 8-bit integers (CPU only): less memory, nearly the same translations.
    """
    return Translator(
        open_model(Path(path), checkpoint, pick_device("cpu" if int8 and device == "auto" else device)), int8
    )
