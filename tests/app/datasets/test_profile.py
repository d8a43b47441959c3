"""The profile of a dataset and its classes: name, guidelines, order, keys."""

from typing import Any

import pytest

from tests.app.conftest import Gateway, annotate, body_of, problem_of, publish
from tests.app.documents.listing import every_id, listed

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "a", "indices": [0], "label": "yes"},
    {"id": "b", "indices": [1], "label": "no"},
    {"id": "c", "indices": [1]},
]


@pytest.fixture
def dataset(gateway: Gateway) -> str:
    return str(gateway.upload(DOCUMENTS, name="first")["id"])


def classes(gateway: Gateway, dataset: str) -> list[tuple[Any, Any]]:
    found = body_of(gateway.client.get(f"/v1/datasets/{dataset}/classes"))
    return [(each["name"], each["key"]) for each in found["classes"]]


def put(gateway: Gateway, dataset: str, *given: dict[str, Any]) -> Any:
    return gateway.client.put(f"/v1/datasets/{dataset}/classes", json={"classes": given})


def test_a_dataset_is_renamed_and_put_away(gateway: Gateway, dataset: str) -> None:
    path = f"/v1/datasets/{dataset}"
    changed = gateway.client.patch(path, json={"name": "Mails / 信", "guidelines": "Newsletters are ham."}).json()
    assert (changed["name"], changed["guidelines"], changed["archived"]) == (
        "Mails / 信",
        "Newsletters are ham.",
        False,
    )
    for given in ({"job-1/0": "Spam", "job-1/1": "Ham"}, {"job-1/1": "", "job-2/0": "Eggs"}):
        gateway.client.patch(path, json={"archived": True, "clusters": given})
    found = gateway.client.get(path).json()
    assert (found["name"], found["guidelines"], found["archived"]) == ("Mails / 信", "Newsletters are ham.", True)
    assert (changed["clusters"], found["clusters"]) == ({}, {"job-1/0": "Spam", "job-2/0": "Eggs"})
    [listed] = gateway.client.get("/v1/datasets").json()["datasets"]
    assert listed == found
    assert (found["n_documents"], found["n_labeled"]) == (3, 2)


def test_a_wrong_change_changes_nothing(gateway: Gateway, dataset: str) -> None:
    shares: list[Any] = [{"ana": 0}, {"ana": -1}, {"": 1}, {"ana": "half"}, ["ana"]]
    wrong: list[tuple[dict[str, Any], str]] = [({"shares": each}, "shares") for each in shares]
    wrong += [({"overlap": each}, "overlap") for each in (-0.1, 1.1, "all")]
    wrong += [({"clusters": {key: name}}, "clusters") for key, name in (("", "a"), ("a", "a" * 257), ("job-1/0", "a"))]
    gateway.client.patch(f"/v1/datasets/{dataset}", json={"clusters": {str(k): "all" for k in range(1000)}})
    for body, field in (({"name": "a\nb"}, "name"), ({"name": None}, "name"), ({"label": "x"}, "label"), *wrong):
        assert field in problem_of(gateway.client.patch(f"/v1/datasets/{dataset}", json=body), 422)["detail"]
    kept = gateway.client.get(f"/v1/datasets/{dataset}").json()
    assert (kept["name"], kept["shares"]) == ("first", {})
    problem_of(gateway.client.patch("/v1/datasets/ds-x", json={"name": "x"}), 404)


def test_classes_are_those_of_labels_until_some_are_set(gateway: Gateway, dataset: str) -> None:
    assert classes(gateway, dataset) == [("no", "1"), ("yes", "2")]
    annotate(gateway, dataset, {"document": "c", "label": "maybe"})
    assert classes(gateway, dataset) == [("maybe", "1"), ("no", "2"), ("yes", "3")]


def test_classes_are_those_of_several_labels_too(gateway: Gateway, dataset: str) -> None:
    several = gateway.client.put(f"/v1/datasets/{dataset}/labels", json={"label_kind": "several"}).json()["id"]
    annotate(gateway, several, {"document": "c", "labels": ["maybe", "yes"]})
    assert [name for name, _ in classes(gateway, several)] == ["maybe", "no", "yes"]


def test_set_classes_come_first_and_keep_their_keys(gateway: Gateway, dataset: str) -> None:
    spam = {"name": "spam", "key": "2", "description": "Nobody asked for it.", "color": "#a3202b"}
    answer = put(gateway, dataset, spam, {"name": "yes"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["classes"][0] == spam
    assert classes(gateway, dataset) == [("spam", "2"), ("yes", "1"), ("no", "3")]
    put(gateway, dataset)
    assert classes(gateway, dataset) == [("no", "1"), ("yes", "2")]


def test_more_classes_than_digits_have_only_the_keys_that_were_set(gateway: Gateway, dataset: str) -> None:
    put(gateway, dataset, *({"name": f"class {k}", **({"key": "x"} if k == 3 else {})} for k in range(10)))
    assert [key for _, key in classes(gateway, dataset)] == [None] * 3 + ["x"] + [None] * 8


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ([{"name": "a"}, {"name": "a"}], "classes[1].name"),
        ([{"name": "a", "key": "k"}, {"name": "b", "key": "k"}], "classes[1].key"),
        ([{"name": 3}], "classes[0].name"),
        ([{"name": ""}], "classes[0].name"),
        ([{"name": "a", "key": "ab"}], "classes[0].key"),
        ([{"name": "a", "color": "red"}], "classes[0].color"),
    ],
)
def test_classes_that_cannot_be_are_named(
    gateway: Gateway, dataset: str, given: list[dict[str, Any]], field: str
) -> None:
    assert field in problem_of(put(gateway, dataset, *given), 422)["detail"]
    assert classes(gateway, dataset) == [("no", "1"), ("yes", "2")]


def test_a_deleted_dataset_leaves_no_profile(gateway: Gateway, dataset: str) -> None:
    put(gateway, dataset, {"name": "spam"})
    assert gateway.client.delete(f"/v1/datasets/{dataset}").status_code == 204
    assert gateway.kept() == []


def test_each_person_gets_the_own_share(gateway: Gateway) -> None:
    documents = [
        {"id": f"d{k}", "indices": [k % 2], **({"label": ("no", "yes")[k % 2]} if k < 4 else {})} for k in range(400)
    ]
    dataset = gateway.upload(documents)["id"]
    everything = {document["id"] for document in documents}
    assert listed(gateway, dataset, "ana") == everything
    answer = gateway.client.patch(f"/v1/datasets/{dataset}", json={"shares": {"ana": 3, "ben": 0.5, "cid": 0.5}})
    assert answer.json()["shares"] == {"ana": 3, "ben": 0.5, "cid": 0.5}
    ana, ben, cid = (listed(gateway, dataset, person) for person in ("ana", "ben", "cid"))
    assert ana | ben | cid == everything
    assert len(ana) + len(ben) + len(cid) == len(everything)
    assert 270 < len(ana) < 330  # 300 and 3.5 standard deviations
    assert listed(gateway, dataset, "who has no share") == everything

    publish(gateway.store)
    body = {"dataset": dataset, "n": 100, "share": "ben"}
    suggestions = gateway.client.post("/v1/models/news/suggest", json=body).json()["suggestions"]
    assert {each["id"] for each in suggestions} == ben - {f"d{k}" for k in range(4)}

    gateway.client.patch(f"/v1/datasets/{dataset}", json={"overlap": 0.1})
    shared = [listed(gateway, dataset, person) for person in ("ana", "ben", "cid")]
    assert len(shared[0] & shared[1] & shared[2]) == 40
    assert shared[0] | shared[1] | shared[2] == everything
    for person, own in zip(("ana", "ben", "cid"), shared, strict=True):
        found = every_id(gateway, dataset, share=person, order="random", limit=30)
        assert sorted(found) == sorted(own)
        assert {*found[:40]} == shared[0] & shared[1]

    gateway.client.patch(f"/v1/datasets/{dataset}", json={"shares": {}, "overlap": 0})
    assert listed(gateway, dataset, "ana") == everything
