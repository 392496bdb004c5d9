"""The recipes for real text: their promises, and the data that data.md lists."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from heedful import recipes
from heedful.config import Recipe
from heedful.training import autoconfig
from heedful.training.autoconfig import CorpusSize

ROOT = Path(__file__).parents[1]
CORPORA = ROOT.parent / "shared" / "data"
MULTI30K_TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
# Recipe → its corpus, the languages, what stands between the name of a set and the language, and the test sets.
RECIPES = {
    "multi30k-en-de": ("multi30k", "en", "de", ".lc.norm.tok", MULTI30K_TESTS),
    "multi30k-en-de-cased": ("multi30k", "en", "de", "", MULTI30K_TESTS),
    "multi30k-de-en": ("multi30k", "de", "en", "", MULTI30K_TESTS),
    "multi30k-en-fr": ("multi30k", "en", "fr", "", MULTI30K_TESTS),
    "tatoeba-en-de": ("tatoeba-en-de", "en", "de", "", ("test",)),
    "europarl-en-de": ("europarl-en-de", "en", "de", "", ("test",)),
}
ROW = re.compile(r"^\| `([\w./-]+\.gz)` \| `([0-9a-f]{64})` \|$", re.MULTILINE)
DIGESTS = dict(ROW.findall((ROOT / "docs" / "reference" / "data.md").read_text(encoding="utf-8")))


def path(name: str) -> Path:
    return ROOT / "recipes" / f"{name}.toml"


def built(name: str) -> Recipe:
    given = recipes.read(path(name), Path("/root"))
    return recipes.build(autoconfig.apply(given, autoconfig.choose(given, CorpusSize(29_000, 450_000), gpu=False)))


@pytest.mark.parametrize("name", RECIPES)
def test_each_reads_the_text_that_its_name_says(name: str) -> None:
    corpus, source, target, kind, tests = RECIPES[name]
    data = built(name).data
    folder = f"/root/data/{corpus}"
    assert data.source == (f"{folder}/train{kind}.{source}.gz",)
    assert data.target == (f"{folder}/train{kind}.{target}.gz",)
    assert data.valid_source == (f"{folder}/val{kind}.{source}.gz",)
    assert data.valid_target == (f"{folder}/val{kind}.{target}.gz",)
    assert (data.source_language, data.target_language) == (source, target)
    assert not data.lowercase  # cased text in and out; the published text is already lowercased
    for part in ("train", "val", *tests):
        for language in (source, target):
            assert f"{corpus}/{part}{kind}.{language}.gz" in DIGESTS


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_begins_with_its_command(name: str) -> None:
    head = path(name).read_text(encoding="utf-8").partition("[data]")[0]
    assert f"heedful train recipes/{name}.toml --data-root DIR --out runs/" in head
    assert "docs/reference/data.md" in head


def test_the_published_recipe_has_the_published_model() -> None:
    """Wu et al. 2021: shape, text, dropout, smoothing and beam of their 41.02 BLEU."""
    recipe = built("multi30k-en-de")
    model, training = recipe.model, recipe.training
    assert (model.N, model.d_model, model.d_ff, model.h) == (4, 128, 256, 4)
    assert recipe.data.vocab_size == 10_000
    assert model.dropout == 0.3
    assert training.label_smoothing == 0.1
    assert recipe.decoding.beam == 5


@pytest.mark.parametrize("name", sorted(DIGESTS))
def test_the_digests_are_those_of_the_files(name: str) -> None:
    if not (CORPORA / name).is_file():
        pytest.skip("the corpora are not here")
    assert hashlib.sha256((CORPORA / name).read_bytes()).hexdigest() == DIGESTS[name]


def test_there_are_digests_to_compare() -> None:
    assert len(DIGESTS) == 3 * 5 + 2 * 5 + 2 * 2 * 3
