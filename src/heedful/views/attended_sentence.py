"""The sentences of a text with what the model computed for them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from heedful.decoding.translator import Attention, Translator
from heedful.errors import InputError
from heedful.formatting import plural
from heedful.inspection.inspector import Inspection, Inspector
from heedful.inspection.switched_heads import Head
from heedful.text.text_files import check_text


class AttendedSentence(NamedTuple):
    """A sentence and a translation of it, the model's own or a given one."""

    source: str
    target: str = ""
    inspection: Inspection | None = None  # None: the sentence is listed but not shown

    @property
    def attention(self) -> Attention | None:
        return None if self.inspection is None else self.inspection.attention


def attended(
    inspector: Inspector,
    source: str,
    target: str | None = None,
    *,
    sentence: int | None = None,
    off: Collection[Head] = (),
    beam: int | None = None,
) -> list[AttendedSentence]:
    """Return every sentence of a text with its inspection.

    `sentence` selects one, counted from 1; the others then have no inspection. A text with a given translation is not
    split. `off` are attention heads to switch off.
    """
    translator = inspector.translator
    if target is not None:
        source_ids = _ids(translator, source, "TEXT", translator.ids)
        target_ids = _ids(translator, target, "`--target`", translator.target_ids)
        found = [AttendedSentence(source, target, inspector.inspect(source_ids, target_ids, off, beam))]
    else:
        found = _sentences(inspector, source, sentence, off, beam)
    if sentence is not None and not 1 <= sentence <= len(found):
        raise InputError(
            f"`--sentence {sentence}` is out of range: TEXT has {plural(len(found), 'sentence')}, counted from 1."
        )
    return found


def _sentences(
    inspector: Inspector, text: str, chosen: int | None, off: Collection[Head], beam: int | None
) -> list[AttendedSentence]:
    """Return the sentences of a text, or the selected one, inspected with translations."""
    segments = inspector.translator.segment(check_text(text, "TEXT")).segments
    if not segments:
        raise InputError("TEXT is empty. Pass at least one word.")
    found = [AttendedSentence(segment.text) for segment in segments]
    for number, segment in enumerate(segments):
        if chosen in (None, number + 1):
            inspection = inspector.inspect(segment.ids, None, off, beam)
            found[number] = AttendedSentence(segment.text, inspector.translator.text(inspection.target), inspection)
    return found


def _ids(translator: Translator, text: str, name: str, encode: Callable[[str], list[int]]) -> list[int]:
    ids = encode(check_text(text, name))
    longest = translator.model.text.max_length
    if len(ids) == 1:
        raise InputError(f"{name} is empty. Pass at least one word.")
    if len(ids) > longest:
        raise InputError(
            f"{name} has {len(ids)} tokens, more than the training maximum of {longest}. Pass a shorter text."
        )
    return ids
