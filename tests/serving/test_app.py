"""The API as LibreTranslate's clients use it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from heedful.decoding.translator import Translator
from heedful.errors import ModelError, UsageError
from heedful.serving.app import create_app
from heedful.serving.engine import ServedModel
from heedful.serving.limits import Limits
from heedful.serving.service import TranslationService


def translated(client: TestClient, **fields: Any) -> Any:
    answer = client.post("/translate", json={"source": "en", "target": "de", **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_text_and_a_list_of_texts(client: TestClient) -> None:
    assert translated(client, q="a b. C d.\n\ne") == {"translatedText": "A B. C D.\n\nE"}
    assert translated(client, q=["a", "", "b"]) == {"translatedText": ["A", "", "B"]}
    assert translated(client, q=" ") == {"translatedText": " "}


def test_from_a_language_to_itself(client: TestClient) -> None:
    assert translated(client, q="a", target="EN") == {"translatedText": "a"}


def test_a_profile_that_is_missing_is_no_reason_to_guess(served: ServedModel, translator: Translator) -> None:
    """French could be taken for English, and come back as it is."""
    text = replace(
        translator.model.text, source_language="fr", target_language="en", source_profile="", target_profile=""
    )
    other = ServedModel(Translator(replace(translator.model, text=text)))
    other.engine = served.engine
    with TestClient(create_app(TranslationService([served, other], Limits()))) as client:
        found = translated(client, q="the dog and the cat", source="auto", target="en")
        assert found == {
            "translatedText": "THE DOG AND THE CAT",
            "detectedLanguage": {"confidence": 0.0, "language": "fr"},
        }


def test_forms(client: TestClient) -> None:
    answer = client.post("/translate", data={"q": "grün & blau", "source": "en", "target": "de"})
    assert answer.json() == {"translatedText": "GRÜN & BLAU"}
    fields = {name: (None, value) for name, value in {"q": "a", "source": "en", "target": "de"}.items()}
    assert client.post("/translate", files=fields).json() == {"translatedText": "A"}


def test_alternatives(client: TestClient) -> None:
    assert translated(client, q="a. B.", alternatives=2) == {
        "translatedText": "A. B.",
        "alternatives": ["A.! B.!", "A.!! B.!!"],
    }
    assert translated(client, q=["a"], alternatives=1) == {"translatedText": ["A"], "alternatives": [["A!"]]}


def test_html(client: TestClient) -> None:
    found = translated(client, q="<b>a &amp; b</b>", format="html", alternatives=1)
    assert found == {"translatedText": "<b>A &amp; B</b>", "alternatives": ["<b>A &amp; B!</b>"]}


def test_detection(client: TestClient) -> None:
    found = client.post("/detect", json={"q": "the dog and the cat"}).json()
    assert [one["language"] for one in found] == ["en", "de"]
    assert found[0]["confidence"] > 90
    assert found[0]["confidence"] + found[1]["confidence"] == pytest.approx(100)
    answer = translated(client, q="the dog and the cat", source="auto")
    assert answer == {"translatedText": "THE DOG AND THE CAT", "detectedLanguage": found[0]}
    answer = translated(client, q=["der Hund und die Katze"], source="auto")
    assert answer["translatedText"] == ["der Hund und die Katze"]  # it is in that language already
    assert answer["detectedLanguage"][0]["language"] == "de"


def test_a_model_that_knows_no_profiles_is_not_sure(served: ServedModel) -> None:
    text = replace(served.translator.model.text, source_profile="", target_profile="")
    bare = ServedModel(Translator(replace(served.translator.model, text=text)))
    bare.engine = served.engine
    with TestClient(create_app(TranslationService([bare], Limits()))) as client:
        assert client.post("/detect", json={"q": "x"}).json() == [{"confidence": 0.0, "language": "en"}]
        assert translated(client, q="x", source="auto")["translatedText"] == "X"


def test_facts(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == Limits().characters
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert "<textarea" in client.get("/").text


def test_metrics(client: TestClient) -> None:
    translated(client, q="abc")
    client.get("/nothing/here")
    page = client.get("/metrics").text
    assert 'heedful_requests_total{path="/translate",status="200"} 1.0' in page
    assert 'heedful_requests_total{path="other",status="404"} 1.0' in page
    assert "heedful_characters_total 3.0" in page
    assert "heedful_queued_tokens 0.0" in page


def test_other_sites_may_ask(client: TestClient) -> None:
    answer = client.get("/languages", headers={"Origin": "http://example.org"})
    assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"source": "xx"}, "xx is not supported"),
        ({"target": "xx"}, "xx is not supported"),
        ({"source": "de", "target": "en"}, "English (en) is not available as a target language from German (de)"),
        ({"q": 3}, "q must be a text or a list of texts."),
    ],
)
def test_what_is_refused_is_said_in_json(client: TestClient, fields: dict[str, Any], said: str) -> None:
    answer = client.post("/translate", json={"q": "a", "source": "en", "target": "de", **fields})
    assert (answer.status_code, answer.json()) == (400, {"error": said})


def test_other_errors_are_json_too(client: TestClient) -> None:
    for answer, status in (
        (client.get("/nothing"), 404),
        (client.get("/translate"), 405),
        (client.post("/translate", content=b"x" * 1_000_001), 413),
        (client.post("/translate", content=b"x", headers={"Content-Type": "image/png"}), 415),
        (client.post("/attend", json={"q": "ba " * 70, "source": "en", "target": "de"}), 400),
    ):
        assert answer.status_code == status
        assert set(answer.json()) == {"error"}


def test_a_body_without_a_length_is_counted_as_it_comes(client: TestClient) -> None:
    chunks = (b"x" * 100_000 for _ in range(11))
    assert client.post("/translate", content=chunks).status_code == 413


def test_tokens_of_a_request_are_limited(served: ServedModel) -> None:
    text = "one two three."
    tokens = served.tokens(text)
    for limit, status in ((tokens, 200), (tokens - 1, 400)):
        with TestClient(create_app(TranslationService([served], Limits(tokens=limit)))) as client:
            answer = client.post("/translate", json={"q": text, "source": "en", "target": "de"})
            assert answer.status_code == status, answer.text


class Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def search(self, sentences: list[str], n_best: int) -> list[list[str]]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [(ModelError("Its weights are damaged."), "Its weights are damaged."), (ValueError("secret"), "ValueError")],
)
def test_a_failure_is_500_and_says_no_more_than_it_should(served: ServedModel, error: Exception, said: str) -> None:
    served.engine = Failing(error)
    with TestClient(create_app(TranslationService([served], Limits())), raise_server_exceptions=False) as client:
        answer = client.post("/translate", json={"q": "a", "source": "en", "target": "de"})
        assert answer.status_code == 500
        assert said in answer.json()["error"]
        assert "secret" not in answer.text
        assert client.get("/health").status_code == 200


def test_busy_is_503_with_the_time_to_come_again(served: ServedModel) -> None:
    service = TranslationService([served], Limits(waiting=100))
    with TestClient(create_app(service)) as client:
        service.batcher.tokens = 100
        answer = client.post("/translate", json={"q": "a", "source": "en", "target": "de"})
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert client.get("/health").status_code == 200


def test_two_models_of_one_pair_are_refused(served: ServedModel) -> None:
    with pytest.raises(UsageError, match="Two models translate from en to de"):
        TranslationService([served, served], Limits())


def test_several_models(served: ServedModel, translator: Translator) -> None:
    text = replace(translator.model.text, source_language="de", target_language="fr")
    other = ServedModel(Translator(replace(translator.model, text=text)))
    other.engine = served.engine
    with TestClient(create_app(TranslationService([served, other], Limits()))) as client:
        assert [one["targets"] for one in client.get("/languages").json()] == [["de"], ["fr"], []]
        assert translated(client, q="a", source="de", target="fr") == {"translatedText": "A"}


def test_the_attention_page_and_its_refusals(translator: Translator) -> None:
    with TestClient(create_app(TranslationService([ServedModel(translator)], Limits()))) as client:
        fields = {"q": "ba bo", "source": "en", "target": "de"}
        page = client.post("/attend", data=fields)
        assert page.status_code == 200
        assert "What every head attends to" in page.text
        assert client.post("/attend", data={**fields, "q": " "}).status_code == 400
        assert client.post("/attend", data={**fields, "q": "ba " * 100}).status_code == 400


def test_the_description_names_what_there_is(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert set(described["paths"]["/translate"]["post"]["requestBody"]["content"]) == {
        "application/json",
        "application/x-www-form-urlencoded",
    }
