"""The labels of a job as a table."""

import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from app.http import answers
from app.http.answers import CSV, PARQUET, write_parquet
from app.jobs import label_table
from app.jobs.label_table import Beside, label_columns, label_lines, label_rows
from core.documents.kinds import TextRows
from storage.errors import StoreUnavailable
from storage.records import Version
from storage.repositories.datasets import StoredFields
from storage.repositories.datasets.files.ids import Ids
from tests.app.conftest import Gateway, problem_of, publish


def test_the_labels_of_a_job_as_parquet(gateway: Gateway, version: Version) -> None:
    answer = gateway.client.get(f"/v1/jobs/{version.job}/labels", headers={"accept": PARQUET})
    assert answer.headers["content-type"] == PARQUET
    assert pq.read_table(io.BytesIO(answer.content)).to_pylist() == [
        {"id": "c", "label": "yes", "score": 1.0, "probability": None}
    ]


@pytest.mark.parametrize("n", [0, 1, 7])
def test_labels_are_written_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(label_table, "_BLOCK_LINES", 3)
    monkeypatch.setattr(answers, "_BLOCK_ROWS", 2)
    lines = [{"id": str(k), "label": k, "score": k / 2, "probability": 0.5} for k in range(n)]
    (tmp_path / "labels").write_text("".join(json.dumps(line) + "\n" for line in lines))
    file = io.BytesIO()
    path = tmp_path / "labels"
    write_parquet(label_columns(path, None), label_rows(path, None), file)
    assert pq.read_table(io.BytesIO(file.getvalue())).to_pylist() == lines


def test_extra_fields_stand_beside_their_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_table, "_BLOCK_LINES", 2)
    (tmp_path / "ids").write_text("".join(f'"d{k}"\n' for k in range(8)))
    (tmp_path / "labels").write_text(
        "".join(f'{{"id":"d{k}","label":"x","score":1.0,"probability":null}}\n' for k in (1, 2, 5, 7))
    )
    stored = StoredFields(["who", "score"], TextRows.of([f'["w{k}",{k}]' for k in range(8)]))
    beside = Beside(Ids(tmp_path / "ids", 8), stored)
    assert [column.name for column in label_columns(tmp_path / "labels", beside)] == [
        "id",
        "label",
        "score",
        "probability",
        "who",
        "fields.score",
    ]
    rows = [(row[0], *row[4:]) for row in label_rows(tmp_path / "labels", beside)]
    assert rows == [("d1", "w1", 1), ("d2", "w2", 2), ("d5", "w5", 5), ("d7", "w7", 7)]
    lines = b"".join(label_lines(tmp_path / "labels", beside)).splitlines()
    assert json.loads(lines[-1]) == {
        "id": "d7",
        "label": "x",
        "score": 1.0,
        "probability": None,
        "fields": {"who": "w7", "score": 7},
    }


def test_labels_of_other_documents_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "labels").write_text('{"id":"7","label":"x","score":1.0,"probability":null}\n')
    with pytest.raises(StoreUnavailable, match="the labels name the document '7'"):
        list(label_rows(tmp_path / "labels", Beside(Ids(None, 3), StoredFields([], None))))


def test_what_may_stand_beside_labels(gateway: Gateway) -> None:
    answer = gateway.client.get(f"/v1/jobs/{publish(gateway.store).job}/labels", params={"include": "text"})
    assert "include" in problem_of(answer, 422)["detail"]


def test_several_labels_in_tables_are_the_same_again(gateway: Gateway) -> None:
    """In Parquet as lists, in CSV with a separator that no label has; ``[]`` says that none was given."""
    given = {"a": ["x;y", "z"], "b": [], "c": ["z|"]}
    lines = [{"id": id, "labels": labels, "probabilities": dict.fromkeys(labels, 0.5)} for id, labels in given.items()]
    path = f"/v1/jobs/{publish(gateway.store, lines=lines).job}/labels"
    table = pq.read_table(io.BytesIO(gateway.client.get(path, headers={"accept": PARQUET}).content))
    assert table.to_pylist() == [{"id": id, "labels": labels} for id, labels in given.items()]
    refused = problem_of(gateway.client.get(path, headers={"accept": CSV}), 422)
    assert "';' cannot part the label 'x;y'; give another, as by ?separator=,, or ask" in refused["detail"]
    cells = gateway.client.get(path, params={"separator": "/"}, headers={"accept": CSV}).text
    assert cells == "id,labels\na,x;y/z\nb,[]\nc,z|\n"
