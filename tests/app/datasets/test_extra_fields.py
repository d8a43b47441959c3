"""Columns that are kept beside documents, over HTTP: shown with them, through relabelings, and sent again."""

import io
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from tests.app.conftest import NDJSON, TWO_CLASSES, Gateway, problem_of

TABLE = "id,text,label,when,who\nd1,late again,sport,2026-01-02,Ada\nd2,vote,politics,,=1+2\nd3,cup,,2026-03-04,\n"
FIELDS = [{"when": "2026-01-02", "who": "Ada"}, {"when": "", "who": "=1+2"}, {"when": "2026-03-04", "who": ""}]


def test_they_go_with_their_documents(gateway: Gateway) -> None:
    def send(content: bytes | str, media_type: str, **query: str) -> httpx.Response:
        return gateway.client.post("/v1/datasets", content=content, params=query, headers={"content-type": media_type})

    made = send(TABLE, "text/csv").json()
    assert made["fields"] == ["when", "who"]
    address = f"/v1/datasets/{made['id']}"
    shown = gateway.client.get(f"{address}/documents").json()["documents"]
    assert [each["fields"] for each in shown] == FIELDS
    named = gateway.client.get(f"{address}/documents", params={"ids": "d3,d1"}).json()["documents"]
    assert [each["fields"] for each in named] == [FIELDS[2], FIELDS[0]]

    relabeled = gateway.client.put(f"{address}/labels", json={"labels": {"d3": "sport"}}).json()
    assert relabeled["fields"] == ["when", "who"]
    assert relabeled["sha256"] != made["sha256"]
    assert gateway.client.delete(address).status_code == 204
    lines = gateway.client.get(f"/v1/datasets/{relabeled['id']}/documents", headers={"accept": NDJSON}).content
    assert [
        each["fields"] for each in gateway.client.get(f"/v1/datasets/{relabeled['id']}/documents").json()["documents"]
    ] == FIELDS

    def table(media_type: str, **query: str) -> bytes:
        return gateway.client.get(
            f"/v1/datasets/{relabeled['id']}/documents", params=query, headers={"accept": media_type}
        ).content

    assert table("text/csv").decode().splitlines() == [
        "id,text,label,by,drawn,skipped,people,notes,flagged,when,who",
        "d1,late again,sport,,unknown,false,,,false,2026-01-02,Ada",
        "d2,vote,politics,,unknown,false,,,false,,'=1+2",
        "d3,cup,sport,,unknown,false,,,false,2026-03-04,",
    ]
    assert b"unknown,false,,,false,,=1+2\n" in table("text/csv", exact="true", limit="1")
    rows = pq.read_table(io.BytesIO(table("application/vnd.apache.parquet"))).to_pylist()
    assert rows[1] == {
        "id": "d2",
        "text": "vote",
        "label": "politics",
        "by": None,
        "drawn": "unknown",
        "skipped": False,
        "people": None,
        "notes": None,
        "flagged": False,
        "when": "",
        "who": "=1+2",
    }

    # what the service gives it takes again
    assert "skipped" in problem_of(send(lines, NDJSON), 422)["detail"]
    assert send(lines, NDJSON, extra="ignore").json()["sha256"] == relabeled["sha256"]

    assert gateway.client.delete(f"/v1/datasets/{relabeled['id']}").status_code == 204
    assert not (gateway.root / "datasets" / made["id"]).exists()


def test_what_becomes_of_them_is_said_of_documents_in_a_job(gateway: Gateway) -> None:
    """As of a dataset; of one that is named it was said when it was made."""
    documents = [{**each, "who": "Ada"} for each in TWO_CLASSES]
    body = {"documents": documents, "model": "m", "algorithm": "svm"}

    def submit(extra: str | None, **changes: Any) -> httpx.Response:
        query = {} if extra is None else {"extra": extra}
        return gateway.client.post("/v1/jobs", json=body | changes, params=query, headers={"idempotency-key": "k"})

    for extra in (None, "refuse"):
        assert "?extra=keep" in problem_of(submit(extra), 422)["detail"]
    assert problem_of(submit("no"), 422)["errors"][0]["field"] == "extra"
    assert gateway.client.get("/v1/datasets").json()["datasets"] == []
    job = submit("keep").json()
    made = gateway.client.get(f"/v1/datasets/{job['dataset']}").json()
    assert made["fields"] == ["who"]
    assert submit("keep").json()["id"] == job["id"]
    assert problem_of(submit("ignore"), 422)["type"] == "/problems/idempotency-conflict"
    assert (
        "is for documents in the body" in problem_of(submit("keep", documents=None, dataset=made["id"]), 422)["detail"]
    )


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("call", ["predict", "evaluate", "explain"])
def test_they_have_no_part_in_what_is_asked_of_a_model(gateway: Gateway, call: str) -> None:
    body = {"documents": [{"id": "x", "indices": [1], "values": [2.0], "label": "yes", "who": "Ada"}]}

    def ask(**query: str) -> httpx.Response:
        return gateway.client.post(f"/v1/models/news/{call}", json=body, params=query)

    assert "?extra=keep" in problem_of(ask(), 422)["detail"]
    answers = [ask(extra=extra) for extra in ("ignore", "keep")]
    assert [answer.status_code for answer in answers] == [200, 200]
    ignored, kept = ({**answer.json(), "evaluated_at": None} for answer in answers)
    assert ignored == kept
