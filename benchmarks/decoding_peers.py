"""The same model in each contender of the decoding benchmark: heedful, CTranslate2, Hugging Face's Marian.

`CONTENDERS` maps a name to the function that builds it. The function takes the model's directory and a number of
threads, and returns `decode(sources, search)`: token ids with the end symbol in, ids without it out. Each contender is
used as its documentation shows. The end of the file has the text and, if none is given, the model.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import heedful
from heedful.config import BOS, EOS, PAD, UNK
from heedful.decoding.projection_kernels import Precision
from heedful.errors import HeedfulError

sys.path.append(str(Path(__file__).parents[1] / "tests" / "model"))  # marian_oracle: the tests' oracle

Sentences = list[list[int]]


@dataclass(frozen=True)
class Text:
    name: str
    sources: Sentences  # token ids with EOS, shortest first
    references: list[str]  # in the same order


class Search(NamedTuple):
    beam: int
    alpha: float  # each toolkit's own length penalty: heedful uses GNMT's, the others divide by lengthᵅ


Decode = Callable[[Sentences, Search], Sentences]
TOGETHER = 64  # sentences per batch; heedful counts tokens instead (decoding.batch_tokens)


class NotOffered(Exception):
    """This machine, or this version of a contender, cannot decode that way."""


def most_tokens(sources: Sentences, max_extra: int) -> int:
    """Return the limit of a batch, the end symbol included. heedful has one per sentence, the others one per batch."""
    return max(map(len, sources)) + max_extra


def heedful_decode(
    path: Path, threads: int, precision: Precision = "fp32", engine: str = "heedful", in_batches: bool = True
) -> Decode:
    """Decode as `heedful translate` does between tokenization and detokenization."""
    import torch

    from heedful.allocator import keep_memory
    from heedful.engines.choice import Use
    from heedful.engines.load import load_all

    torch.set_num_threads(threads)
    keep_memory()
    try:
        [translator], choice = load_all([path], Use(in_batches), None, "cpu", precision, engine)
    except HeedfulError as error:
        raise NotOffered(str(error)) from None
    print(choice, file=sys.stderr)

    def decode(sources: Sentences, search: Search) -> Sentences:
        found = translator.search(sources, beam=search.beam, alpha=search.alpha)
        return [list(hypotheses[0].ids[:-1]) for hypotheses in found]

    return decode


def ctranslate2_decode(path: Path, threads: int, compute_type: str) -> Decode:
    """CTranslate2 takes and returns the names of tokens. The look-up costs microseconds per batch, and is counted."""
    import ctranslate2

    from heedful.interop.ctranslate2_export import write_ctranslate2

    model = heedful.load(path, device="cpu").model
    names = model.tokenizer.tokens(range(model.tokenizer.vocab_size))
    ids = {name: number for number, name in enumerate(names)}
    with tempfile.TemporaryDirectory() as directory:
        write_ctranslate2(model, Path(directory) / "model")
        translator = ctranslate2.Translator(
            f"{directory}/model", device="cpu", compute_type=compute_type, inter_threads=threads, intra_threads=1
        )
    extra = model.decoding.max_extra

    def decode(sources: Sentences, search: Search) -> Sentences:
        found = translator.translate_batch(
            [[names[number] for number in source[:-1]] for source in sources],  # CTranslate2 adds EOS
            beam_size=search.beam,
            length_penalty=search.alpha,
            min_decoding_length=0,
            max_input_length=0,
            max_batch_size=TOGETHER,  # CTranslate2 sorts by length itself
            max_decoding_length=most_tokens(sources, extra) - 1,  # EOS does not count
        )
        return [[ids[name] for name in result.hypotheses[0]] for result in found]

    return decode


def ctranslate2_float32(path: Path, threads: int) -> Decode:
    return ctranslate2_decode(path, threads, "float32")


def ctranslate2_int8(path: Path, threads: int) -> Decode:
    return ctranslate2_decode(path, threads, "int8")


def marian_model(transformer: Any, positions: int = 1_024) -> Any:
    """Return `transformers.MarianMTModel` with the same weights in float32 and its default attention."""
    import transformers
    from marian_oracle import marian_weights

    from heedful.interop.marian_export import marian_config

    theirs = transformers.MarianMTModel(transformers.MarianConfig(**marian_config(transformer.config, positions)))
    theirs.load_state_dict(marian_weights(transformer, positions))
    theirs.eval()
    return theirs


def marian_decode(path: Path, threads: int) -> Decode:
    """Call `generate` with its KV cache, without the tokens that heedful never says."""
    import torch

    from heedful.data.batches import pad

    torch.set_num_threads(threads)
    model = heedful.load(path, device="cpu").model
    theirs, extra = marian_model(model.transformer), model.decoding.max_extra

    def decode(sources: Sentences, search: Search) -> Sentences:
        """Split the sources into batches, which `generate` does not do; they come in the order of their lengths."""
        parts = (sources[start : start + TOGETHER] for start in range(0, len(sources), TOGETHER))
        return [said for part in parts for said in generated(part, search)]

    @torch.inference_mode()
    def generated(sources: Sentences, search: Search) -> Sentences:
        source_BS = pad(sources)
        found = theirs.generate(
            source_BS,
            attention_mask=(source_BS != PAD).long(),
            do_sample=False,
            num_beams=search.beam,
            max_new_tokens=most_tokens(sources, extra),
            suppress_tokens=[PAD, UNK, BOS],
            **({"length_penalty": search.alpha} if search.beam > 1 else {}),
        )
        return [[number for number in said if number not in (PAD, BOS, EOS)] for said in found.tolist()]

    return decode


HEEDFUL, HEEDFUL_BF16, HEEDFUL_INT8 = "heedful", "heedful, bf16", "heedful, int8"
AUTO_BATCHES, AUTO_SINGLE = "heedful, --engine auto (batches)", "heedful, --engine auto (one sentence)"
CT2, CT2_INT8, HF = "CTranslate2 float32", "CTranslate2 int8", "Marian, generate (transformers)"
CONTENDERS: dict[str, Callable[[Path, int], Decode]] = {
    HEEDFUL: heedful_decode,
    HEEDFUL_BF16: partial(heedful_decode, precision="bf16"),
    HEEDFUL_INT8: partial(heedful_decode, precision="int8"),
    AUTO_BATCHES: partial(heedful_decode, engine="auto", in_batches=True),
    AUTO_SINGLE: partial(heedful_decode, engine="auto", in_batches=False),
    CT2: ctranslate2_float32,
    CT2_INT8: ctranslate2_int8,
    HF: marian_decode,
}


def read_text(translator: Any, data_root: Path | None, sentences: int) -> Text:
    from heedful import grammar
    from heedful.text.corpus import Corpus

    if data_root is None:
        name = "the built-in corpus"
        pairs = [(pair.english, pair.german) for pair in grammar.pairs("test", sentences)]
    else:
        name = "Multi30k, test 2016"
        files = [str(data_root / "data" / "multi30k" / f"test_2016_flickr.{side}.gz") for side in ("en", "de")]
        every = Corpus.of((files[0],), (files[1],), "test").pairs()
        pairs = [(pair.source, pair.target) for pair in islice(every, sentences)]
    found = sorted(((translator.ids(source), target) for source, target in pairs), key=lambda pair: len(pair[0]))
    return Text(f"{name}, {len(found):,} sentences", [ids for ids, _ in found], [target for _, target in found])


def small_model(directory: Path, quick: bool) -> Path:
    """Train a model of the built-in corpus that ends its sentences, in minutes. A quick one says next to nothing."""
    shape = {"model.N": 2, "model.d_model": 128, "model.d_ff": 512, "model.h": 4, "model.dropout": 0.1}
    steps = 100 if quick else 1_500
    run = heedful.train(
        out=directory / "run",
        overrides={
            **shape,
            "data.builtin": True,
            "data.builtin_pairs": 3_000 if quick else 20_000,
            "training.steps": steps,
            "training.validate_every": steps,
        },
        device="cpu",
    )
    return run.path
