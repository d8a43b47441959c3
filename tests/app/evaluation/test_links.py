"""Evaluations by a link, with the labels that people gave."""

from typing import Any

import pytest

from tests.app.conftest import Gateway, annotate, body_of, problem_of, publish


@pytest.fixture
def dataset(gateway: Gateway) -> str:
    """Six documents, the first two labeled; by the model of ``publish`` the even ones are no."""
    lines: list[dict[str, Any]] = [{"id": f"v{k}", "indices": [k % 2], "values": [1.0]} for k in range(6)]
    lines[0]["label"], lines[1]["label"] = "no", "no"
    id = str(gateway.upload(lines)["id"])
    publish(gateway.store, dataset=id)
    return id


def show(gateway: Gateway, query: dict[str, Any], path: str = "news/evaluate") -> dict[str, Any]:
    return body_of(gateway.client.get(f"/v1/models/{path}", params=query))


def test_a_link_says_what_a_post_says(gateway: Gateway, dataset: str) -> None:
    posted = gateway.client.post("/v1/models/news/evaluate", json={"dataset": dataset}).json()
    for path in ("news/evaluate", "news/versions/1/evaluate"):
        assert show(gateway, {"dataset": dataset}, path) | {"evaluated_at": 0} == posted | {"evaluated_at": 0}
    assert (posted["labeled"], posted["error"]) == (2, 0.5)


def test_a_browser_gets_the_page_and_each_plot(gateway: Gateway, dataset: str) -> None:
    page = gateway.client.get("/v1/models/news/evaluate", params={"dataset": dataset}, headers={"accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    plot = gateway.client.get(
        "/v1/models/news/evaluate",
        params={"dataset": dataset, "plot": "confusion"},
        headers={"accept": "image/svg+xml"},
    )
    assert plot.text.startswith("<svg")


def test_labels_of_people_count_where_they_are_asked_for(gateway: Gateway, dataset: str) -> None:
    annotate(gateway, dataset, {"document": "v1", "label": "yes"}, {"document": "v2", "label": "no"})
    annotate(gateway, dataset, {"document": "v3", "label": "no"})
    assert show(gateway, {"dataset": dataset})["error"] == 0.5
    assert [
        show(gateway, {"dataset": dataset, "annotations": wanted})["labeled"] for wanted in (0, 2, 3, "latest")
    ] == [2, 3, 4, 4]
    assert show(gateway, {"dataset": dataset, "annotations": "latest"})["confusion"] == [[2, 1], [0, 1]]
    left = show(gateway, {"dataset": dataset, "annotations": "latest", "held_out": True})
    assert (left["labeled"], left["error"]) == (2, 0.5)
    posted = gateway.client.post("/v1/models/news/evaluate", json={"dataset": dataset, "annotations": 2}).json()
    assert (posted["labeled"], posted["error"]) == (3, 0)


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        ({}, 422, "dataset"),
        ({"annotations": 9}, 422, "the log of the dataset has 0 entries"),
        ({"annotations": "-1"}, 422, "annotations"),
        ({"annotations": "soon"}, 422, "annotations"),
        ({"held_out": "perhaps"}, 422, "held_out"),
        ({"plot": "reliability"}, 422, "not calibrated"),
        ({"dataset": f"ds-{'0' * 24}"}, 404, "ds-"),
    ],
)
def test_a_link_that_means_nothing_is_refused(
    gateway: Gateway, dataset: str, query: dict[str, Any], status: int, detail: str
) -> None:
    full = {"dataset": dataset, **query} if query else query
    assert detail in problem_of(gateway.client.get("/v1/models/news/evaluate", params=full), status)["detail"]


def test_documents_of_a_body_have_no_log(gateway: Gateway, dataset: str) -> None:
    body = {"documents": [{"indices": [0], "label": "no"}], "annotations": "latest"}
    assert "annotations" in problem_of(gateway.client.post("/v1/models/news/evaluate", json=body), 422)["detail"]
