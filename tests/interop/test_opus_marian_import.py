"""Imported OPUS-MT directories match transformers and work in every part of heedful."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import opus_marian
import pytest
import torch
from opus_marian import FULL_SIZE, write_opus

import heedful
from heedful.config import BOS, EOS, PAD, UNK
from heedful.data.batches import Batch
from heedful.decoding.search import beam_search
from heedful.decoding.translator import Translator
from heedful.errors import ModelError, TokenizerError
from heedful.interop.marian_export import write_marian
from heedful.interop.marian_import import conversion_command, read_marian
from heedful.interop.marian_vocabulary import read_vocabulary_in_order
from heedful.storage.model_directory import Model, read_model, write_model
from heedful.text.builtin_corpus import BuiltinCorpus
from heedful.text.marian_tokenizer import MarianTokenizer
from heedful.training.loss import batch_loss, smoothed_cross_entropy

transformers = pytest.importorskip("transformers")

VARIANTS: dict[str, dict[str, Any]] = {
    "as published": {},
    "relu": {"activation_function": "relu"},
    "gelu": {"activation_function": "gelu"},
    "unscaled": {"scale_embedding": False},
    "separate source embedding": {"share_encoder_decoder_embeddings": False},
    "separate projection": {"tie_word_embeddings": False},
    "three matrices": {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    "one decoder layer": {"decoder_layers": 1},
}
LINES = [pair.source for pair in islice(BuiltinCorpus("valid", 100).pairs(), 12)]
TARGETS = [pair.target for pair in islice(BuiltinCorpus("valid", 100).pairs(), 12)]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    directory = tmp_path_factory.mktemp("opus") / "opus-mt-en-de"
    return directory, write_opus(directory)


@pytest.fixture(scope="module")
def imported(published: tuple[Path, Any]) -> Model:
    return read_marian(published[0])


def marian_ids(directory: Path) -> list[int]:
    content = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    return read_vocabulary_in_order(directory, content).marian_ids


@torch.no_grad()
def largest_difference(theirs: Any, ours: Model, directory: Path) -> float:
    """Return the largest logit difference over Marian's tokens on real sentences."""
    tokenizer = transformers.MarianTokenizer.from_pretrained(directory)
    to_theirs, differences = torch.tensor(marian_ids(directory)), []
    for source, target in zip(LINES[:4], TARGETS[:4], strict=True):
        batch = tokenizer([source], text_target=[target], return_tensors="pt")
        source_ids, target_ids = Translator(ours).ids(source), Translator(ours).target_ids(target)
        assert to_theirs[source_ids].tolist() == batch["input_ids"][0].tolist()
        assert to_theirs[target_ids].tolist() == batch["labels"][0].tolist()
        their_logits_TV = theirs(**batch).logits[0]
        our_logits_TV = ours.transformer(torch.tensor([source_ids]), torch.tensor([[BOS, *target_ids[:-1]]]))[0]
        has_own = [number for number in range(len(to_theirs)) if number != BOS]
        differences.append((our_logits_TV[:, has_own] - their_logits_TV[:, to_theirs[has_own]]).abs().max())
    return float(max(differences))


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_those_of_transformers(tmp_path: Path, variant: str) -> None:
    theirs = write_opus(tmp_path / "opus", **VARIANTS[variant])
    ours = read_marian(tmp_path / "opus")
    assert largest_difference(theirs, ours, tmp_path / "opus") < 1e-5


def test_logits_in_full_size(tmp_path: Path) -> None:
    """6 layers of 512, as in opus-mt-en-de, but with the small vocabulary."""
    theirs = write_opus(tmp_path / "opus", **FULL_SIZE)
    assert largest_difference(theirs, read_marian(tmp_path / "opus"), tmp_path / "opus") < 1e-5


@pytest.mark.parametrize("key", ["activation", "embedding_scale"])
def test_the_variants_matter(published: tuple[Path, Any], imported: Model, key: str) -> None:
    """Control: another activation or scale gives other logits."""
    from dataclasses import replace

    from heedful.storage.model_directory import with_weights

    config = replace(imported.transformer.config, **{key: {"activation": "relu", "embedding_scale": 1.0}[key]})
    transformer = with_weights(config, imported.transformer.state_dict(), published[0]).eval()
    assert largest_difference(published[1], replace(imported, transformer=transformer), published[0]) > 1e-3


def generated(theirs: Any, directory: Path, lines: list[str], beam: int, extra: int) -> list[list[int]]:
    """Return transformers' translations as heedful's ids, without length penalty."""
    tokenizer = transformers.MarianTokenizer.from_pretrained(directory)
    to_theirs = marian_ids(directory)
    ours = {number: index for index, number in reversed(list(enumerate(to_theirs)))}
    found = []
    for line in lines:
        batch = tokenizer([line], return_tensors="pt")
        [ids] = theirs.generate(
            **batch,
            num_beams=beam,
            do_sample=False,
            length_penalty=0.0,
            max_new_tokens=batch["input_ids"].shape[1] + extra,
            bad_words_ids=[[number] for number in set(to_theirs[:EOS])],
        )
        found.append([ours[number] for number in ids[1:].tolist() if ours[number] != PAD])
    return found


def test_greedy_translations_are_those_of_transformers(tmp_path: Path) -> None:
    theirs = write_opus(tmp_path / "opus", init_std=0.3)
    imported = read_marian(tmp_path / "opus")
    sources = [Translator(imported).ids(line) for line in LINES]
    found = beam_search(imported.transformer, sources, beam=1, alpha=0.0, max_extra=8)
    expected = generated(theirs, tmp_path / "opus", LINES, beam=1, extra=8)
    assert [list(best.ids) for best, *_ in found] == expected
    assert len({tuple(ids) for ids in expected}) == len(LINES)


SETTINGS = {
    "data.builtin": True,
    "data.builtin_pairs": 4_000,
    "training.steps": 300,
    "training.batch_tokens": 1_024,
    "training.optimizer": "adam",
    "training.warmup_steps": 50,
    "training.learning_rate": 0.5,
    "training.validate_every": 300,
    "training.save_every": 100,
    "training.average": 1,
    "training.threads": 1,
    "training.precision": "fp32",
    "model.dropout": 0.0,
}


@pytest.fixture(scope="module")
def trained(imported: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run that fine-tunes the imported model."""
    directory = tmp_path_factory.mktemp("trained")
    write_model(directory / "model", imported)
    heedful.train(init=directory / "model", out=directory / "run", overrides=SETTINGS)
    return directory / "run"


def test_an_imported_model_trains(trained: Path) -> None:
    log = [json.loads(line) for line in (trained / "log.jsonl").read_text().splitlines()]
    losses = [entry["nll"] for entry in log if entry["kind"] == "train"]
    assert losses[-1] < 0.6 * losses[0]
    names = {"source.spm", "target.spm", "vocab.json", "tokenizer.model"}
    assert {path.name for path in trained.iterdir()} & names == names - {"tokenizer.model"}
    assert isinstance(heedful.load(trained).model.tokenizer, MarianTokenizer)


def test_training_resumes_exactly(trained: Path, tmp_path: Path) -> None:
    """A run that was continued ends with the weights of one that was not."""
    model = trained.parent / "model"
    pairs = list(islice(BuiltinCorpus("train", 300).pairs(), 300))
    files = {}
    for side, lines in (("source", [pair.source for pair in pairs]), ("target", [pair.target for pair in pairs])):
        for name, chosen in ((side, lines[20:]), (f"valid_{side}", lines[:20])):
            (tmp_path / name).write_text("".join(f"{line}\n" for line in chosen), encoding="utf-8")
            files[f"data.{name}"] = str(tmp_path / name)
    of_files = {key: value for key, value in SETTINGS.items() if "builtin" not in key}
    for name, lengths in (("once", [6]), ("twice", [3, 6])):
        for steps in lengths:
            short = {**of_files, **files, "training.steps": steps, "training.save_every": 3, "training.warmup_steps": 3}
            heedful.train(init=model, out=tmp_path / name, overrides=short)
    once, twice = (read_model(tmp_path / name / "model").transformer.state_dict() for name in ("once", "twice"))
    assert [name for name in once if not torch.equal(once[name], twice[name])] == []


def test_beam_search_finds_what_transformers_finds(trained: Path, tmp_path: Path) -> None:
    """With equal settings.

    A translation that reaches the limit is left out: there the two give other scores.
    """
    ours = heedful.load(trained).model
    write_marian(ours, tmp_path / "exported")
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "exported").eval()
    sources = [Translator(ours).ids(line) for line in LINES]
    found = beam_search(ours.transformer, sources, beam=4, alpha=0.0, max_extra=30)
    expected = generated(theirs, tmp_path / "exported", LINES, beam=4, extra=30)
    ended = [number for number, ids in enumerate(expected) if len(ids) < len(sources[number]) + 30]
    assert len(ended) > len(LINES) / 2
    assert [list(found[number][0].ids) for number in ended] == [expected[number] for number in ended]


def test_text_of_a_translation(published: tuple[Path, Any], imported: Model) -> None:
    tokenizer = transformers.MarianTokenizer.from_pretrained(published[0])
    for target in TARGETS:
        ids = Translator(imported).target_ids(target)
        theirs = [marian_ids(published[0])[number] for number in ids]
        assert Translator(imported).text(ids) == tokenizer.decode(theirs, skip_special_tokens=True)
        assert Translator(imported).text(ids) == target


def test_settings_of_the_directory(imported: Model) -> None:
    assert (imported.text.source_language, imported.text.target_language) == ("en", "de")
    assert (imported.text.max_length, imported.decoding.beam) == (512, 6)
    assert (imported.decoding.power_alpha, imported.decoding.alpha) == (1.0, 1.333)
    config = imported.transformer.config
    assert (config.activation, config.tied_embeddings, config.output_bias) == ("swish", "all", True)


@pytest.mark.parametrize("penalty", ["much", -1.0, [1]])
def test_invalid_length_penalty_is_rejected(published: tuple[Path, Any], tmp_path: Path, penalty: object) -> None:
    directory = Path(shutil.copytree(published[0], tmp_path / "opus"))
    (directory / "generation_config.json").write_text(json.dumps({"length_penalty": penalty}))
    with pytest.raises(ModelError, match="is not a valid model configuration"):
        read_marian(directory)


def test_language_token_goes_to_every_sentence(imported: Model) -> None:
    translator = Translator(imported)
    token = imported.tokenizer.tokens(range(imported.tokenizer.vocab_size)).index(">>deu<<")
    segmented = translator.segment("  >>deu<< The house is old. The dog sleeps.")
    assert [segment.ids[0] for segment in segmented.segments] == [token, token]
    assert [segment.text for segment in segmented.segments] == ["The house is old.", "The dog sleeps."]
    assert [segment.start for segment in segmented.segments] == [10, 28]
    assert translator.segment("The house is old.").segments[0].ids[0] != token


def test_space_after_a_language_token_is_not_translated(imported: Model) -> None:
    translator = Translator(imported)
    found = translator.translate(">>deu<< The house is old.", beam=1).text
    assert found
    assert found == found.strip()
    assert found == translator.translate(">>deu<<The house is old.", beam=1).text


def test_unknown_language_token_is_text(published: tuple[Path, Any], imported: Model) -> None:
    assert imported.tokenizer.language_prefix(">>xxx<< house") == ("", ">>xxx<< house")


def test_added_start_token_is_never_likely(imported: Model) -> None:
    source = torch.tensor([Translator(imported).ids(LINES[0])])
    with torch.no_grad():
        p_V = imported.transformer(source, torch.tensor([[BOS]]))[0, 0].softmax(dim=0)
    assert p_V[BOS] < 1e-30
    assert imported.transformer.embedding.weight_VD[[PAD, BOS]].abs().max() == 0


def test_directory_round_trip(imported: Model, tmp_path: Path) -> None:
    write_model(tmp_path / "model", imported)
    names = {"config.json", "model.safetensors", "MANIFEST.json", "source.spm", "target.spm", "vocab.json"}
    assert {path.name for path in (tmp_path / "model").iterdir()} == names
    assert_same(read_model(tmp_path / "model"), imported)
    write_model(tmp_path / "model", imported)  # it may be replaced
    (tmp_path / "model" / "vocab.json").write_text("{}")
    with pytest.raises(ModelError, match=r"vocab\.json is damaged"):
        read_model(tmp_path / "model")


def assert_same(found: Model, expected: Model) -> None:
    assert found.transformer.config == expected.transformer.config
    assert (found.text, found.decoding) == (expected.text, expected.decoding)
    before, after = expected.transformer.state_dict(), found.transformer.state_dict()
    assert before.keys() == after.keys()
    assert [name for name in before if not torch.equal(before[name], after[name])] == []
    assert isinstance(found.tokenizer, MarianTokenizer)
    assert isinstance(expected.tokenizer, MarianTokenizer)
    assert found.tokenizer.vocabulary == expected.tokenizer.vocabulary
    assert found.tokenizer.target_model == expected.tokenizer.target_model


@pytest.mark.parametrize("variant", VARIANTS)
def test_export_and_import_is_the_identity(tmp_path: Path, variant: str) -> None:
    write_opus(tmp_path / "opus", **VARIANTS[variant])
    ours = read_marian(tmp_path / "opus")
    write_marian(ours, tmp_path / "exported")
    assert_same(read_marian(tmp_path / "exported"), ours)
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "exported").eval()
    assert largest_difference(theirs, ours, tmp_path / "exported") < 1e-5


def test_older_files_name_the_shared_embedding_after_the_encoder(published: tuple[Path, Any], tmp_path: Path) -> None:
    import safetensors.torch

    directory = Path(shutil.copytree(published[0], tmp_path / "opus"))
    weights = safetensors.torch.load_file(directory / "model.safetensors")
    weights["model.encoder.embed_tokens.weight"] = weights.pop("model.shared.weight")
    safetensors.torch.save_file(weights, directory / "model.safetensors")
    assert largest_difference(published[1], read_marian(directory), directory) < 1e-5


def test_the_printed_command_converts_a_pickle_file(published: tuple[Path, Any], tmp_path: Path) -> None:
    directory = Path(shutil.copytree(published[0], tmp_path / "with space"))
    (directory / "model.safetensors").unlink()
    torch.save(published[1].state_dict(), directory / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickle file") as caught:
        read_marian(directory)
    command = conversion_command(directory)
    assert caught.value.exit_code == 3
    assert str(caught.value).endswith(command)
    assert command.startswith("python -c ")
    command = command.replace("python", sys.executable, 1)
    subprocess.run(command, shell=True, check=True, capture_output=True, env={"PATH": "", "HF_HUB_OFFLINE": "1"})
    assert largest_difference(published[1], read_marian(directory), directory) < 1e-5


def test_loss_and_gradients_with_a_bias(imported: Model) -> None:
    """The loss that avoids P × V logits agrees with the plain formula, also for the bias."""
    translator, model = Translator(imported), imported.transformer
    from heedful.data.batches import assemble
    from heedful.decoding.likelihood import teacher_forced_states

    sources, targets = map(translator.ids, LINES[:3]), map(translator.target_ids, TARGETS[:3])
    batch: Batch = assemble(list(sources), list(targets), lines=())
    results = []
    for plain in (False, True):
        model.zero_grad()
        if plain:
            states_PD, labels_P = teacher_forced_states(model, batch)
            loss = smoothed_cross_entropy(model.embedding.logits(states_PD), labels_P, 0.1)
        else:
            loss = batch_loss(model, batch, 0.1)
        loss.smoothed.backward()
        assert model.embedding.bias_V is not None
        results.append((loss.smoothed.detach(), model.embedding.bias_V.grad, model.embedding.weight_VD.grad))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    model.zero_grad()


def test_consistency_loss_with_a_bias(imported: Model) -> None:
    """The divergence is that of the model's own distributions, bias included."""
    from heedful.config import TrainingConfig
    from heedful.data.batches import assemble
    from heedful.decoding.likelihood import teacher_forced_states
    from heedful.training import consistency

    translator, model = Translator(imported), imported.transformer
    sources, targets = map(translator.ids, LINES[:3]), map(translator.target_ids, TARGETS[:3])
    batch: Batch = assemble(list(sources), list(targets), lines=())
    training = TrainingConfig(consistency=2.0)
    model.train()
    torch.manual_seed(3)
    found = consistency.consistent_loss(model, batch, training).smoothed.detach()
    torch.manual_seed(3)
    with torch.no_grad():
        whole_PD, labels_P = teacher_forced_states(model, batch)
        with consistency._words_cut(model, training.cutoff):
            cut_PD, _ = teacher_forced_states(model, batch)
        p_PV, q_PV = (model.embedding.logits(states).log_softmax(dim=1) for states in (whole_PD, cut_PD))
        divergence = (p_PV.exp() * (p_PV - q_PV)).sum()
        plain = smoothed_cross_entropy(model.embedding.logits(whole_PD), labels_P, training.label_smoothing)
    model.eval()
    assert divergence > 0
    torch.testing.assert_close(found, plain.smoothed + 2.0 * divergence, rtol=1e-4, atol=1e-3)


def test_bpe_dropout_is_refused(imported: Model) -> None:
    with pytest.raises(TokenizerError, match="bpe_dropout"):
        imported.tokenizer.encode_at_random(["house"], 0.1, 1)


def test_characters_without_a_token_are_unknown(imported: Model) -> None:
    assert UNK in imported.tokenizer.encode("日本")
    assert EOS not in imported.tokenizer.encode("日本")


def test_ctranslate2_translates_alike(imported: Model, tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    import sentencepiece

    from heedful.interop.ctranslate2_export import write_ctranslate2

    write_ctranslate2(imported, tmp_path / "out")
    engine = ctranslate2.Translator(str(tmp_path / "out"), device="cpu", intra_threads=1)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "out" / "source.spm"))
    translator = Translator(imported)
    for line in LINES[:6]:
        limit = len(translator.ids(line)) + imported.decoding.max_extra - 1
        [found] = engine.translate_batch([processor.encode(line, out_type=str)], beam_size=1, max_decoding_length=limit)
        assert found.hypotheses[0] == list(translator.translate(line, beam=1).tokens)


@pytest.mark.parametrize("variant", VARIANTS)
def test_ctranslate2_computes_every_variant(tmp_path: Path, variant: str) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    from heedful.interop.ctranslate2_export import write_ctranslate2

    write_opus(tmp_path / "opus", **VARIANTS[variant])
    ours = read_marian(tmp_path / "opus")
    write_ctranslate2(ours, tmp_path / "out")
    engine, tokens = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1), ours.tokenizer.tokens
    translator = Translator(ours)
    for source, target in zip(LINES[:3], TARGETS[:3], strict=True):
        ids = translator.target_ids(target)
        [found] = engine.score_batch([tokens(translator.ids(source)[:-1])], [tokens(ids[:-1])])
        with torch.no_grad():
            logits_TV = ours.transformer(torch.tensor([translator.ids(source)]), torch.tensor([[BOS, *ids[:-1]]]))[0]
        logits_TV[:, [PAD, UNK, BOS]] = -torch.inf  # as in the exported model
        expected = logits_TV.log_softmax(dim=-1)[range(len(ids)), ids]
        torch.testing.assert_close(torch.tensor(found.log_probs), expected, rtol=0, atol=1e-4)


def test_argos_package_translates_alike(imported: Model, tmp_path: Path) -> None:
    """Argos encodes with sentencepiece.model and decodes by joining the tokens."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    import zipfile

    import sentencepiece

    from heedful.interop.argos_export import write_argos

    write_argos(imported, tmp_path / "en_de.argosmodel")
    with zipfile.ZipFile(tmp_path / "en_de.argosmodel") as package:
        package.extractall(tmp_path)
    top = tmp_path / "translate-en_de-1_0"
    assert not list((top / "model").glob("*.spm"))
    processor = sentencepiece.SentencePieceProcessor(model_file=str(top / "sentencepiece.model"))
    engine = ctranslate2.Translator(str(top / "model"), intra_threads=1)
    translator = Translator(imported)
    for line in LINES[:3]:
        limit = len(translator.ids(line)) + imported.decoding.max_extra - 1
        [found] = engine.translate_batch([processor.encode(line, out_type=str)], beam_size=1, max_decoding_length=limit)
        joined = "".join(found.hypotheses[0]).replace("\u2581", " ").strip()
        assert joined == translator.translate(line, beam=1).text


def test_an_imported_model_is_served(imported: Model) -> None:
    from heedful.serving.app import create_app
    from heedful.serving.limits import Limits
    from heedful.serving.served_model import ServedModel
    from heedful.serving.service import TranslationService
    from local_test_client import local_client

    translator = Translator(imported)
    with local_client(create_app(TranslationService([ServedModel(translator)], Limits()))) as client:
        answer = client.post("/translate", json={"q": LINES[0], "source": "en", "target": "de"})
    assert answer.json() == {"translatedText": translator.translate(LINES[0]).text}


def test_both_engines_translate_alike(imported: Model, tmp_path: Path) -> None:
    """Two engines do not share a process, so the second one gets its own."""
    pytest.importorskip("ctranslate2")
    write_model(tmp_path / "model", imported)
    code = (
        "import heedful, sys\n"
        "translator = heedful.load(sys.argv[1], engine='ctranslate2')\n"
        "print(translator.translate(sys.argv[2], beam=1).text)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model"), LINES[0]]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert answer.strip() == Translator(imported).translate(LINES[0], beam=1).text


def test_a_token_of_one_side_alone_has_one_id(imported: Model) -> None:
    assert isinstance(imported.tokenizer, MarianTokenizer)
    assert len(set(imported.tokenizer.vocabulary.values())) == len(opus_marian.vocabulary()) + 1
