"""The translation service: select the model, segment the texts, translate and join."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from heedful.errors import InputError, UsageError
from heedful.serving.batcher import Batcher
from heedful.serving.documents import Document, HtmlDocument, TextDocument
from heedful.serving.file_formats import EXTENSIONS
from heedful.serving.language_codes import resolve_language
from heedful.serving.limits import Limits
from heedful.serving.requests import RequestError, TranslateRequest
from heedful.serving.served_model import ServedModel
from heedful.serving.word_alignment import align_words
from heedful.text.language_detection import detect as detect_language
from heedful.text.languages import language_name
from heedful.text.text_segments import by_rank

AUTO = "auto"


class TranslationService:
    def __init__(self, models: Sequence[ServedModel], limits: Limits) -> None:
        self.limits, self.batcher = limits, Batcher(limits.waiting)
        self.models: dict[tuple[str, str], ServedModel] = {}
        for one in models:
            if (one.source, one.target) in self.models:
                raise UsageError(
                    f"Two models translate from {one.source} to {one.target}. Serve only one of them, or set the "
                    "languages of the other, for example MODEL:en:fr."
                )
            self.models[one.source, one.target] = one
        self.profiles = _profiles(models)

    def languages(self) -> list[dict[str, Any]]:
        codes = dict.fromkeys(code for pair in self.models for code in pair)
        return [
            {
                "code": code,
                "name": language_name(code),
                "targets": [target for source, target in self.models if source == code],
            }
            for code in codes
        ]

    def settings(self, suggestions: bool = False) -> dict[str, Any]:
        source, target = next(iter(self.models))
        return {
            "apiKeys": False,
            "charLimit": self.limits.characters,
            "filesTranslation": True,
            "frontendTimeout": 500,
            "keyRequired": False,
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
            "suggestions": suggestions,
            "supportedFilesFormat": list(EXTENSIONS),
        }

    def detect(self, text: str) -> list[dict[str, Any]]:
        """Return the languages with confidence in percent, most likely first."""
        found = detect_language(text, self.profiles)
        if not found:
            found = [(next(iter(self.models))[0], 0.0)]  # without profiles every language is a guess
        return [{"confidence": round(100 * share, 1), "language": language} for language, share in found]

    async def translate(self, asked: TranslateRequest) -> dict[str, Any]:
        asked = self._resolved(asked)
        source, detected = asked.source, None
        if source == AUTO:
            detected = await asyncio.to_thread(self._detected, asked)
            source = detected["language"]
        if source == asked.target and any(source in pair for pair in self.models):  # already in that language
            found = [[text] for text in asked.texts]
        else:
            found = await self._translations(asked, self._model(source, asked.target))
        return _answer(asked, found, detected)

    def _detected(self, asked: TranslateRequest) -> dict[str, Any]:
        """Return the detected language, or without profiles the target's first source language."""
        if self.profiles:
            return self.detect("\n".join(asked.texts))[0]
        source = next((source for source, target in self.models if target == asked.target), next(iter(self.models))[0])
        return {"confidence": 0.0, "language": source}

    async def language_pair(self, asked: TranslateRequest) -> tuple[TranslateRequest, ServedModel]:
        """Return the request with its languages resolved, and the model for them."""
        asked = self._resolved(asked)
        if asked.source == AUTO:
            detected = await asyncio.to_thread(self._detected, asked)
            asked = asked._replace(source=detected["language"])
        return asked, self._model(asked.source, asked.target)

    async def _translations(self, asked: TranslateRequest, model: ServedModel) -> list[list[str]]:
        """Return the translation of every text, followed by its alternatives."""
        # In a thread, because tokenizing a long text would block other requests.
        documents = await asyncio.to_thread(_documents, asked, model)
        sources = [segment.ids for document in documents for segment in document.segments]
        if (tokens := sum(map(len, sources))) > self.limits.tokens:
            raise RequestError(
                f"q has {tokens:,} tokens; the limit is {self.limits.tokens:,} per request. Split the text."
            )
        with self.batcher.slot(tokens):  # until the last word is aligned
            found = iter(await self.batcher.translate(model.engine, sources, 1 + asked.alternatives))
            answers = []
            for document in documents:
                ranked = by_rank([next(found) for _ in document.segments]) or [[]]
                # The same text may occur at several ranks.
                answers.append(list(dict.fromkeys([await self._filled(document, row, model) for row in ranked])))
            return answers

    async def _filled(self, document: Document, translations: list[list[int]], model: ServedModel) -> str:
        aligned = {}
        for number in document.to_align:  # one at a time, so that batches of other requests run in between
            align = partial(align_words, model.translator, document.segments[number], translations[number])
            aligned[number] = await self.batcher.run(align)
        return await asyncio.to_thread(document.fill, translations, aligned)

    def _resolved(self, asked: TranslateRequest) -> TranslateRequest:
        codes = {AUTO, *(code for pair in self.models for code in pair)}
        return asked._replace(
            source=resolve_language(asked.source, codes), target=resolve_language(asked.target, codes - {AUTO})
        )

    def _model(self, source: str, target: str) -> ServedModel:
        if model := self.models.get((source, target)):
            return model
        codes = {code for pair in self.models for code in pair}
        for code in (source, target):
            if code not in codes:
                raise RequestError(f"{code} is not supported")
        raise RequestError(
            f"{language_name(target)} ({target}) is not available as a target language from "
            f"{language_name(source)} ({source})"
        )


def _documents(asked: TranslateRequest, model: ServedModel) -> list[Document]:
    kind = HtmlDocument if asked.format == "html" else TextDocument
    try:
        return [kind(text, model.translator) for text in asked.texts]
    except InputError as error:
        raise RequestError(str(error)) from None


def _profiles(models: Sequence[ServedModel]) -> dict[str, str]:
    """Return one profile per language, or none if any is missing, to avoid misclassification."""
    profiles: dict[str, str] = {}
    for one in models:
        text = one.translator.model.text
        for language, known in ((one.source, text.source_profile), (one.target, text.target_profile)):
            if known:
                profiles.setdefault(language, known)
    languages = {language for one in models for language in (one.source, one.target)}
    return profiles if set(profiles) == languages else {}


def _answer(asked: TranslateRequest, found: list[list[str]], detected: dict[str, Any] | None) -> dict[str, Any]:
    """Return the response: lists for a list of texts, single values for one text."""
    answer: dict[str, list[Any]] = {"translatedText": [best for best, *_ in found]}
    if detected:
        answer["detectedLanguage"] = [detected] * len(found)
    if asked.alternatives:
        answer["alternatives"] = [others for _, *others in found]
    return {**answer} if asked.is_list else {name: values[0] for name, values in answer.items()}
