"""The data of the Attention and Inside views over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from heedful.decoding.translator import Translator
from heedful.inspection.inspector import Inspector
from heedful.inspection.switched_heads import Head
from heedful.serving.app import create_app
from heedful.serving.batcher import Batcher
from heedful.serving.limits import Limits
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from local_test_client import local_client

FIELDS = {"q": "ba bo", "source": "en", "target": "de"}


@pytest.fixture
def inspecting(translator: Translator) -> Iterator[TestClient]:
    limits = Limits(attended=12, inspected_beam=4)
    with local_client(create_app(TranslationService([ServedModel(translator)], limits))) as client:
        yield client


def ask(client: TestClient, path: str = "/inspect", **fields: Any) -> Any:
    return client.post(path, json={**FIELDS, **fields})


def test_data_of_a_sentence(inspecting: TestClient, translator: Translator) -> None:
    content = ask(inspecting).json()
    expected = Inspector(translator).inspect(translator.ids("ba bo"))
    (sentence,) = content["sentences"]
    assert sentence["log_probability"] == pytest.approx(expected.log_probability, rel=1e-4)
    assert sentence["token_log_probabilities"] == pytest.approx(expected.token_log_probabilities, rel=1e-4)
    assert sentence["own_text"] == sentence["target_text"] == translator.translate("ba bo").text
    assert len(sentence["beam"]["nodes"]) == len(expected.tree.nodes)


def test_heads_are_switched_off(inspecting: TestClient, translator: Translator) -> None:
    (sentence,) = ask(inspecting, off="cross.1.1,encoder.2.3").json()["sentences"]
    expected = Inspector(translator).inspect(translator.ids("ba bo"), off={Head("cross", 0, 0), Head("encoder", 1, 2)})
    assert sentence["off"] == ["cross.1.1", "encoder.2.3"]
    assert sentence["log_probability"] == pytest.approx(expected.log_probability, rel=1e-4)
    assert sentence["all_on_log_probability"] == pytest.approx(expected.all_on_log_probability, rel=1e-4)


def test_a_translation_is_forced(inspecting: TestClient, translator: Translator) -> None:
    (sentence,) = ask(inspecting, translation="lu bo").json()["sentences"]
    ((expected, tokens),) = translator.score(["ba bo"], ["lu bo"])
    assert sentence["target_text"] == "lu bo"
    assert sentence["log_probability"] == pytest.approx(expected, abs=1e-3)
    assert len(sentence["target"]["tokens"]) == tokens


def test_contrast_and_steps(inspecting: TestClient, translator: Translator) -> None:
    inspector = Inspector(translator)
    found = inspector.inspect(translator.ids("ba bo"))
    contrast = ask(inspecting, "/inspect/contrast", position=0, other=50).json()
    expected = inspector.contrast(found.source, found.target, 0, 50)
    assert contrast["input_times_gradient"] == pytest.approx(expected.input_times_gradient, rel=1e-3, abs=1e-5)
    steps = ask(inspecting, "/inspect/steps", kind="cross", layer=1, head=2, position=0).json()["positions"]["0"]
    weights = next(step for step in steps if step["name"] == "Weights")
    assert weights["values"] == pytest.approx(found.attention.cross[1, 2, 0].tolist(), rel=1e-3)


@pytest.mark.parametrize("path", ["/attend", "/inside"])
def test_pages(inspecting: TestClient, path: str) -> None:
    assert inspecting.get(path, params=FIELDS).status_code == 200
    empty = inspecting.get(path)
    assert (empty.status_code, '"sentences": []' in empty.text) == (200, True)


@pytest.mark.parametrize(
    ("path", "fields", "said"),
    [
        ("", {"off": "cross.9.1"}, '"cross.9.1" is not a head of this model'),
        ("", {"off": ["cross.1.1"]}, "off must be a string"),
        ("", {"beam": 5}, "beam = 5 is too large; the limit is 4."),
        ("", {"beam": "x"}, 'beam must be a non-negative integer, not "x".'),
        ("", {"q": "ba " * 60}, "the limit is 12. Send a shorter sentence."),
        ("", {"translation": "ba " * 60}, "the limit is 12. Send a shorter sentence."),
        ("", {"translation": "x" * 20_000}, "translation is longer than 10,000 characters."),
        ("", {"sentence": 7}, "sentence = 7 is out of range"),
        ("/contrast", {"position": 500, "other": 4}, "position = 500 is out of range."),
        ("/contrast", {"position": 0, "other": 10**8}, "other = 100000000 is out of range."),
        ("/contrast", {"position": 0}, "missing other"),
        (
            "/steps",
            {"kind": "x", "layer": 0, "head": 0, "position": 0},
            'kind must be one of encoder, decoder, cross, not "x"',
        ),
        (
            "/steps",
            {"kind": "cross", "layer": 2, "head": 0, "position": 0},
            "layer = 2 is out of range. Choose a number from 0 to 1.",
        ),
        ("/steps", {"kind": "cross", "layer": 0, "head": 3, "position": 0}, "head = 3 is out of range."),
        ("/steps", {"kind": "encoder", "layer": 0, "head": 0, "position": 90}, "position = 90 is out of range."),
    ],
)
def test_invalid_requests_are_rejected(inspecting: TestClient, path: str, fields: dict[str, Any], said: str) -> None:
    answer = ask(inspecting, f"/inspect{path}", **fields)
    assert answer.status_code == 400, answer.text
    assert said in answer.json()["error"]


def test_a_lone_surrogate_is_rejected(inspecting: TestClient) -> None:
    body = b'{"q": "ba", "source": "en", "target": "de", "translation": "\\ud800"}'
    answer = inspecting.post("/inspect", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text


def test_inspections_wait_in_the_queue_of_translations(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    slot = Batcher.slot
    monkeypatch.setattr(Batcher, "slot", lambda self, tokens: taken.append(tokens) or slot(self, tokens))
    with local_client(create_app(TranslationService([ServedModel(translator)], Limits(waiting=1_000)))) as client:
        assert ask(client).status_code == 200
    assert taken == [250]  # a quarter of the queue
