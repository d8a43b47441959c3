"""Suggestions for a voter, and votes in suggestions and doubts, over HTTP."""

from typing import Any

import pytest

from tests.app.conftest import Gateway, annotate, problem_of, publish, suggest
from tests.app.predictions.suggestions import UNLABELED, ids

RIGHT = {"right": 0.8, "low": 0.6, "high": 0.9}
REPORT: dict[str, Any] = {
    "class_fractions": {"no": 0.5, "yes": 0.5},
    "voters": {
        "rule": {"right": 0.9, "low": 0.8, "high": 1.0, "classes": {}},
        "sure": {"right": 0.95, "low": 0.9, "high": 1.0, "classes": {}},
        "llm": {**RIGHT, "classes": {"yes": RIGHT}},
        "guess": {"right": 0.55, "low": 0.4, "high": 0.7, "classes": {}},
    },
}


def uploaded(gateway: Gateway, votes: dict[str, dict[str, str]], labeled: int = 8) -> str:
    known = [{"id": f"known{k}", "indices": [k % 2], "label": ("no", "yes")[k % 2]} for k in range(labeled)]
    rows = [{"id": id, "indices": [*range(len(values))], "values": values} for id, values in UNLABELED.items()]
    every: list[dict[str, Any]] = [*known, *rows]
    documents = [each | {"votes": votes.get(each["id"], {})} for each in every]
    dataset = str(gateway.upload(documents)["id"])
    publish(gateway.store, dataset=dataset, calibrated=True, report=REPORT)
    return dataset


def test_a_voter_is_asked_where_its_answer_is_worth_most(gateway: Gateway) -> None:
    dataset = uploaded(gateway, {"even": {"llm": "no"}, "known0": {"llm": "no"}})
    body: dict[str, Any] = {"dataset": dataset, "n": 4, "price": 0.5, "strategy": "uncertain", "for": "llm"}
    found = suggest(gateway, **body)
    assert len(set(ids(found)) & {f"known{k}" for k in range(1, 8)}) == 1
    assert {"near", "twin"} < set(ids(found))
    assert "even" not in ids(found)
    asking = found["asking"]
    assert (asking["answered"], asking["unasked"], asking["cost"], asking["stop"]) == (2, 4, 2.0, False)
    assert asking["worth"] >= asking["next"] > 0
    assert sum(each["worth"] for each in asking["classes"].values()) == pytest.approx(asking["worth"])
    assert {name: asking["classes"]["yes"][name] for name in RIGHT} == RIGHT
    # what a voter answers is no label, so nothing is remembered of how it was drawn
    assert suggest(gateway, **body) == found


def test_it_is_time_to_stop_where_no_answer_can_change_a_label(gateway: Gateway) -> None:
    dataset = uploaded(gateway, {})
    assert suggest(gateway, dataset=dataset, n=5, **{"for": "new"})["asking"]["stop"] is False
    assert suggest(gateway, dataset=dataset, n=5, **{"for": "guess"})["asking"]["classes"]["no"]["right"] == 0.55
    votes = {id: {"llm": "no"} for id in ("even", "near", "twin")}
    found = suggest(gateway, dataset=uploaded(gateway, votes, labeled=2), n=5, **{"for": "llm"})
    assert found["asking"]["stop"] is True
    # of a voter who never answered it is not known what the answers are worth
    few = gateway.upload(
        [{"indices": [0], "label": "no"}, {"indices": [1], "label": "yes"}, {"indices": [0], "values": [9.0]}]
    )
    assert suggest(gateway, dataset=str(few["id"]), n=5, **{"for": "guess"})["asking"]["stop"] is False


def test_documents_on_which_voters_differ_are_less_certain(gateway: Gateway) -> None:
    """The model is sure of one; three voters speak against it, one for it."""
    votes = {"far": {"rule": "no", "sure": "no", "llm": "no", "guess": "yes"}}
    plain, voted = (
        ids(suggest(gateway, dataset=uploaded(gateway, each), n=5, strategy="uncertain", random=0))
        for each in ({}, votes)
    )
    assert plain.index("far") == 4
    assert voted.index("far") < voted.index("no")


def test_a_suggestion_says_that_voters_differ(gateway: Gateway) -> None:
    votes = {"far": {"rule": "no", "sure": "yes"}, "near": {"rule": "no", "sure": "no"}, "even": {"llm": "yes"}}
    found = suggest(gateway, dataset=uploaded(gateway, votes), n=5)
    assert {each["id"] for each in found["suggestions"] if each["voters_differ"]} == {"far"}


def test_votes_raise_doubts(gateway: Gateway) -> None:
    dataset = uploaded(gateway, {"known1": {"rule": "no"}, "known3": {"guess": "no"}})
    left_out = {position: [0.9, 0.1] if position % 2 == 0 else [0.2, 0.8] for position in range(8)}
    publish(gateway.store, dataset=dataset, calibrated=True, report=REPORT, left_out=left_out)
    answer = gateway.client.post("/v1/models/news/doubts", json={"dataset": dataset}).json()["doubts"]
    held_out = [each for each in answer if each["why"] != "duplicate"]
    assert [(each["id"], each["likelier"], each["why"]) for each in held_out] == [("known1", "no", "votes")]


@pytest.mark.parametrize(
    ("body", "field", "detail"),
    [
        ({"for": "ann"}, "for", "a person who labels"),
        ({"for": "llm", "claim": 60}, "for", "for people"),
        ({"price": 1.0}, "price", "name the voter"),
        ({"for": "llm", "price": -1.0}, "price", ""),
        ({"for": ""}, "for", ""),
    ],
)
def test_what_cannot_be_asked(gateway: Gateway, body: dict[str, Any], field: str, detail: str) -> None:
    dataset = uploaded(gateway, {})
    annotate(gateway, dataset, {"document": "far", "label": "yes", "by": "ann"})
    answer = gateway.client.post("/v1/models/news/suggest", json={"dataset": dataset, **body})
    (fault,) = problem_of(answer, 422)["errors"]
    assert fault["field"] == field
    assert detail in fault["detail"]


def test_a_model_without_probabilities_knows_no_worth(gateway: Gateway) -> None:
    dataset = uploaded(gateway, {})
    publish(gateway.store, dataset=dataset, report=REPORT)
    answer = gateway.client.post("/v1/models/news/suggest", json={"dataset": dataset, "for": "llm"})
    assert "probabilities" in problem_of(answer, 422)["errors"][0]["detail"]
