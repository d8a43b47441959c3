"""Uploads of tables over HTTP: the same dataset as of JSON, and what the dataset says of the table."""

from tests.app.conftest import NDJSON, Gateway, problem_of

TABLE = 'ticket,body,topic,age\nd1,"late, again",sport,9\nd2,vote,politics,8\nd3,cup,,7\n'
LINES = '{"id":"d1","text":"late, again","label":"sport"}\n{"id":"d2","text":"vote","label":"politics"}\n{"id":"d3","text":"cup"}\n'
COLUMNS = {"text": "body", "label": "topic", "id": "ticket"}


def test_a_table_gives_the_dataset_of_its_lines(gateway: Gateway) -> None:
    of_table = gateway.client.post("/v1/datasets", content=TABLE, params=COLUMNS | {"name": "t"}, headers={"content-type": "text/csv"})
    assert of_table.status_code == 201, of_table.text
    for media_type in (NDJSON, "application/jsonl", "application/ndjson"):
        of_lines = gateway.client.post("/v1/datasets", content=LINES, headers={"content-type": media_type})
        assert of_lines.json()["sha256"] == of_table.json()["sha256"]
    assert of_table.json()["warnings"][0] == "columns that are not used: 'age'"


def test_what_is_wrong_names_line_and_remedy(gateway: Gateway) -> None:
    answer = gateway.client.post("/v1/datasets", content=TABLE, headers={"content-type": "text/csv"})
    assert "say which column it is by ?text=NAME" in problem_of(answer, 422)["detail"]
    assert gateway.kept() == []


def test_zeros_and_ones_of_svmlight_are_pointed_out(gateway: Gateway) -> None:
    def warnings(body: str) -> list[str]:
        made = gateway.client.post("/v1/datasets", content=body, headers={"content-type": "text/x-svmlight"}).json()
        return [warning for warning in made["warnings"] if "0 is read as unlabeled" in warning]

    assert warnings("1 1:1\n0 2:1\n")
    assert not warnings("1 1:1\n0 2:1\n-1 2:1\n")
