"""Pages of documents over HTTP: as they were sent, filtered, ordered, with predictions of a model."""

import csv
import io
import json
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from storage.queue.claims import DocumentClaims
from tests.app.conftest import NDJSON, Gateway, annotate, problem_of, publish, publish_several, summary
from tests.app.documents.listing import documents, every_id, ids

TEXTS = ["Free ENTRY now", "see you at ÉCOLE", "entry", "", "freeentry", "lunch?", "a\nb", "école fermée"]


UNSAID: dict[str, Any] = {"skipped": False, "by": None, "people": {}, "notes": {}, "flagged": False}
"""Fields of a document of which nobody has said anything."""


def refused(gateway: Gateway, dataset: str, **query: Any) -> str:
    return str(problem_of(gateway.client.get(f"/v1/datasets/{dataset}/documents", params=query), 422)["detail"])


@pytest.fixture
def texts(gateway: Gateway) -> str:
    lines: list[dict[str, Any]] = [{"id": f"t{k}", "text": text} for k, text in enumerate(TEXTS)]
    lines[0] |= {"label": "spam", "drawn": "random"}
    return str(gateway.upload(lines)["id"])


@pytest.fixture
def vectors(gateway: Gateway) -> str:
    """By the model of ``publish`` the score of document k is 2 k / 10 - 1."""
    return str(
        gateway.upload([{"id": f"v{k}", "indices": [0, 1], "values": [1.0, 2 * k / 10]} for k in range(1, 11)])["id"]
    )


def test_documents_come_as_they_were_sent(gateway: Gateway, texts: str) -> None:
    found = documents(gateway, texts)
    assert found["next"] is None
    assert [each["text"] for each in found["documents"]] == TEXTS
    said = {"label": "spam", "drawn": "random", **UNSAID}
    assert found["documents"][0] == {"id": "t0", "text": TEXTS[0], **said}
    assert found["documents"][1] == {"id": "t1", "text": TEXTS[1], "label": None, "drawn": None, **UNSAID}


@pytest.mark.parametrize("document", [{"indices": [3, 70], "values": [0.1, -2.5]}, {"features": {"b": 0.1, "a": 3.0}}])
def test_numbers_come_as_they_were_sent(gateway: Gateway, document: dict[str, Any]) -> None:
    dataset = str(gateway.upload([document, document])["id"])
    for number, each in enumerate(documents(gateway, dataset)["documents"]):
        assert each == {"id": str(number), **document, "label": None, "drawn": None, **UNSAID}


@pytest.mark.parametrize(
    "query", [{}, {"order": "random", "seed": 3}, {"order": "likeliest", "model": "news"}, {"contains": "e"}]
)
def test_pages_have_every_document_once(gateway: Gateway, texts: str, query: dict[str, Any]) -> None:
    if "model" in query:
        publish(gateway.store)
        dataset = str(gateway.upload([{"indices": [0], "values": [1.0 + k // 2]} for k in range(9)])["id"])
    else:
        dataset = texts
    whole = every_id(gateway, dataset, limit=100, **query)
    for limit in (1, 2, 3):
        assert every_id(gateway, dataset, limit=limit, **query) == whole
    assert len(set(whole)) == len(whole) > 3


def test_ids_name_documents_in_their_order(gateway: Gateway, texts: str) -> None:
    assert ids(documents(gateway, texts, ids="t5,t0")) == ["t5", "t0"]
    assert ids(documents(gateway, texts, ids='["t3","t7"]')) == ["t3", "t7"]
    assert "'x'" in refused(gateway, texts, ids="t1,x")


def test_positions_are_ids_where_none_were_sent(gateway: Gateway) -> None:
    dataset = str(gateway.upload([{"text": str(k)} for k in range(12)])["id"])
    assert ids(documents(gateway, dataset, ids="11,2")) == ["11", "2"]
    for wrong in ("12", "02", "-1", "²", "9" * 5000):
        assert "there is no document" in refused(gateway, dataset, ids=wrong)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("entry", ["t0", "t2", "t4"]),
        ("École", ["t1", "t7"]),
        ("a\nb", ["t6"]),
        ("entryfree", []),
        ("ENTRY now", ["t0"]),
    ],
)
def test_a_search_finds_texts_in_whatever_case(gateway: Gateway, texts: str, text: str, found: list[str]) -> None:
    assert ids(documents(gateway, texts, contains=text)) == found


def test_a_search_finds_names_of_features(gateway: Gateway) -> None:
    dataset = str(
        gateway.upload(
            [{"features": {"Red wine": 1.0}}, {"features": {"beer": 1.0}}, {"features": {"beer": 2.0, "redness": 1.0}}]
        )["id"]
    )
    assert ids(documents(gateway, dataset, contains="red")) == ["0", "2"]


def test_vectors_have_no_words(gateway: Gateway, vectors: str) -> None:
    assert "vectors have no words" in refused(gateway, vectors, contains="red")


def test_states_follow_what_people_did(gateway: Gateway, texts: str) -> None:
    annotate(
        gateway,
        texts,
        {"document": "t1", "label": "ham"},
        {"document": "t2", "action": "skip"},
        {"document": "t0", "action": "skip"},
    )
    assert ids(documents(gateway, texts, state="labeled")) == ["t0", "t1"]
    assert ids(documents(gateway, texts, state="skipped")) == ["t2"]
    assert ids(documents(gateway, texts, state="open")) == ["t3", "t4", "t5", "t6", "t7"]
    assert ids(documents(gateway, texts, state="unlabeled")) == ["t2", "t3", "t4", "t5", "t6", "t7"]
    assert ids(documents(gateway, texts, label="ham")) == ["t1"]
    assert "there are ham, spam" in refused(gateway, texts, label="eggs")


def test_a_model_shows_what_it_predicts(gateway: Gateway, vectors: str) -> None:
    publish(gateway.store, calibrated=True)
    found = documents(gateway, vectors, model="news", limit=3)
    assert (found["model"], found["version"]) == ("news", 1)
    assert [each["predicted"] for each in found["documents"]] == ["no"] * 3
    assert found["documents"][0]["score"] == pytest.approx(-0.8)
    assert 0.5 < found["documents"][2]["probability"] < found["documents"][0]["probability"] < 1


def test_documents_are_ordered_and_filtered_by_what_a_model_predicts(gateway: Gateway, vectors: str) -> None:
    publish(gateway.store, calibrated=True)
    assert ids(documents(gateway, vectors, model="news", order="likeliest", predicted="yes", limit=2)) == ["v10", "v9"]
    assert ids(documents(gateway, vectors, model="news", order="least_certain", limit=1)) == ["v5"]
    unsure = documents(gateway, vectors, model="news", at_most=0.65)
    assert ids(unsure) == ["v4", "v5", "v6"]
    assert all(each["probability"] <= 0.65 for each in unsure["documents"])
    assert ids(documents(gateway, vectors, model="news", at_least=0.9, predicted="no")) == []
    assert "there are no, yes" in refused(gateway, vectors, model="news", predicted="maybe")


@pytest.mark.usefixtures("version")
def test_an_uncalibrated_model_orders_by_scores(gateway: Gateway, vectors: str) -> None:
    found = documents(gateway, vectors, model="news", order="likeliest", limit=2)
    assert ids(found) == ["v10", "v1"]
    assert found["documents"][0]["probability"] is None
    assert "not calibrated" in refused(gateway, vectors, model="news", at_least=0.5)


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ({"order": "likeliest"}, "model: is needed"),
        ({"predicted": "yes"}, "model: is needed"),
        ({"at_least": 0.7, "at_most": 0.6, "model": "news"}, "at_least"),
        ({"ids": "v1", "contains": "x"}, "ids"),
        ({"cursor": "x"}, "cursor"),
        ({"cursor": "99"}, "cursor"),
        ({"limit": 501}, "limit"),
        ({"state": "lost"}, "state"),
        ({"lable": "yes"}, "unknown query parameter"),
    ],
)
def test_a_query_that_means_nothing_is_refused(
    gateway: Gateway, vectors: str, query: dict[str, Any], detail: str
) -> None:
    assert detail in refused(gateway, vectors, **query)


def test_all_documents_stream_as_lines(gateway: Gateway, texts: str) -> None:
    answer = gateway.client.get(f"/v1/datasets/{texts}/documents", params={"limit": 3}, headers={"accept": NDJSON})
    assert answer.headers["content-type"] == NDJSON
    assert [json.loads(line)["text"] for line in answer.text.splitlines()] == TEXTS


def test_missing_datasets_and_models_are_404(gateway: Gateway, vectors: str) -> None:
    problem_of(gateway.client.get(f"/v1/datasets/ds-{'0' * 24}/documents"), 404)
    problem_of(gateway.client.get(f"/v1/datasets/{vectors}/documents", params={"model": "news"}), 404)


def test_other_media_types_are_refused(gateway: Gateway, texts: str) -> None:
    answer: httpx.Response = gateway.client.get(f"/v1/datasets/{texts}/documents", headers={"accept": "text/html"})
    problem_of(answer, 406)


@pytest.mark.parametrize(
    ("query", "drawn"),
    [
        ({"contains": "o", "state": "open"}, {"found": 1}),
        ({"order": "random"}, {"random": 1}),
        ({"order": "random", "contains": "o"}, {"found": 1}),
        ({}, {}),
    ],
)
def test_how_documents_were_come_by_is_remembered(
    gateway: Gateway, query: dict[str, Any], drawn: dict[str, int]
) -> None:
    dataset = str(gateway.upload([{"text": f"one two {k}"} for k in range(5)])["id"])
    first = documents(gateway, dataset, **query)["documents"][0]
    annotate(gateway, dataset, {"document": first["id"], "label": "x"})
    assert summary(gateway, dataset)["drawn"] == drawn


@pytest.mark.parametrize(
    ("query", "drawn"),
    [
        ({"predicted": "yes"}, {"found": 1}),
        ({"order": "likeliest"}, {"found": 1}),
        ({"order": "least_certain"}, {"chosen": 1}),
        ({"order": "random", "at_least": "0.01"}, {"found": 1}),
        ({"order": "random", "at_most": "0.99"}, {"chosen": 1}),
    ],
)
def test_what_is_shown_by_predictions_is_found_or_chosen(
    gateway: Gateway, vectors: str, query: dict[str, str], drawn: dict[str, int]
) -> None:
    """What a model gives one class or is sure of, and what it is unsure of; not what comes in the order of the file."""
    publish(gateway.store, calibrated=True)
    own, *_, other = ids(documents(gateway, vectors, model="news", state="unlabeled"))
    [shown] = documents(gateway, vectors, model="news", state="unlabeled", limit=1, **query)["documents"]
    annotate(gateway, vectors, {"document": shown["id"], "label": "no"})
    annotate(gateway, vectors, {"document": own if shown["id"] == other else other, "label": "yes"})
    assert summary(gateway, vectors)["drawn"] == drawn


def test_what_a_model_gets_wrong_comes_by_how_sure_it_was(gateway: Gateway, vectors: str) -> None:
    publish(gateway.store, calibrated=True)
    answers = {"v1": "yes", "v2": "no", "v4": "yes", "v9": "no", "v10": "maybe"}
    annotate(gateway, vectors, *({"document": document, "label": label} for document, label in answers.items()))
    assert ids(documents(gateway, vectors, model="news", mistaken=True, order="likeliest")) == ["v10", "v1", "v9", "v4"]
    assert ids(documents(gateway, vectors, model="news", mistaken=True, predicted="no")) == ["v1", "v4"]
    assert "model: is needed" in refused(gateway, vectors, mistaken=True)


@pytest.mark.parametrize("query", [{"order": "random", "seed": 1}, {"contains": "e"}, {"state": "open"}])
def test_what_others_have_claimed_is_left_out(gateway: Gateway, texts: str, query: dict[str, Any]) -> None:
    everybody = sorted(every_id(gateway, texts, limit=3, **query))
    first = documents(gateway, texts, limit=3, by="ann", claim=600, **query)
    rest = every_id(gateway, texts, limit=3, by="bob", claim=600, **query)
    assert sorted(ids(first) + rest) == everybody
    assert ids(documents(gateway, texts, limit=3, by="ann", claim=0, **query)) == ids(first)
    assert sorted(every_id(gateway, texts, limit=3, **query)) == everybody


def test_documents_that_somebody_was_faster_to_claim_are_not_given(
    gateway: Gateway, texts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = ids(documents(gateway, texts, limit=3, by="ann", claim=600))
    monkeypatch.setattr(DocumentClaims, "of_others", lambda *_: set())  # what was read before ann came
    assert ids(documents(gateway, texts, limit=5, by="bob", claim=600)) == [
        each for each in ids(documents(gateway, texts, limit=5)) if each not in taken
    ]


def test_a_claim_is_for_a_page_of_a_person(gateway: Gateway, texts: str) -> None:
    assert "is that of a person" in refused(gateway, texts, claim=60)
    assert "nor claim" in refused(gateway, texts, ids="t1", by="ann", claim=60)
    answer = gateway.client.get(
        f"/v1/datasets/{texts}/documents", params={"by": "ann", "claim": 60}, headers={"accept": NDJSON}
    )
    assert "is for a page" in problem_of(answer, 422)["detail"]


def test_documents_by_what_people_said(gateway: Gateway, texts: str) -> None:
    """A filter by person, by disagreement, by marks; documents left out are named in two ways."""
    answers = [("t1", "ann", "spam"), ("t1", "bob", "ham"), ("t2", "ann", "ham"), ("t3", "bob", "ham")]
    annotate(gateway, texts, *({"document": id, "by": by, "label": label} for id, by, label in answers))
    annotate(
        gateway,
        texts,
        {"document": "t4", "by": "ann", "action": "skip"},
        {"document": "t5", "by": "ann", "action": "flag"},
    )
    assert ids(documents(gateway, texts, by="ann")) == ["t1", "t2"]
    assert ids(documents(gateway, texts, by="ann", label="ham")) == ["t1", "t2"]
    assert ids(documents(gateway, texts, disagreement=True)) == ["t1"]
    assert ids(documents(gateway, texts, flagged=True)) == ["t5"]
    assert ids(documents(gateway, texts, state="skipped")) == ["t4"]


def test_a_table_says_by_whom(gateway: Gateway, texts: str) -> None:
    annotate(gateway, texts, {"document": "t1", "by": "=ann", "label": "ham"})
    lines = gateway.client.get(f"/v1/datasets/{texts}/documents", headers={"accept": "text/csv"}).text.splitlines()
    assert lines[0] == "id,text,label,by,drawn,skipped,people,notes,flagged"
    assert lines[1] == "t0,Free ENTRY now,spam,,random,false,,,false"
    assert lines[2].split(",")[2:4] == ["ham", "'=ann"]


SETS = {"v0": ["corn", "rye"], "v1": ["rye", "corn"], "v2": ["corn"], "v3": [], "v4": ["rye"]}
"""Labels of documents by a model of several, the likeliest first."""
TOLD: dict[str, Any] = {"v0": ["rye", "corn"], "v1": ["corn"], "v3": [], "v4": ["oat"]}


@pytest.fixture
def several(gateway: Gateway) -> str:
    publish_several(gateway.store, ["corn", "rye"])
    values = {"v0": [1.0, 0.75], "v1": [0.75, 1.0], "v2": [0.75, 0.25], "v3": [0.25, 0.125], "v4": [0.125, 1.0]}
    told = {id: {"labels": TOLD[id]} if id in TOLD else {} for id in values}
    lines = [{"id": id, "indices": [0, 1], "values": own, **told[id]} for id, own in values.items()]
    return str(gateway.upload(lines)["id"])


@pytest.mark.parametrize("query", [{}, {"order": "likeliest"}, {"ids": "v4,v0,v2,v3,v1"}])
def test_documents_have_all_labels_of_a_model_of_several(gateway: Gateway, several: str, query: dict[str, str]) -> None:
    found = documents(gateway, several, model="news", **query)["documents"]
    assert {each["id"]: each["predicted_labels"] for each in found} == SETS
    assert {each["id"]: each["predicted"] for each in found if SETS[each["id"]]} == {
        id: labels[0] for id, labels in SETS.items() if labels
    }
    assert "predicted_labels" not in documents(gateway, several)["documents"][0]


def test_documents_are_found_by_any_label_of_a_model_of_several(gateway: Gateway, several: str) -> None:
    for label in ("corn", "rye"):
        found = ids(documents(gateway, several, model="news", predicted=label))
        assert found == [id for id, labels in SETS.items() if label in labels]
    assert ids(documents(gateway, several, model="news", mistaken=True)) == ["v1", "v4"]
    assert ids(documents(gateway, several, model="news", mistaken=True, predicted="corn")) == ["v1"]


def test_downloads_have_all_labels_of_a_model_of_several(gateway: Gateway, several: str) -> None:

    def content(media_type: str, **query: str) -> bytes:
        path, headers = f"/v1/datasets/{several}/documents", {"accept": media_type}
        answer = gateway.client.get(path, params={"model": "news", **query}, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.content

    lines = [json.loads(line) for line in content(NDJSON).splitlines()]
    assert {each["id"]: each["predicted_labels"] for each in lines} == SETS
    for separator in (";", "|"):
        rows = list(csv.DictReader(io.StringIO(content("text/csv", separator=separator).decode())))
        assert {each["id"]: each["predicted_labels"] for each in rows} == {
            id: separator.join(labels) or "[]" for id, labels in SETS.items()
        }
    table = pq.read_table(io.BytesIO(content("application/vnd.apache.parquet"))).to_pydict()
    assert dict(zip(table["id"], table["predicted_labels"], strict=True)) == SETS
    refused = gateway.client.get(
        f"/v1/datasets/{several}/documents", params={"model": "news", "separator": "r"}, headers={"accept": "text/csv"}
    )
    assert "the label 'corn'" in problem_of(refused, 422)["detail"]
