"""Between the API and the batches: which model a request needs, its texts as sentences, and the answer to it."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Sequence
from typing import Any

from heedful.errors import InputError, UsageError
from heedful.serving.batcher import Batcher
from heedful.serving.engine import ServedModel
from heedful.serving.file_formats import EXTENSIONS
from heedful.serving.language_codes import resolve_language
from heedful.serving.limits import Limits
from heedful.serving.requests import RequestError, TranslateRequest
from heedful.serving.segmentation import Layout, html_layout, text_layout
from heedful.text.languages import language_name
from heedful.text.profiles import detect as detect_language
from heedful.views.attention_page import attended, attention_page

AUTO = "auto"


class TranslationService:
    def __init__(self, models: Sequence[ServedModel], limits: Limits) -> None:
        self.limits, self.batcher = limits, Batcher(limits.waiting)
        self.models: dict[tuple[str, str], ServedModel] = {}
        for one in models:
            if (one.source, one.target) in self.models:
                raise UsageError(
                    f"Two models translate from {one.source} to {one.target}. Serve one of them, or set "
                    "data.source_language and data.target_language when they are trained."
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
        """Languages with how sure it is, of 100; the likeliest first."""
        found = detect_language(text, self.profiles)
        if not found:
            only = next(iter(self.models))[0]  # nothing is known of any language: the first is as good as another
            found = [(only, 0.0)]
        return [{"confidence": round(100 * share, 1), "language": language} for language, share in found]

    async def translate(self, asked: TranslateRequest) -> dict[str, Any]:
        asked = self._resolved(asked)
        source, detected = asked.source, None
        if source == AUTO:
            detected = self._detected(asked)
            source = detected["language"]
        if source == asked.target and any(source in pair for pair in self.models):  # it is in that language already
            found = [[text] for text in asked.texts]
        else:
            found = await self._translations(asked, self._model(source, asked.target))
        return _answer(asked, found, detected)

    def _detected(self, asked: TranslateRequest) -> dict[str, Any]:
        """Where languages cannot be told apart, the first from which it can be translated."""
        if self.profiles:
            return self.detect("\n".join(asked.texts))[0]
        source = next((source for source, target in self.models if target == asked.target), next(iter(self.models))[0])
        return {"confidence": 0.0, "language": source}

    async def attend(self, asked: TranslateRequest) -> str:
        """The page that shows what every head attends to, for one sentence."""
        asked = self._resolved(asked)
        model = self._model(asked.source, asked.target)
        text = " ".join(" ".join(asked.texts).split())
        if (tokens := model.tokens(text)) > self.limits.attended:
            raise RequestError(f"q has {tokens:,} tokens; attention is shown for at most {self.limits.attended:,}.")

        def page() -> str:
            return attention_page(*attended(model.translator, text))

        try:
            return await self.batcher.alone(page, tokens)
        except InputError as error:
            raise RequestError(str(error)) from None

    async def _translations(self, asked: TranslateRequest, model: ServedModel) -> list[list[str]]:
        """For every text its translation and the alternatives to it."""
        # Tokenizing much text takes a while: others are answered meanwhile.
        layouts, tokens = await asyncio.to_thread(_laid_out, asked, model)
        sentences = [sentence for layout in layouts for sentence in layout.sentences]
        if sum(tokens) > self.limits.tokens:
            raise RequestError(f"q has {sum(tokens):,} tokens, more than the {self.limits.tokens:,} of a request.")
        n_best = 1 + asked.alternatives
        found = await self.batcher.translate(model.engine, sentences, tokens, n_best)
        answers, start = [], 0
        for layout in layouts:
            own = found[start : start + len(layout.sentences)]
            start += len(own)
            answers.append(_ranked(layout, own, n_best, asked.format == "html"))
        return answers

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


def _laid_out(asked: TranslateRequest, model: ServedModel) -> tuple[list[Layout], list[int]]:
    """The layout of every text, and the tokens of every sentence."""
    lay_out = html_layout if asked.format == "html" else text_layout
    layouts = [lay_out(text, model.cut) for text in asked.texts]
    return layouts, [model.tokens(sentence) for layout in layouts for sentence in layout.sentences]


def _profiles(models: Sequence[ServedModel]) -> dict[str, str]:
    """Of each language the first that a model has; none where one is missing, whose text would be taken for another."""
    profiles: dict[str, str] = {}
    for one in models:
        text = one.translator.model.text
        for language, known in ((one.source, text.source_profile), (one.target, text.target_profile)):
            if known:
                profiles.setdefault(language, known)
    languages = {language for one in models for language in (one.source, one.target)}
    return profiles if set(profiles) == languages else {}


def _ranked(layout: Layout, found: list[list[str]], n_best: int, is_html: bool) -> list[str]:
    """The text with the best translation of every sentence, then with the next best of each: none twice."""
    texts = []
    for rank in range(n_best):
        chosen = [translations[min(rank, len(translations) - 1)] for translations in found]
        texts.append(layout.filled([html.escape(text, quote=False) for text in chosen] if is_html else chosen))
    return list(dict.fromkeys(texts))


def _answer(asked: TranslateRequest, found: list[list[str]], detected: dict[str, Any] | None) -> dict[str, Any]:
    """Lists for a list of texts, and single values for one."""
    answer: dict[str, list[Any]] = {"translatedText": [best for best, *_ in found]}
    if detected:
        answer["detectedLanguage"] = [detected] * len(found)
    if asked.alternatives:
        answer["alternatives"] = [others for _, *others in found]
    return {**answer} if asked.is_list else {name: values[0] for name, values in answer.items()}
