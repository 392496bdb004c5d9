"""POST /translate_file, GET /download_file/<name>: file translation as in LibreTranslate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple, ParamSpec, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from heedful.serving.batcher import OverloadError
from heedful.serving.disconnects import until_disconnected
from heedful.serving.file_formats import EXTENSIONS, Document, read_document
from heedful.serving.file_store import FileStore
from heedful.serving.limits import Limits
from heedful.serving.multipart import Part, parse_multipart
from heedful.serving.openapi_schema import ERRORS, FILE, multipart
from heedful.serving.requests import RequestError, TranslateRequest, missing
from heedful.serving.service import AUTO, TranslationService

P = ParamSpec("P")
T = TypeVar("T")
_FIELDS_BYTES = 20_000  # of a form, without its file
_MOST_PARTS = 11  # of a form: its fields and one file
_TOKENS_PER_CHARACTER = 5  # at most: four bytes and a space mark
_ATTEMPTS = 10  # while the server is busy, for each part of a file after the first
_LONGEST_STEM = 100  # characters of a file's name


class FileRequest(NamedTuple):
    content: bytes
    name: str
    source: str
    target: str

    @property
    def extension(self) -> str:
        return PurePath(self.name).suffix.lower()


class FileParser:
    """One thread for the work on files, because a megabyte takes a second.

    With a thread per file, requests of other clients would wait for the GIL. A context manager.
    """

    def __enter__(self) -> FileParser:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="files")
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)

    async def run(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Run the work when its turn comes, or never if the caller is cancelled first."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(work, *given, **named))


def add_file_routes(app: FastAPI, service: TranslationService) -> None:
    """Add POST /translate_file and GET /download_file/<name>."""
    store, parser = FileStore(service.limits), FileParser()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with store, parser:
            yield

    routes = APIRouter(lifespan=lifespan)

    @routes.post("/translate_file", openapi_extra=multipart(FILE), responses=ERRORS)
    async def translate_file(request: Request) -> JSONResponse:
        body = await read_file_body(request, service.limits)
        name = await until_disconnected(request, stored_translation(request, body))
        return JSONResponse({"translatedFileUrl": str(request.url_for("download_file", name=name))})

    async def stored_translation(request: Request, body: bytes) -> str:
        """Return the download name of the translation."""
        parts = await parser.run(parse_multipart, body, request.headers.get("content-type", ""), _MOST_PARTS)
        asked = _file_request(request, parts, service.limits)
        with store.place(len(asked.content)):
            translation = await _translated(parser, service, asked)
            return await store.add(translation, _download_name(asked))

    @routes.get("/download_file/{name}", name="download_file", response_class=Response)
    async def download_file(name: str) -> Response:
        if (found := await store.get(name)) is None:
            raise HTTPException(404, f"File {name} does not exist or has expired. Translate the file again.")
        content, download_name = found
        # Always plain text, so that a browser does not run scripts of a translated page in this server's origin.
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(download_name)}",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        return Response(content, media_type="text/plain; charset=utf-8", headers=headers)

    app.include_router(routes)


async def read_file_body(request: Request, limits: Limits) -> bytes:
    """Read the form. Its bytes are counted while they arrive, and reading stops at the limit."""
    too_large = _too_large(limits)
    most = limits.file + _FIELDS_BYTES
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:18]) > most:
        raise too_large

    content_type = request.headers.get("content-type", "")
    if not content_type.lower().startswith("multipart/form-data"):
        raise missing("file")  # before anything is parsed

    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise too_large
    return bytes(body)


def _too_large(limits: Limits) -> RequestError:
    return RequestError(f"The file is larger than {limits.file:,} bytes, the limit of this server.", 413)


def _file_request(request: Request, parts: Sequence[Part], limits: Limits) -> FileRequest:
    """Return the file and the languages. Reject the request if a required API key is missing."""
    fields = {part.name: bytes(part.content).decode("utf-8", "replace") for part in parts if part.filename is None}
    request.app.state.access.check_key(request.headers, {**request.query_params, **fields})
    files = [part for part in parts if part.filename is not None]
    if len(files) > 1:
        raise RequestError("Invalid request: more than one file. Send each file in a separate request.")
    if not files or files[0].name != "file":
        raise missing("file")
    file = files[0]
    if len(file.content) > limits.file:
        raise _too_large(limits)
    for name in ("source", "target"):
        if not fields.get(name):
            raise missing(name)
    return _checked(FileRequest(bytes(file.content), file.filename or "", fields["source"], fields["target"]))


def _checked(asked: FileRequest) -> FileRequest:
    if not asked.name:
        raise RequestError("Invalid request: empty file")
    if asked.extension not in EXTENSIONS:
        raise RequestError("Invalid request: file format not supported")
    return asked


async def _translated(parser: FileParser, service: TranslationService, asked: FileRequest) -> bytes:
    """Translate the file in small requests, so that other clients are served in between."""
    document, requests = await parser.run(_read, asked, service.limits)
    translations: list[str] = []
    source = asked.source
    for texts in requests:
        part = TranslateRequest(texts, True, source, asked.target, "html" if document.is_html else "text", 0)
        answer = await _patiently(service, part, is_first=not translations)
        translations += answer["translatedText"]
        if source == AUTO and texts:  # the language is detected from the beginning of the file
            source = answer["detectedLanguage"][0]["language"]
    return await parser.run(lambda: document.filled(translations).encode("utf-8"))


def _read(asked: FileRequest, limits: Limits) -> tuple[Document, list[list[str]]]:
    """Return the document, and its texts grouped into requests.

    A document over a limit is rejected as a whole.
    """
    most = min(limits.characters, max(1, limits.tokens // _TOKENS_PER_CHARACTER))
    document = read_document(_decoded(asked), asked.extension, most)
    return document, list(_requests(document, limits, most))


def _decoded(asked: FileRequest) -> str:
    try:
        return asked.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"Invalid request: the file is not UTF-8 (byte {error.start + 1:,}). Save it as UTF-8 and send it again."
        ) from None


def _requests(document: Document, limits: Limits, most: int) -> Iterator[list[str]]:
    """Group the texts into requests; an empty document gets one, to check its languages."""
    texts: list[str] = []
    characters = 0
    for text in document.texts():
        if len(text) > limits.characters:
            raise RequestError(f"Invalid request: request ({len(text)}) exceeds text limit ({limits.characters})")
        if texts and (len(texts) == limits.texts or characters + len(text) > most):
            yield texts
            texts, characters = [], 0
        texts.append(text)
        characters += len(text)
    yield texts


async def _patiently(service: TranslationService, part: TranslateRequest, is_first: bool) -> dict[str, Any]:
    """Translate a part. A busy server rejects new files, but a started file waits."""
    for _ in range(0 if is_first else _ATTEMPTS):
        try:
            return await service.translate(part)
        except OverloadError as busy:
            await asyncio.sleep(busy.seconds)
    return await service.translate(part)


def _download_name(asked: FileRequest) -> str:
    """Return notes_de.txt for notes.txt."""
    stem = PurePath(asked.name.replace("\\", "/")).stem
    plain = "".join(one if one.isalnum() or one in "-_. " else "_" for one in stem)[:_LONGEST_STEM]
    return f"{plain}_{quote(asked.target, safe='')[:20]}{asked.extension}"
