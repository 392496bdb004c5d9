"""`heedful.load`: a translator from a MODEL or a RUN."""

from __future__ import annotations

from pathlib import Path

from heedful.decoding.translator import Translator
from heedful.devices import pick_device
from heedful.storage.run_directory import open_model


def load(path: str | Path, *, checkpoint: str | None = None, device: str = "auto", int8: bool = False) -> Translator:
    """`checkpoint`: of a RUN, "averaged" (also the default), "best" or "last".

    `int8`: the decoder's weights as 8-bit integers, on a CPU: less memory, nearly the same translations.
    """
    return Translator(
        open_model(Path(path), checkpoint, pick_device("cpu" if int8 and device == "auto" else device)), int8
    )
