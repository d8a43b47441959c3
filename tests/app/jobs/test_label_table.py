"""The labels of a job as Parquet."""

import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from app.jobs import label_table
from app.jobs.label_table import PARQUET, write_parquet
from tests.app.conftest import Gateway, publish


def test_the_labels_of_a_job_as_parquet(gateway: Gateway) -> None:
    version = publish(gateway.store)
    answer = gateway.client.get(f"/v1/jobs/{version.job}/labels", headers={"accept": PARQUET})
    assert answer.headers["content-type"] == PARQUET
    assert pq.read_table(io.BytesIO(answer.content)).to_pylist() == [{"id": "c", "label": "yes", "score": 1.0, "probability": None}]


@pytest.mark.parametrize("n", [0, 1, 7])
def test_labels_are_written_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(label_table, "_BLOCK_LINES", 3)
    lines = [{"id": str(k), "label": k, "score": k / 2, "probability": 0.5} for k in range(n)]
    (tmp_path / "labels").write_text("".join(json.dumps(line) + "\n" for line in lines))
    file = io.BytesIO()
    write_parquet(tmp_path / "labels", file)
    assert pq.read_table(io.BytesIO(file.getvalue())).to_pylist() == lines
