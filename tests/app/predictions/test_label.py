"""Flat answers: one text in, one label out, as doccano and the like read it; ids of documents or their positions."""

import json

import pytest

from app.predictions import service
from app.predictions.service import AnswerTexts
from core.documents.kinds import PartRows, TextRows
from storage.repositories.datasets import Batch
from tests.app.conftest import Gateway, problem_of, publish, text_model
from tests.app.predictions.scored import model_of, rows_of


def test_the_label_of_a_text(gateway: Gateway) -> None:
    publish(gateway.store, model=text_model())
    text = "late vote vote"
    predicted = gateway.client.post("/v1/models/news/predict", json={"documents": [{"text": text}]}).json()
    probability = None if predicted["probabilities"] is None else max(predicted["probabilities"][0])
    assert gateway.client.post("/v1/models/news/label", json={"text": text}).json() == {
        "label": predicted["labels"][0],
        "probability": probability,
    }
    assert gateway.client.post("/v1/models/news/label", json={"text": "late " * 50_000}).status_code == 200


@pytest.mark.usefixtures("version")
def test_what_is_refused(gateway: Gateway) -> None:
    assert problem_of(gateway.client.post("/v1/models/news/label", json={"text": "a"}), 422)["errors"][0]["field"] in (
        "text",
        "indices",
    )
    assert (
        "did you mean 'text'?"
        in problem_of(gateway.client.post("/v1/models/news/label", json={"txt": "a"}), 422)["detail"]
    )
    problem_of(gateway.client.post("/v1/models/none/label", json={"text": "a"}), 404)


IDS: dict[str, tuple[list[list[str | None] | None], list[str] | None]] = {
    "none": ([None, None, None], None),
    "all": ([["a"], ["b", "c"], ["d"]], ["a", "b", "c", "d"]),
    "some": ([None, ["b", None], None], ["0", "b", "2", "3"]),
    "the last": ([None, [None, None], ["d"]], ["0", "1", "2", "d"]),
}


@pytest.mark.parametrize("most", [1, 2, 100])
@pytest.mark.parametrize("name", IDS)
def test_ids(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_NUMBERS", most)
    given, wanted = IDS[name]
    batches = [Batch(rows_of().between(0, n), [None] * n, ids) for n, ids in zip((1, 2, 1), given, strict=True)]
    texts = AnswerTexts(model_of(2), ["no", "yes"], lambda size: None)
    list(texts.add_each(batches))
    assert json.loads(b"".join(texts.array("ids"))) == wanted


def test_texts_stand_beside() -> None:
    """A document of other parts has none; of texts alone one may be empty."""
    given = TextRows.of(["late", ""])
    for rows, wanted in ((given, ["late", ""]), (PartRows({"text": given, "indices": rows_of(2)}), ["late", None])):
        texts = AnswerTexts(model_of(2), ["no", "yes"], lambda size: None, echo=True)
        list(texts._named([Batch(rows, [None] * 2)]))
        assert json.loads(b"".join(texts.array("texts"))) == wanted
