"""Annotations over HTTP: appended once, taken back, read, and their effect on jobs and suggestions."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from storage.queue.claims import DocumentClaims
from tests.app.conftest import Gateway, Start, annotate, problem_of, suggest, summary
from tests.app.predictions.suggestions import ids

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "a", "indices": [0], "label": "no"},
    {"id": "b", "indices": [1], "label": "yes"},
    *({"id": f"e{k}", "indices": [0, 1], "values": [1.0, k / 8]} for k in range(8)),
]


def log(gateway: Gateway, dataset: str, **query: int) -> dict[str, Any]:
    found: dict[str, Any] = gateway.client.get(f"/v1/datasets/{dataset}/annotations", params=query).json()
    return found


@pytest.fixture
def dataset(gateway: Gateway) -> str:
    return str(gateway.upload(DOCUMENTS)["id"])


def test_the_same_id_again_changes_nothing(gateway: Gateway, dataset: str) -> None:
    assert annotate(gateway, dataset, {"document": "e0", "label": "yes"}, {"document": "e1", "label": "no"}) == {
        "sequence": 2,
        "accepted": 2,
    }
    assert annotate(gateway, dataset, {"document": "e1", "label": "yes"}, {"document": "e2", "label": "no"}) == {
        "sequence": 3,
        "accepted": 1,
    }
    again = {"document": "e0", "label": "no"}
    assert annotate(gateway, dataset, again, again) == {"sequence": 3, "accepted": 0}
    twice = {"document": "e3", "label": "yes"}
    assert annotate(gateway, dataset, twice, twice | {"label": "no"}) == {"sequence": 4, "accepted": 1}
    entries = log(gateway, dataset)["annotations"]
    assert [(each["sequence"], each["document"], each["label"]) for each in entries] == [
        (1, "e0", "yes"),
        (2, "e1", "no"),
        (3, "e2", "no"),
        (4, "e3", "yes"),
    ]


def test_the_log_comes_in_parts(gateway: Gateway, dataset: str) -> None:
    annotate(gateway, dataset, *({"document": f"e{k}", "label": "yes"} for k in range(5)))
    first = log(gateway, dataset, limit=3)
    assert ([each["document"] for each in first["annotations"]], first["next"]) == (["e0", "e1", "e2"], 3)
    rest = log(gateway, dataset, limit=3, after=3)
    assert ([each["sequence"] for each in rest["annotations"]], rest["next"]) == ([4, 5], None)


def test_undo_takes_back_what_the_same_person_did_last(gateway: Gateway, dataset: str) -> None:
    first = {"document": "e0", "label": "yes", "by": "ann"}
    second = {"id": "second", "document": "e0", "label": "no", "by": "ann"}
    annotate(gateway, dataset, first, second, {"document": "e0", "action": "undo", "by": "bob"})
    assert summary(gateway, dataset)["classes"] == {"no": 2, "yes": 1}
    annotate(gateway, dataset, {"id": "u1", "document": "e0", "action": "undo", "by": "ann"})
    assert summary(gateway, dataset)["classes"] == {"no": 1, "yes": 2}
    annotate(gateway, dataset, {"id": "u2", "document": "e0", "action": "undo", "by": "ann"})
    found = summary(gateway, dataset)
    assert (found["sequence"], found["labeled"], found["people"]) == (5, 2, {}), (
        "what was taken back is nobody's answer"
    )


def test_of_several_people_most_decide(gateway: Gateway, dataset: str) -> None:
    answers = {"ann": "yes", "bob": "no", "cleo": "no"}
    annotate(gateway, dataset, *({"document": "e0", "label": label, "by": by} for by, label in answers.items()))
    annotate(gateway, dataset, *({"document": "e1", "label": "yes", "by": by} for by in answers))
    found = summary(gateway, dataset)
    assert (found["compared"], found["agreed"], found["people"]) == (2, 1, {"ann": 2, "bob": 2, "cleo": 2})
    assert (found["classes"], found["labels"]) == ({"no": 2, "yes": 2}, ["no", "yes"])


def test_who_settles_a_document_decides(gateway: Gateway, dataset: str) -> None:
    answers = {"ann": "yes", "bob": "no", "cleo": "no"}
    annotate(gateway, dataset, *({"document": "e0", "label": label, "by": by} for by, label in answers.items()))
    assert summary(gateway, dataset)["disputed"] == 1
    annotate(gateway, dataset, {"document": "e0", "label": "yes", "by": "ann", "action": "settle"})
    annotate(gateway, dataset, {"document": "e0", "label": "no", "by": "dan"})
    found = summary(gateway, dataset)
    assert (found["agreed"], found["disputed"], found["classes"]["yes"]) == (0, 0, 2)
    query = f"/v1/datasets/{dataset}/documents?disagreement=true"
    assert gateway.client.get(query).json()["documents"] == []
    annotate(gateway, dataset, {"document": "e0", "by": "ann", "action": "undo"})
    assert [each["id"] for each in gateway.client.get(query).json()["documents"]] == ["e0"]


def test_a_summary_says_the_type_of_labels(gateway: Gateway) -> None:
    dataset = str(gateway.upload([{"indices": [0], "label": 3}, {"indices": [1]}, {"indices": [2]}])["id"])
    assert summary(gateway, dataset)["labels"] == [3]
    annotate(gateway, dataset, {"document": "1", "label": 20}, {"document": "2", "labels": [3]})
    found = summary(gateway, dataset)
    assert (found["classes"], found["labels"]) == ({"3": 2, "20": 1}, [3, 20])


@pytest.mark.parametrize(
    ("given", "field", "detail"),
    [
        ({"document": "z", "label": "yes"}, "document", "no such document"),
        ({"document": "e0"}, "label", "is missing"),
        ({"document": "e0", "label": 3}, "label", "all strings or all integers"),
        ({"document": "e0", "label": "yes", "action": "skip"}, "label", "only for the actions label"),
        ({"document": "e0", "label": ""}, "annotations[1].label", "at least 1 character"),
        ({"document": "e0", "label": "yes", "at": "2026-01-01T00:00:00"}, "annotations[1].at", "time zone"),
        ({"document": "e0", "labels": ["yes", "no"]}, "annotations[1].labels", "has one label"),
        ({"document": "e0", "label": "yes", "labels": ["yes"]}, "annotations[1].labels", "either"),
    ],
)
def test_a_bad_one_is_named_and_nothing_is_appended(
    gateway: Gateway, dataset: str, given: dict[str, Any], field: str, detail: str
) -> None:
    good = {"id": "good", "document": "e1", "label": "yes"}
    answer = gateway.client.post(
        f"/v1/datasets/{dataset}/annotations", json={"annotations": [good, {"id": "bad", **given}]}
    )
    fault = problem_of(answer, 422)["errors"][0]
    assert fault["field"] == field
    assert detail in fault["detail"]
    assert log(gateway, dataset)["annotations"] == []


def test_only_datasets_have_a_log(gateway: Gateway) -> None:
    missing = "ds-" + "0" * 24
    body = {"annotations": [{"id": "1", "document": "a", "label": "yes"}]}
    problem_of(gateway.client.post(f"/v1/datasets/{missing}/annotations", json=body), 404)
    problem_of(gateway.client.get(f"/v1/datasets/{missing}/annotations"), 404)
    problem_of(gateway.client.get(f"/v1/datasets/{missing}/annotations/summary"), 404)


def test_many_append_at_once_through_several_gateways(start: Start) -> None:
    gateways = [start(), start()]
    dataset = str(gateways[0].upload([{"text": f"text {k}"} for k in range(100)])["id"])

    def person(k: int) -> int:
        given = ({"id": f"{k}-{n}", "document": str(k), "label": "yes", "by": f"p{k}"} for n in range(3))
        return sum(annotate(gateways[k % 2], dataset, each)["accepted"] for each in given)

    with ThreadPoolExecutor(100) as people:
        assert list(people.map(person, range(100))) == [3] * 100
    for gateway in gateways:
        entries = log(gateway, dataset, limit=500)["annotations"]
        assert [each["sequence"] for each in entries] == list(range(1, 301))
        assert len({each["id"] for each in entries}) == 300
        # each person's answers are in the order in which they were given
        assert all(
            [each["id"] for each in entries if each["by"] == f"p{k}"] == [f"{k}-{n}" for n in range(3)]
            for k in range(100)
        )


@pytest.mark.usefixtures("version")
def test_how_documents_were_drawn_is_known(gateway: Gateway, dataset: str) -> None:
    chosen = ids(suggest(gateway, dataset=dataset, n=2, random=0))
    annotate(gateway, dataset, *({"document": id, "label": "yes"} for id in chosen))
    told = next(id for id in (f"e{k}" for k in range(8)) if id not in chosen)
    annotate(gateway, dataset, {"document": told, "label": "no", "drawn": "random"})
    assert summary(gateway, dataset)["drawn"] == {"random": 1, "chosen": 2}


@pytest.mark.usefixtures("version")
def test_what_people_did_is_not_suggested_again(gateway: Gateway, dataset: str) -> None:
    annotate(
        gateway,
        dataset,
        {"document": "e0", "label": "yes"},
        {"document": "e1", "action": "skip"},
        {"document": "e2", "label": "yes"},
    )
    annotate(gateway, dataset, {"id": "back", "document": "e2", "action": "undo"})
    found = suggest(gateway, dataset=dataset, n=10)
    assert sorted(ids(found)) == ["e2", "e3", "e4", "e5", "e6", "e7"]
    assert found["n_unlabeled"] == 6


@pytest.mark.usefixtures("version")
def test_what_others_have_claimed_is_not_suggested(gateway: Gateway, dataset: str) -> None:
    first = ids(suggest(gateway, dataset=dataset, n=5, by="ann", claim=600))
    second = ids(suggest(gateway, dataset=dataset, n=5, by="bob", claim=600))
    assert len(second) == 3
    assert not {*first} & {*second}
    assert sorted(ids(suggest(gateway, dataset=dataset, n=5, by="ann", claim=600))) == sorted(first)
    assert len(ids(suggest(gateway, dataset=dataset, n=10))) == 8


@pytest.mark.usefixtures("version")
def test_others_are_suggested_in_place_of_what_somebody_was_faster_to_claim(
    gateway: Gateway, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ids(suggest(gateway, dataset=dataset, n=3, by="ann", claim=600))
    monkeypatch.setattr(DocumentClaims, "of_others", lambda *_: set())  # what was read before ann came
    second = ids(suggest(gateway, dataset=dataset, n=5, by="bob", claim=600))
    assert sorted(first + second) == [f"e{k}" for k in range(8)]


@pytest.mark.usefixtures("version")
def test_suggestions_include_the_documents(gateway: Gateway, dataset: str) -> None:
    found = suggest(gateway, dataset=dataset, n=3, include=["document"])
    sent = {document["id"]: document for document in DOCUMENTS}
    for each in found["suggestions"]:
        document = {**sent[each["id"]], "values": [value for value in sent[each["id"]]["values"] if value]}
        assert each["document"] == {**document, "indices": document["indices"][: len(document["values"])]}


def test_a_job_says_how_many_entries_it_learns_from(gateway: Gateway, dataset: str) -> None:
    annotate(gateway, dataset, {"document": "e0", "label": "no"}, {"document": "e1", "label": "yes"})
    assert gateway.job(dataset=dataset, annotations="latest").json()["annotations"] == 2
    assert gateway.job(dataset=dataset, annotations=1).json()["annotations"] == 1
    assert gateway.job(dataset=dataset).json()["annotations"] is None
    assert "has 2 entries" in problem_of(gateway.job(dataset=dataset, annotations=3), 422)["detail"]
    assert "log" in problem_of(gateway.job(documents=DOCUMENTS, annotations="latest"), 422)["detail"]


def test_a_job_may_learn_from_people_alone(gateway: Gateway) -> None:
    dataset = str(gateway.upload([{"text": f"word{k % 2} text"} for k in range(10)])["id"])
    problem_of(gateway.job(dataset=dataset), 422)
    annotate(gateway, dataset, {"document": "0", "label": 1}, {"document": "1", "label": 2})
    assert gateway.job(dataset=dataset, annotations="latest").status_code == 202


def shown(gateway: Gateway, dataset: str, id: str) -> dict[str, Any]:
    found = gateway.client.get(f"/v1/datasets/{dataset}/documents", params={"ids": id}).json()["documents"][0]
    return {name: found[name] for name in ("label", "by", "people", "notes", "flagged", "skipped")}


def test_a_batch_is_taken_back_whatever_was_done_since(gateway: Gateway, dataset: str) -> None:
    """The labels of the batch go; a later answer to one of its documents stays, and the one before it counts again."""
    annotate(gateway, dataset, {"document": "e0", "label": "no", "by": "ann"})
    batch = [{"id": f"b{k}", "document": f"e{k}", "label": "yes", "by": "ann", "batch": "b"} for k in range(4)]
    annotate(gateway, dataset, *batch, {"id": "later", "document": "e1", "label": "no", "by": "ann"})
    taken = {"undo_of": "b"}
    path = f"/v1/datasets/{dataset}/annotations"
    assert gateway.client.post(path, json=taken).json() == {"sequence": 10, "accepted": 4}
    assert gateway.client.post(path, json=taken).json() == {"sequence": 10, "accepted": 0}
    assert [shown(gateway, dataset, f"e{k}")["label"] for k in range(4)] == ["no", "no", None, None]
    last = log(gateway, dataset)["annotations"][-1]
    assert (last["action"], last["undo_of"], last["label"]) == ("undo", "b3", None)


def test_the_log_knows_the_last_entry_that_teaches_anything(gateway: Gateway, dataset: str) -> None:
    """A note, a mark, a skip and an undo of these change no label; a label and its undo do."""
    told = []
    for number, entry in enumerate(
        (
            {"document": "e0", "label": "no", "by": "ann"},
            {"document": "e0", "action": "note", "note": "hm", "by": "ann"},
            {"document": "e1", "action": "flag", "by": "ann"},
            {"document": "e1", "action": "undo", "by": "ann"},
            {"document": "e2", "action": "skip", "by": "ann"},
            {"document": "e0", "label": "no", "by": "ann"},
            {"document": "e0", "label": "yes", "by": "ann"},
            {"document": "e0", "action": "undo", "by": "ann"},
            {"document": "e2", "action": "note", "note": "hm", "by": "bob"},
        )
    ):
        annotate(gateway, dataset, {"id": f"entry{number}", **entry})
        told.append(gateway.client.get(f"/v1/datasets/{dataset}/annotations/summary").json()["changed"])
    assert told == [1, 1, 1, 1, 1, 1, 7, 8, 8]


def test_a_batch_that_nobody_made_is_none(gateway: Gateway, dataset: str) -> None:
    path = f"/v1/datasets/{dataset}/annotations"
    assert "batch 'x'" in problem_of(gateway.client.post(path, json={"undo_of": "x"}), 404)["detail"]
    given = {"undo_of": "x", "annotations": [{"id": "1", "document": "e0", "label": "yes"}]}
    for body in (given, {}):
        assert "not both" in problem_of(gateway.client.post(path, json=body), 422)["detail"]


def test_marks_and_notes_answer_nothing(gateway: Gateway, dataset: str) -> None:
    flag = {"id": "f1", "document": "e0", "action": "flag", "by": "ann"}
    note = {"id": "n1", "document": "e0", "action": "note", "note": "is this spam?", "by": "ann"}
    annotate(gateway, dataset, flag, note, {"id": "f2", "document": "e1", "action": "flag", "by": "bob"})
    assert shown(gateway, dataset, "e0") == {
        "label": None,
        "by": None,
        "people": {},
        "notes": {"ann": "is this spam?"},
        "flagged": True,
        "skipped": False,
    }
    assert (summary(gateway, dataset)["flagged"], summary(gateway, dataset)["skipped"]) == (2, 0)
    audit = gateway.client.post(f"/v1/datasets/{dataset}/audits", json={"n": 8}).json()
    assert sorted(audit["documents"]) == [f"e{k}" for k in range(8)]
    annotate(gateway, dataset, flag | {"id": "f3"}, note | {"id": "n2", "note": ""})
    assert (shown(gateway, dataset, "e0")["flagged"], shown(gateway, dataset, "e0")["notes"]) == (False, {})


def test_a_note_needs_its_text_and_others_have_none(gateway: Gateway, dataset: str) -> None:
    path = f"/v1/datasets/{dataset}/annotations"
    for given in ({"action": "note"}, {"label": "yes", "note": "x"}):
        body = {"annotations": [{"id": "1", "document": "e0", **given}]}
        assert problem_of(gateway.client.post(path, json=body), 422)["errors"][0]["field"] == "note"


def test_a_summary_says_how_far_people_agree(gateway: Gateway, dataset: str) -> None:
    labels = {"ann": "yyyynn", "bob": "yyynnn", "cleo": "y"}
    for by, given in labels.items():
        names = ["yes" if each == "y" else "no" for each in given]
        annotate(gateway, dataset, *({"document": f"e{k}", "label": name, "by": by} for k, name in enumerate(names)))
    found = summary(gateway, dataset)
    assert (found["compared"], found["agreed"]) == (6, 5)
    ann_and_bob = {"people": ["ann", "bob"], "compared": 6, "agreed": 5, "cohen": pytest.approx(2 / 3)}
    assert (found["pairs"][0], len(found["pairs"])) == (ann_and_bob, 3)
    assert found["krippendorff"] == pytest.approx(0.7)
    assert shown(gateway, dataset, "e3")["people"] == {"ann": "yes", "bob": "no"}
    assert shown(gateway, dataset, "e0")["by"] == "ann, bob, cleo"
