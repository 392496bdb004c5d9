"""Inspection of one sentence for the web app, in the same queue as translations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from heedful.errors import InputError
from heedful.formatting import plural
from heedful.inspection.inspector import Inspector
from heedful.inspection.switched_heads import KINDS, Head, layers_of, parse_heads
from heedful.serving.requests import RequestError, TranslateRequest, integer_field, text_field, translate_request
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from heedful.views.attended_sentence import AttendedSentence, attended
from heedful.views.sentence_data import contrast_data, sentence_data, steps_data

T = TypeVar("T")


class InspectionRequest(NamedTuple):
    asked: TranslateRequest
    sentence: int  # counted from 1
    translation: str  # the target to inspect; "": the model's own translation
    off: str  # heads that are switched off, as `parse_heads` reads them
    beam: int | None  # None: the model's own


class _Prepared(NamedTuple):
    """A valid request: its model, text and the number of tokens that it costs."""

    model: ServedModel
    text: str
    sentence: int
    translation: str | None
    off: frozenset[Head]
    beam: int | None
    tokens: int


class InspectionService:
    """Computes the data of the Attention and Inside views."""

    def __init__(self, service: TranslationService) -> None:
        self.service, self.limits = service, service.limits
        self._inspectors: dict[int, Inspector] = {}  # by id of the served model

    def request(self, fields: Mapping[str, Any]) -> InspectionRequest:
        """Validate the fields of a request."""
        asked = translate_request(fields, self.limits)
        beam = integer_field(fields, "beam", 0)
        if beam > self.limits.inspected_beam:
            raise RequestError(f"beam = {beam} is too large; the limit is {self.limits.inspected_beam}.")
        translation = text_field(fields, "translation", "")
        if len(translation) > self.limits.characters:
            raise RequestError(f"translation is longer than {self.limits.characters:,} characters.")
        off = text_field(fields, "off", "")
        return InspectionRequest(asked, integer_field(fields, "sentence", 1), translation, off, beam or None)

    async def data(self, request: InspectionRequest) -> dict[str, Any]:
        """Return the data of the page: one sentence of the text inspected, the others listed."""

        def content(inspector: Inspector, sentences: list[AttendedSentence], _: AttendedSentence) -> dict[str, Any]:
            listed = [sentence_data(inspector, sentence) for sentence in sentences]
            return {"chosen": request.sentence, "sentences": listed}

        return await self._computed(request, content)

    async def contrast(self, request: InspectionRequest, position: int, other: int) -> dict[str, Any]:
        """Return why the token at a position was chosen rather than another."""

        def content(inspector: Inspector, _: object, sentence: AttendedSentence) -> dict[str, Any]:
            assert sentence.inspection is not None
            _require_index("position", position, len(sentence.inspection.target))
            _require_index("other", other, inspector.model.config.vocab_size)
            return contrast_data(inspector, sentence.inspection, position, other)

        return await self._computed(request, content)

    async def steps(
        self, request: InspectionRequest, kind: str, layer: int, head: int, position: int
    ) -> dict[str, Any]:
        """Return the step-by-step computation of a position at a layer and head, counted from 0."""
        if kind not in KINDS:
            raise RequestError(f'kind must be one of {", ".join(KINDS)}, not "{kind}".')

        def content(inspector: Inspector, _: object, sentence: AttendedSentence) -> dict[str, Any]:
            found, config = sentence.inspection, inspector.model.config
            assert found is not None
            _require_index("layer", layer, layers_of(kind, config))
            _require_index("head", head, config.h)
            rows = found.source if kind == "encoder" else found.target
            _require_index("position", position, len(rows))
            return steps_data(inspector, found, Head(kind, layer, head), [position])

        return await self._computed(request, content)

    async def _computed(
        self,
        request: InspectionRequest,
        content: Callable[[Inspector, list[AttendedSentence], AttendedSentence], T],
    ) -> T:
        """Inspect a sentence and compute with the result, both in the worker thread."""
        asked, model = await self.service.language_pair(request.asked)
        one = await asyncio.to_thread(self._prepared, request, model, "\n".join(asked.texts))
        inspector = self._inspectors.setdefault(id(model), Inspector(model.translator))

        def work() -> T:
            arguments = {"sentence": one.sentence, "off": one.off, "beam": one.beam}
            sentences = attended(inspector, one.text, one.translation, **arguments)  # type: ignore[arg-type]
            return content(inspector, sentences, sentences[one.sentence - 1])

        batcher = self.service.batcher
        with batcher.slot(max(one.tokens, batcher.capacity // 4)):  # it costs as much as many sentences
            return await batcher.run(work)

    def _prepared(self, request: InspectionRequest, model: ServedModel, text: str) -> _Prepared:
        """Check the sizes of a request before it enters the queue."""
        translator, sentence = model.translator, request.sentence
        try:
            off = parse_heads(request.off, translator.model.transformer.config)
            if request.translation:
                lengths = [len(translator.ids(text)), len(translator.target_ids(request.translation))]
            else:
                lengths = [len(segment.ids) for segment in translator.segment(text).segments]
        except InputError as error:
            raise RequestError(str(error)) from None
        count = 1 if request.translation else len(lengths)
        if not lengths or lengths[0] == 1:
            raise RequestError("q is empty. Send at least one sentence.")
        if not 1 <= sentence <= count:
            raise RequestError(
                f"sentence = {sentence} is out of range: q has {plural(count, 'sentence')}, counted from 1."
            )
        tokens = max(lengths) if request.translation else lengths[sentence - 1]
        most = min(self.limits.attended, translator.model.text.max_length)
        if tokens > most:
            raise RequestError(
                f"Sentence {sentence} has {tokens:,} tokens; the limit is {most:,}. Send a shorter sentence."
            )
        return _Prepared(model, text, sentence, request.translation or None, off, request.beam, tokens)


def _require_index(name: str, value: int, count: int) -> None:
    if not 0 <= value < count:
        raise RequestError(f"{name} = {value} is out of range. Choose a number from 0 to {count - 1:,}.")
