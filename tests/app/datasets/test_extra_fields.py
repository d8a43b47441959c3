"""Columns that are kept beside documents, over HTTP: shown with them, through relabelings, and sent again."""

import io

import httpx
import pyarrow.parquet as pq

from tests.app.conftest import NDJSON, Gateway, problem_of

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
    assert [each["fields"] for each in gateway.client.get(f"/v1/datasets/{relabeled['id']}/documents").json()["documents"]] == FIELDS

    def table(media_type: str, **query: str) -> bytes:
        return gateway.client.get(f"/v1/datasets/{relabeled['id']}/documents", params=query, headers={"accept": media_type}).content

    assert table("text/csv").decode().splitlines() == [
        "id,text,label,drawn,skipped,when,who",
        "d1,late again,sport,unknown,false,2026-01-02,Ada",
        "d2,vote,politics,unknown,false,,'=1+2",
        "d3,cup,sport,unknown,false,2026-03-04,",
    ]
    assert b"unknown,false,,=1+2\n" in table("text/csv", exact="true", limit="1")
    rows = pq.read_table(io.BytesIO(table("application/vnd.apache.parquet"))).to_pylist()
    assert rows[1] == {"id": "d2", "text": "vote", "label": "politics", "drawn": "unknown", "skipped": False, "when": "", "who": "=1+2"}

    # what the service gives it takes again
    assert "skipped" in problem_of(send(lines, NDJSON), 422)["detail"]
    assert send(lines, NDJSON, extra="ignore").json()["sha256"] == relabeled["sha256"]

    assert gateway.client.delete(f"/v1/datasets/{relabeled['id']}").status_code == 204
    assert not (gateway.root / "datasets" / made["id"]).exists()
