"""Documents that everybody answers: who is given which, what each sees of the others' answers, and how far all are."""

from typing import Any

import pytest

from tests.app.conftest import Gateway, annotate, body_of, publish, suggest, summary
from tests.app.documents.listing import documents, ids, listed
from tests.app.review.audited import draw, report

LABELED: list[dict[str, Any]] = [
    {"id": "known", "indices": [0], "label": "no"},
    {"id": "other", "indices": [1], "label": "yes"},
]
COUNT, OVERLAP = 40, 0.25


@pytest.fixture
def dataset(gateway: Gateway) -> str:
    others = [{"id": f"d{k}", "indices": [0, 1], "values": [1.0, k / COUNT]} for k in range(2, COUNT)]
    dataset = str(gateway.upload([*LABELED, *others])["id"])
    publish(gateway.store)
    assert body_of(gateway.client.patch(f"/v1/datasets/{dataset}", json={"overlap": OVERLAP}))["overlap"] == OVERLAP
    return dataset


@pytest.fixture
def shared(gateway: Gateway, dataset: str) -> list[str]:
    """The documents that stay open to others when ann has answered or left out all in an audit."""
    audit = draw(gateway, dataset, n=COUNT - 2)
    answers = [{"label": "no"}, {"action": "skip"}] * (COUNT // 2 - 1)
    given = [{"document": id, "by": "ann", **answer} for id, answer in zip(audit["documents"], answers, strict=True)]
    annotate(gateway, dataset, *given)
    assert report(gateway, audit)["open"] == report(gateway, audit, share="ann")["open"] == []
    return [str(id) for id in report(gateway, audit, share="bob")["open"]]


def test_each_person_answers_what_is_everybodys(gateway: Gateway, dataset: str, shared: list[str]) -> None:
    assert OVERLAP * COUNT - len(LABELED) <= len(shared) <= OVERLAP * COUNT
    assert ids(documents(gateway, dataset, state="open")) == ids(documents(gateway, dataset, state="open", share="ann"))
    first, second, *rest = shared
    annotate(
        gateway,
        dataset,
        {"document": first, "label": "no", "by": "bob"},
        {"document": second, "action": "skip", "by": "bob"},
    )
    assert listed(gateway, dataset, "bob", state="open") == {*rest}
    assert listed(gateway, dataset, "cid", state="open") == {*shared}
    found = summary(gateway, dataset)
    assert (found["overlap"], found["overlap_answered"]) == (len(shared), {"ann": len(shared), "bob": 2})
    annotate(gateway, dataset, {"document": first, "action": "undo", "by": "bob"})
    assert listed(gateway, dataset, "bob", state="open") == {first, *rest}


def test_others_answers_are_seen_after_the_own(gateway: Gateway, dataset: str, shared: list[str]) -> None:
    said, own = shared[:2]
    note = {"action": "note", "note": "no, I think"}
    annotate(gateway, dataset, {"document": said, "label": "no", "by": "cid"}, {"document": said, "by": "cid", **note})
    annotate(gateway, dataset, {"document": own, "by": "bob", **note})
    before, noted = documents(gateway, dataset, ids=f"{said},{own}", share="bob")["documents"]
    assert (before["label"], before["by"], before["people"], before["notes"]) == (None, None, {}, {})
    assert (noted["skipped"], noted["notes"]) == (False, {"bob": "no, I think"})
    annotate(gateway, dataset, {"document": said, "label": "yes", "by": "bob"})
    [after] = documents(gateway, dataset, share="bob", disagreement=True)["documents"]
    assert after["people"].items() >= {"cid": "no", "bob": "yes"}.items()
    assert after["notes"] == {"cid": "no, I think"}
    annotate(gateway, dataset, {"document": said, "action": "settle", "label": "yes", "by": "cid"})
    assert listed(gateway, dataset, "dan", state="open") == {*shared} - {said}


def test_all_get_the_same_ones_first_though_others_read_them(gateway: Gateway, dataset: str, shared: list[str]) -> None:
    claimed: dict[str, Any] = {"dataset": dataset, "n": 4, "random": 1, "claim": 600, "include": ["document"]}
    bob, cid = (suggest(gateway, by=f"seat of {who}", share=who, **claimed)["suggestions"] for who in ("bob", "cid"))
    first = [each["id"] for each in bob]
    assert {*first} < {*shared}
    assert [each["id"] for each in cid] == first
    assert all("label" not in each["document"] for each in cid)
    assert suggest(gateway, dataset=dataset, share="ann")["suggestions"] == []
    query = {"state": "open", "order": "random", "claim": 600, "limit": 4}
    for seed in (1, 2):
        assert ids(documents(gateway, dataset, by=f"seat {seed}", share="dan", seed=seed, **query)) == first
