"""Ids in the answer of a prediction: the documents' own, and positions for documents without one."""

import json

import pytest

from app.predictions import service
from app.predictions.service import AnswerTexts
from storage.repositories.datasets import Batch
from tests.app.predictions.test_scoring import model_of, rows_of

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
    assert texts.has_ids == (wanted is not None)
