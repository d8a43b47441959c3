"""How labels were come by, over HTTP: told with them, kept, and known of documents that the service has suggested."""

from typing import Any

import pytest

from tests.app.codecs.encodings import as_json, as_ndjson
from tests.app.conftest import NDJSON, Gateway, Start, created, problem_of, publish, suggest

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "a", "indices": [0], "label": "no", "drawn": "random"},
    {"id": "b", "indices": [1], "label": "yes", "drawn": "found"},
    {"id": "c", "indices": [0], "label": "no"},
    {"id": "d", "indices": [1], "drawn": None},
    *({"id": f"e{k}", "indices": [0, 1], "values": [1.0, k / 8]} for k in range(8)),
]


def relabel(gateway: Gateway, dataset: str, **body: Any) -> dict[str, Any]:
    return created(gateway.client.put(f"/v1/datasets/{dataset}/labels", json=body))


@pytest.mark.parametrize(("media_type", "encode"), [("application/json", as_json), (NDJSON, as_ndjson)])
def test_documents_say_it_beside_their_labels(gateway: Gateway, media_type: str, encode: Any) -> None:
    answer = gateway.client.post("/v1/datasets", content=encode(DOCUMENTS), headers={"content-type": media_type})
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["drawn"] == {"random": 1, "found": 1}
    assert gateway.client.get(f"/v1/datasets/{made['id']}").json() == made
    documents = gateway.client.post(
        "/v1/datasets", json={"documents": [{**document, "drawn": None} for document in DOCUMENTS]}
    ).json()
    assert documents["drawn"] == {}
    assert documents["sha256"] != made["sha256"]


@pytest.mark.parametrize(
    ("word", "detail"),
    [("guessed", "'guessed'; it is one of unknown, random, chosen, found"), (1, "it is one of unknown")],
)
@pytest.mark.parametrize(("media_type", "encode"), [("application/json", as_json), (NDJSON, as_ndjson)])
def test_other_words_are_refused(gateway: Gateway, media_type: str, encode: Any, word: Any, detail: str) -> None:
    body = encode([*DOCUMENTS, {"indices": [1], "label": "no", "drawn": word}])
    with gateway.unchanged():
        fault = problem_of(
            gateway.client.post("/v1/datasets", content=body, headers={"content-type": media_type}), 422
        )["errors"][0]
        assert (fault["document"], fault["field"]) == ("12", "drawn")
        assert detail in fault["detail"]


def test_beside_no_label_it_is_refused(gateway: Gateway) -> None:
    documents = [*DOCUMENTS, {"id": "x", "indices": [1], "drawn": "chosen"}]
    fault = {"document": "x", "field": "drawn", "detail": "says how a label was come by, but the document has no label"}
    assert problem_of(gateway.client.post("/v1/datasets", json={"documents": documents}), 422)["errors"] == [fault]
    assert problem_of(gateway.job(documents=documents), 422)["errors"] == [fault]


def test_labels_that_come_later_say_it_too(gateway: Gateway) -> None:
    made = gateway.upload(DOCUMENTS)
    changed = relabel(
        gateway, made["id"], labels={"a": "yes", "b": None, "d": "no"}, drawn={"d": "chosen", "c": "random"}
    )
    assert changed["drawn"] == {"random": 2, "chosen": 1}
    path = f"/v1/datasets/{made['id']}/labels"
    for drawn, fault in (
        (
            {"d": "chosen"},
            {
                "document": "d",
                "field": "drawn",
                "detail": "says how a label was come by, but the document has no label",
            },
        ),
        (
            {"a": "drawn"},
            {"document": "a", "field": "drawn", "detail": "must be one of unknown, random, chosen, found"},
        ),
        (
            {"a": ["random"]},
            {"document": "a", "field": "drawn", "detail": "must be one of unknown, random, chosen, found"},
        ),
        ({"z": "random"}, {"document": "z", "field": "id", "detail": "there is no such document"}),
    ):
        with gateway.unchanged():
            assert problem_of(gateway.client.put(path, json={"labels": {}, "drawn": drawn}), 422)["errors"] == [fault]


def test_what_was_suggested_is_known_after_a_restart(start: Start) -> None:
    gateway = start()
    publish(gateway.store)
    dataset = gateway.upload(DOCUMENTS)["id"]
    suggested = {each["id"]: each["drawn"] for each in suggest(gateway, dataset=dataset, n=4)["suggestions"]}
    unseen = next(
        document["id"] for document in DOCUMENTS if "label" not in document and document["id"] not in suggested
    )
    other = start()
    changed = relabel(other, dataset, labels=dict.fromkeys([*suggested, unseen], "yes"))
    counted = {word: list(suggested.values()).count(word) for word in set(suggested.values())}
    assert changed["drawn"] == {"random": 1 + counted.pop("random", 0), "found": 1, **counted}
    told = relabel(other, dataset, labels=dict.fromkeys(suggested, "yes"), drawn=dict.fromkeys(suggested, "found"))
    assert told["drawn"] == {"random": 1, "found": 1 + len(suggested)}
