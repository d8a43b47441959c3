"""Every type of problem has a page at its address, with cause and remedy."""

import pytest

from app.operations.problem_pages import ADVICE, PAGES
from tests.app.conftest import Gateway, problem_of


def test_every_type_has_advice_and_nothing_else_has() -> None:
    assert set(ADVICE) == set(PAGES)
    assert all(advice.cause.endswith(".") and advice.remedy.endswith(".") for advice in ADVICE.values())


def test_the_address_of_a_problem_is_a_page(gateway: Gateway) -> None:
    problem = problem_of(gateway.client.get("/v1/jobs/job-none"), 404)
    text = gateway.client.get(problem["type"])
    assert text.headers["content-type"].startswith("text/plain")
    assert text.text.startswith("Not found (404)\n\nCause: ")
    page = gateway.client.get(problem["type"], headers={"accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert "<h2>What helps</h2>" in page.text


@pytest.mark.parametrize(("method", "path"), [("PATCH", "/v1/jobs"), ("GET", "/nowhere"), ("GET", "/problems/none")])
def test_problems_of_http_have_pages_too(gateway: Gateway, method: str, path: str) -> None:
    assert gateway.client.get(gateway.client.request(method, path).json()["type"]).status_code == 200


def test_what_was_probably_meant(gateway: Gateway) -> None:
    dataset = gateway.upload([{"indices": [0], "label": "a"}, {"indices": [1], "label": "b"}])["id"]
    for fields, detail in (
        ({"algorithm": "tsvn"}, "did you mean 'tsvm'?"),
        ({"options": {"lamda": 1}}, "did you mean 'lambda'?"),
        ({"modle": "x"}, "did you mean 'model'?"),
    ):
        assert detail in problem_of(gateway.job(dataset=dataset, **fields), 422)["detail"]
    answer = gateway.client.post("/v1/datasets", json={"documents": [{"text": "a", "lable": "b"}]})
    assert "did you mean 'label'?" in problem_of(answer, 422)["detail"]
    assert "did you mean 'name'?" in problem_of(gateway.client.post("/v1/datasets?nmae=x", json={}), 422)["detail"]
