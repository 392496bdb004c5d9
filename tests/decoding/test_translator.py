"""Text in, text out: batches, order, odd lines, long lines, n-best, attention, scores."""

from __future__ import annotations

import logging
import math
import random
import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from search_oracles import random_model, speaks_always

from heedful.config import BOS, EOS, DecodingConfig
from heedful.decoding.search import beam_search
from heedful.decoding.translator import Translation, Translator
from heedful.errors import InputError, ModelError, UsageError
from heedful.storage.model_directory import Model, TextFacts
from heedful.text.tokenizer import Tokenizer, learn

WORDS = ["the", "a", "cat", "dog", "bird", "sees", "hears", "small", "big", "red", "house", "tree", "Katze", "größe"]


def sentence(draw: random.Random, longest: int = 12) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(1, longest)))


@pytest.fixture(scope="module")
def tokens() -> Tokenizer:
    draw = random.Random(1)
    return learn([sentence(draw) for _ in range(300)], 340)


def make(tokens: Tokenizer, seed: int = 1, text: TextFacts | None = None, **decoding: Any) -> Translator:
    """Return a random, peaked float32 model that ends sentences at various lengths."""
    transformer = random_model(seed, tokens.vocab_size, peak=2.5, N=2, d_model=32, d_ff=48, h=4)
    with torch.no_grad():
        transformer.embedding.weight_VD[EOS] *= 2.0
    settings = DecodingConfig(**({"max_extra": 8} | decoding))
    return Translator(Model(transformer.float().eval(), tokens, text or TextFacts(), settings))


@pytest.fixture(scope="module")
def translator(tokens: Tokenizer) -> Translator:
    return make(tokens)


def constant(tokens: Tokenizer, token: int) -> Translator:
    """Return a model that generates one token up to the limit."""
    transformer = speaks_always(random_model(1, tokens.vocab_size), token, never=EOS).float()
    return Translator(Model(transformer, tokens, TextFacts(), DecodingConfig(max_extra=2)))


@pytest.mark.parametrize(("beam", "count"), [(1, 100), (4, 200)])
def test_translation_is_the_same_alone_and_in_a_batch(tokens: Tokenizer, beam: int, count: int) -> None:
    """R16: the neighbours of a sentence change neither its translation nor its score."""
    draw = random.Random(7)
    lines = [sentence(draw, longest=8) for _ in range(count)]
    single = make(tokens, batch_tokens=1, max_extra=5)
    alone = [single.translate(line, beam=beam) for line in lines]
    assert len({len(translation.tokens) for translation in alone}) > 5  # the model does end, at various lengths
    for batch_tokens in (200, 4_096):
        order = draw.sample(range(len(lines)), len(lines))
        together = make(tokens, batch_tokens=batch_tokens, max_extra=5).translate([lines[i] for i in order], beam=beam)
        for i, translation in zip(order, together, strict=True):
            assert translation.text == alone[i].text
            assert translation.score == pytest.approx(alone[i].score, abs=1e-4)


def test_str_returns_a_translation_and_list_a_list(translator: Translator) -> None:
    one = translator.translate("the cat sees")
    assert isinstance(one, Translation)
    (same,) = translator.translate(["the cat sees"])
    assert same == one
    assert translator.translate([]) == []
    assert one.text == translator.model.tokenizer.decode(
        [translator.model.tokenizer._processor.piece_to_id(token) for token in one.tokens]
    )


def test_search_uses_the_models_settings(tokens: Tokenizer) -> None:
    line = "the small bird hears a dog"
    translator = make(tokens, beam=3, alpha=1.5, max_extra=2)
    source = [translator.ids(line)]
    expected = beam_search(translator.model.transformer, source, beam=3, alpha=1.5, max_extra=2)[0][0]
    assert translator.translate(line).score == expected.score
    assert translator.translate(line).text == tokens.decode(expected.ids[:-1]).replace("\n", " ").replace("\r", " ")
    wide = beam_search(translator.model.transformer, source, beam=5, alpha=0.0, max_extra=2)[0][0]
    assert translator.translate(line, beam=5, alpha=0.0).score == wide.score


def test_order_is_kept_and_empty_lines_stay_empty(translator: Translator) -> None:
    draw = random.Random(3)
    lines = [sentence(draw, longest=20) for _ in range(12)]
    expected = [translator.translate(line).text for line in lines]
    mixed = ["", *lines[:5], "   ", "", *lines[5:], "\u3000"]
    results = translator.translate(mixed)
    assert [r.text for r in results] == ["", *expected[:5], "", "", *expected[5:], ""]
    assert results[0] == Translation("", 0.0, ())


def test_surrounding_space_is_ignored(translator: Translator) -> None:
    assert translator.translate("  the cat \u3000") == translator.translate("the cat")


def test_cells_between_tabs_are_translated_one_by_one(translator: Translator) -> None:
    first, second = (one.text for one in translator.translate(["the cat", "a dog sees"]))
    lines = translator.translate(["the cat\ta dog sees", "\t the cat \t", "\t", " \tthe cat\t\ta dog sees\t "])
    expected = [f"{first}\t{second}", f"\t{first}\t", "\t", f"\t{first}\t\t{second}\t"]
    assert [line.text for line in lines] == expected
    (whole,) = translator.translate(["\tthe cat"], attention=True, n_best=2)
    assert whole.attention is not None
    assert whole.alternatives[0].text.startswith("\t")


def test_n_best(translator: Translator) -> None:
    best = translator.translate("the cat sees a dog", beam=4, n_best=3)
    found = [best, *best.alternatives]
    assert len(found) == 3
    assert [f.score for f in found] == sorted((f.score for f in found), reverse=True)
    assert len({f.tokens for f in found}) == 3
    assert translator.translate("the cat sees a dog", beam=4) == replace(best, alternatives=())


def test_wrong_settings(translator: Translator) -> None:
    with pytest.raises(UsageError, match="n-best = 5 is larger than beam = 4"):
        translator.translate("a", beam=4, n_best=5)
    with pytest.raises(UsageError, match="n-best = 2 is larger than beam = 1"):
        translator.translate("a", beam=1, n_best=2)
    for wrong in ({"beam": 0}, {"alpha": -0.1}, {"n_best": 0}):
        with pytest.raises(UsageError, match="at least"):
            translator.translate("a", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (5, "a str or a list of str, not int"),
        (None, "a str or a list of str, not None"),
        (b"the cat", "not bytes: decode it"),
        ([1], "item 0 is int"),
        (["a", None], "item 1 is None"),
        (["a", b"b"], "item 1 is bytes: decode it"),
    ],
)
def test_non_text_raises_type_error(translator: Translator, text: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        translator.translate(text)


def test_lone_surrogate_is_rejected_with_its_line_number(translator: Translator) -> None:
    with pytest.raises(InputError, match=r"line 2: character 3 is a lone surrogate \(U\+D800\)"):
        translator.translate(["fine", "ab\ud800"])
    with pytest.raises(InputError, match="line 12: "):
        translator.translate(["fine", "ab\ud800"], first_line=11)
    with pytest.raises(InputError, match=r"line 2: .* lone surrogate"):
        translator.score(["fine", "fine"], ["fine", "\udfff"])
    with pytest.raises(InputError, match=r"line 7: .* lone surrogate"):
        translator.score(["\udfff"], ["fine"], first_line=7)


@pytest.mark.parametrize("byte", ["<0x0A>", "<0x0D>"])
@pytest.mark.parametrize("beam", [1, 2])
def test_newline_from_byte_tokens_becomes_a_space(tokens: Tokenizer, byte: str, beam: int) -> None:
    token = tokens._processor.piece_to_id(byte)
    result = constant(tokens, token).translate("a cat", beam=beam)
    assert result.tokens[0] == byte
    assert "\n" not in result.text
    assert "\r" not in result.text
    assert " " in result.text


def test_lowercased_model_lowercases_input(tokens: Tokenizer) -> None:
    translator = make(tokens, text=TextFacts(lowercase=True))
    upper, lower = translator.translate(["The CAT Sees", "the cat sees"])
    assert upper == lower
    assert translator.score(["The CAT"], ["GRÖSSE"]) == translator.score(["the cat"], ["grösse"])
    assert make(tokens).translate("The CAT Sees") != lower


def test_too_long_line_is_translated_in_parts_with_a_warning(
    tokens: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    sentences = ["the cat sees a dog", "the bird hears the tree", "a big red house"]  # without ends: a long sentence
    longest = max(len(tokens.encode(one)) + 1 for one in sentences)  # each fits, no two do
    translator = make(tokens, text=TextFacts(max_length=longest))
    with caplog.at_level(logging.WARNING, logger="heedful"):
        short, long = translator.translate(["a cat", " ".join(sentences)], first_line=40)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"line 41 is longer than the training maximum of {longest} tokens; translated in 3 parts"
    )
    parts = translator.translate(sentences)
    assert long.text == " ".join(part.text for part in parts)
    assert long.score == pytest.approx(sum(part.score for part in parts), abs=1e-4)
    assert long.tokens == tuple(token for part in parts for token in part.tokens)
    alone = translator.translate("a cat")
    assert (short.text, short.tokens) == (alone.text, alone.tokens)
    assert short.score == pytest.approx(alone.score, abs=1e-4)


SEVERAL = "the cat sees.  A dog! The bird hears\u3000a tree. Big"
SENTENCES = ["the cat sees.", "A dog!", "The bird hears\u3000a tree.", "Big"]


def test_line_with_several_sentences_is_translated_sentence_by_sentence(translator: Translator) -> None:
    line = translator.translate(SEVERAL)
    alone = translator.translate(SENTENCES)
    assert line.text == "{}  {} {} {}".format(*(one.text for one in alone))
    assert line.score == pytest.approx(sum(one.score for one in alone), abs=1e-4)
    assert line.tokens == tuple(token for one in alone for token in one.tokens)
    assert [one.text for one in line.sentences] == [one.text for one in alone]
    assert alone[0].sentences == ()


def test_paragraph_model_does_not_split_lines(tokens: Tokenizer) -> None:
    paragraphs = make(tokens, text=TextFacts(sentence_per_line=False))
    whole = paragraphs.translate(SEVERAL)
    source = [paragraphs.ids(SEVERAL)]
    expected = beam_search(paragraphs.model.transformer, source, beam=4, alpha=0.6, max_extra=8)[0][0]
    assert (whole.text, whole.sentences) == (paragraphs.text(expected.ids), ())
    assert make(tokens).translate(SEVERAL, split=False).text == whole.text
    assert make(tokens).translate(SEVERAL).text != whole.text


def test_n_best_joins_sentences_rank_by_rank(translator: Translator) -> None:
    best = translator.translate("the cat. A dog.", beam=4, n_best=3)
    sentences = translator.translate(["the cat.", "A dog."], beam=4, n_best=3)
    ranks = zip(*([one, *one.alternatives] for one in sentences), strict=True)
    found = [best, *best.alternatives]
    assert [one.text for one in found] == [" ".join(one.text for one in rank) for rank in ranks]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_every_sentence_has_its_attention(translator: Translator) -> None:
    line = translator.translate(SEVERAL, attention=True)
    assert line.attention is None
    for one, source in zip(line.sentences, SENTENCES, strict=True):
        alone = translator.translate(source, attention=True)
        assert one.attention is not None
        assert alone.attention is not None
        torch.testing.assert_close(one.attention.cross, alone.attention.cross)


def test_score_never_splits(translator: Translator) -> None:
    (scored,) = translator.score([SEVERAL], [SEVERAL])
    total, count = plain_score(translator, SEVERAL, SEVERAL)
    assert scored.log_probability == pytest.approx(total, abs=1e-3)
    assert scored.tokens == count


@pytest.mark.parametrize("tokens_over", [0, 1])
def test_length_limit_is_exact(tokens: Tokenizer, caplog: pytest.LogCaptureFixture, tokens_over: int) -> None:
    line = "the cat sees a big red house"
    longest = len(tokens.encode(line)) + 1 - tokens_over
    make(tokens, text=TextFacts(max_length=longest)).translate(line)
    assert len(caplog.records) == tokens_over


def test_attention_of_the_translation(translator: Translator) -> None:
    line = "the cat sees a small dog"
    result = translator.translate(line, attention=True)
    attention = result.attention
    assert attention is not None
    assert attention.source == [*_names(translator, line), "</s>"]
    assert attention.target == [*result.tokens, "</s>"]
    S, T = len(attention.source), len(attention.target)
    assert attention.encoder.shape == (2, 4, S, S)
    assert attention.decoder.shape == (2, 4, T, T)
    assert attention.cross.shape == (2, 4, T, S)
    for weights in (attention.encoder, attention.decoder, attention.cross):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert (attention.decoder.triu(1) == 0).all()
    assert result == replace(translator.translate(line), attention=attention)
    assert translator.translate(["", line], attention=True)[0].attention is None


def _names(translator: Translator, line: str) -> list[str]:
    return translator.model.tokenizer.tokens(translator.model.tokenizer.encode(line))


def plain_score(translator: Translator, source: str, target: str) -> tuple[float, int]:
    """Return the log-probability, computed token by token from the whole prefix."""
    transformer = translator.model.transformer
    total, prefix = 0.0, [BOS]
    for token in translator.ids(target):
        with torch.no_grad():
            logits = transformer(torch.tensor([translator.ids(source)]), torch.tensor([prefix]))[0, -1].double()
        total += logits.log_softmax(dim=-1)[token].item()
        prefix.append(token)
    return total, len(prefix) - 1


@pytest.mark.parametrize("batch_tokens", [1, 60, 4_096])
def test_score_is_the_sum_of_log_probabilities(tokens: Tokenizer, batch_tokens: int) -> None:
    translator = make(tokens, seed=2, batch_tokens=batch_tokens)
    draw = random.Random(5)
    sources, targets = ([*(sentence(draw) for _ in range(15)), "", "a"] for _ in range(2))
    targets[-1] = ""
    scored = translator.score(sources, targets)
    for result, source, target in zip(scored, sources, targets, strict=True):
        total, count = plain_score(translator, source, target)
        assert result.log_probability == pytest.approx(total, abs=1e-3)
        assert result.tokens == count


def test_too_long_pair_is_not_scored(tokens: Tokenizer) -> None:
    translator = make(tokens, text=TextFacts(max_length=6))
    with pytest.raises(InputError, match=r"Line 8 has \d+ tokens, more than the training maximum of 6"):
        translator.score(["a", "a"], ["a", "the cat sees the big red house"], first_line=7)


@pytest.mark.parametrize("beam", [1, 3])
def test_nan_weights_are_reported(tokens: Tokenizer, beam: int) -> None:
    translator = make(tokens)
    with torch.no_grad():
        translator.model.transformer.embedding.weight_VD.fill_(math.nan)
    with pytest.raises(ModelError, match="NaN probabilities"):
        translator.translate(["a cat", "", "dog"], beam=beam)
    with pytest.raises(ModelError, match="NaN probabilities"):
        Translator(translator.model, "int8")
