"""The HTTP API, as LibreTranslate clients use it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient

from heedful.decoding.translator import Translator
from heedful.errors import ModelError, UsageError
from heedful.serving.app import create_app
from heedful.serving.limits import Limits
from heedful.serving.served_model import ServedModel
from heedful.serving.service import TranslationService
from local_test_client import local_client


def translated(client: TestClient, **fields: Any) -> Any:
    answer = client.post("/translate", json={"source": "en", "target": "de", **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_single_text_and_list_of_texts(client: TestClient) -> None:
    assert translated(client, q="a b. C d.\n\ne") == {"translatedText": "A B. C D.\n\nE"}
    assert translated(client, q=["a", "", "b"]) == {"translatedText": ["A", "", "B"]}
    assert translated(client, q=" ") == {"translatedText": " "}


def test_from_a_language_to_itself(client: TestClient) -> None:
    assert translated(client, q="a", target="EN") == {"translatedText": "a"}


def test_missing_profile_disables_detection(served: ServedModel, translator: Translator) -> None:
    """Otherwise French could be taken for English and returned unchanged."""
    text = replace(
        translator.model.text, source_language="fr", target_language="en", source_profile="", target_profile=""
    )
    other = ServedModel(Translator(replace(translator.model, text=text)))
    other.engine = served.engine
    with local_client(create_app(TranslationService([served, other], Limits()))) as client:
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


def test_html_is_translated_as_its_text_is(translator: Translator) -> None:
    """Wherever the model puts the tags, the text is that of the sentence without them."""
    with local_client(create_app(TranslationService([ServedModel(translator)], Limits()))) as client:
        html = "<p>ba <b>bo <i>ka</i></b> lu.  Mi<br>ta</p><pre>ra</pre>"
        found = translated(client, q=html, format="html", alternatives=1)
        for text, rank in ((found["translatedText"], 0), (found["alternatives"][0], 1)):
            plain = translator.translate("ba bo ka lu.  Mi ta", n_best=2)
            expected = [plain, *plain.alternatives][rank].text
            assert unescape(re.sub("<[^>]*>", "", text.removesuffix("<pre>ra</pre>"))) == expected
            assert re.findall("<[^>]*>", text)[0] == "<p>"
            assert sorted(re.findall("<[^>]*>", text)) == sorted(re.findall("<[^>]*>", html))


def test_deeply_nested_html_is_translated(client: TestClient) -> None:
    fields = {"q": "<b>" * 3_000, "source": "en", "target": "de", "format": "html"}
    answer = client.post("/translate", json=fields)
    assert answer.status_code == 200


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


def test_detection_without_profiles_has_zero_confidence(served: ServedModel) -> None:
    text = replace(served.translator.model.text, source_profile="", target_profile="")
    bare = ServedModel(Translator(replace(served.translator.model, text=text)))
    bare.engine = served.engine
    with local_client(create_app(TranslationService([bare], Limits()))) as client:
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
    assert "# TYPE heedful_batches_total counter\nheedful_batches_total 1.0" in page


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"source": "xx"}, "xx is not supported"),
        ({"target": "xx"}, "xx is not supported"),
        ({"source": "de", "target": "en"}, "English (en) is not available as a target language from German (de)"),
        ({"q": 3}, "q must be a string or a list of strings."),
    ],
)
def test_rejected_requests_get_json_errors(client: TestClient, fields: dict[str, Any], said: str) -> None:
    answer = client.post("/translate", json={"q": "a", "source": "en", "target": "de", **fields})
    assert (answer.status_code, answer.json()) == (400, {"error": said})


def test_other_errors_are_json(client: TestClient) -> None:
    for answer, status in (
        (client.get("/nothing"), 404),
        (client.get("/translate"), 405),
        (client.post("/translate", content=b"x" * 1_000_001), 413),
        (client.post("/translate", content=b"x", headers={"Content-Type": "image/png"}), 415),
        (client.get("/attend", params={"q": "ba " * 70, "source": "en", "target": "xx"}), 400),
        (client.post("/attend", json={"q": "ba", "source": "en", "target": "de"}), 405),
    ):
        assert answer.status_code == status
        assert set(answer.json()) == {"error"}


def test_body_limit_without_content_length(client: TestClient) -> None:
    chunks = (b"x" * 100_000 for _ in range(11))
    assert client.post("/translate", content=chunks).status_code == 413


def test_tokens_of_a_request_are_limited(served: ServedModel) -> None:
    text = "one two three."
    tokens = len(served.translator.ids(text))
    for limit, status in ((tokens, 200), (tokens - 1, 400)):
        with local_client(create_app(TranslationService([served], Limits(tokens=limit)))) as client:
            answer = client.post("/translate", json={"q": text, "source": "en", "target": "de"})
            assert answer.status_code == status, answer.text


class Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [(ModelError("Its weights are damaged."), "Its weights are damaged."), (ValueError("secret"), "ValueError")],
)
def test_internal_error_is_500_without_details(served: ServedModel, error: Exception, said: str) -> None:
    served.engine = Failing(error)
    with local_client(create_app(TranslationService([served], Limits())), raise_server_exceptions=False) as client:
        answer = client.post("/translate", json={"q": "a", "source": "en", "target": "de"})
        assert answer.status_code == 500
        assert said in answer.json()["error"]
        assert "secret" not in answer.text
        assert client.get("/health").status_code == 200


def test_busy_server_answers_503_with_retry_after(served: ServedModel) -> None:
    service = TranslationService([served], Limits(waiting=100))
    with local_client(create_app(service)) as client:
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
    with local_client(create_app(TranslationService([served, other], Limits()))) as client:
        assert [one["targets"] for one in client.get("/languages").json()] == [["de"], ["fr"], []]
        assert translated(client, q="a", source="de", target="fr") == {"translatedText": "A"}


def embedded(page: str) -> Any:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


@pytest.fixture
def attending(translator: Translator) -> Iterator[TestClient]:
    with local_client(create_app(TranslationService([ServedModel(translator)], Limits()))) as client:
        yield client


def attend(client: TestClient, **fields: Any) -> Any:
    return client.get("/attend", params={"q": "ba bo", "source": "en", "target": "de", **fields})


def test_attention_page_url(attending: TestClient, translator: Translator) -> None:
    page = attend(attending)
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    (sentence,) = embedded(page.text)["sentences"]
    assert (sentence["source_text"], sentence["target_text"]) == ("ba bo", translator.translate("ba bo").text)
    assert attend(attending, source="auto").status_code == 200


def test_attention_page_offers_all_sentences_and_shows_one(attending: TestClient, translator: Translator) -> None:
    content = embedded(attend(attending, q="ba bo. Ka lu!  Mi", sentence=2).text)
    assert content["chosen"] == 2
    assert [one["source_text"] for one in content["sentences"]] == ["ba bo.", "Ka lu!", "Mi"]
    assert [one.get("target_text") for one in content["sentences"]] == [None, translator.translate("Ka lu!").text, None]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"q": " "}, "q is empty"),
        ({"q": "ba " * 200}, "the limit is 20. Send a shorter sentence."),
        ({"sentence": 2}, "sentence = 2 is out of range: q has 1 sentence, counted from 1."),
        ({"sentence": 0}, "sentence = 0 is out of range"),
        ({"sentence": "x"}, 'sentence must be a non-negative integer, not "x".'),
        ({"target": "xx"}, "xx is not supported"),
    ],
)
def test_attention_page_rejects_invalid_requests(translator: Translator, fields: dict[str, Any], said: str) -> None:
    with local_client(create_app(TranslationService([ServedModel(translator)], Limits(attended=20)))) as client:
        answer = attend(client, **fields)
        assert answer.status_code == 400
        assert said in answer.json()["error"]


def test_openapi_description_lists_every_route(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert set(described["paths"]["/translate"]["post"]["requestBody"]["content"]) == {
        "application/json",
        "application/x-www-form-urlencoded",
    }


@pytest.mark.parametrize("name", ["q", "source", "target", "format"])
def test_a_lone_surrogate_in_any_field_is_400(client: TestClient, name: str) -> None:
    fields = {"q": "a", "source": "en", "target": "de", "format": "text", name: "x\n\ud800"}
    body = json.dumps(fields).encode("ascii")
    answer = client.post("/translate", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]
