"""Warnings of jobs about values that do not suit their algorithm, by the ids and names that the owner of the dataset
gave.
"""

import json

import numpy as np
import pytest

from core.documents.kinds import NamedRows
from storage.records import JobState, Outcome
from storage.repositories.datasets import Batch
from storage.store import Store
from tests.core.problems import Array, rows_of
from tests.stores import make_dataset, outcome_of
from tests.workers.worker.attempts import attempted
from workers.worker.context import WorkerContext

N = 60


def clouds() -> tuple[Array, list[str | None]]:
    """Dense documents of two classes, a third of them labeled."""
    rng = np.random.default_rng(0)
    truth = np.arange(N) % 2
    labels = [("no", "yes")[each] if row < N // 3 else None for row, each in enumerate(truth.tolist())]
    return rng.standard_normal((N, 4)) + 2.0 * (2 * truth[:, None] - 1) * (np.arange(4) < 2), labels


def run(store: Store, context: WorkerContext, dense: Array, algorithm: str, **options: object) -> Outcome:
    rows = NamedRows(rows_of(dense), [f"column {number}" for number in range(dense.shape[1])])
    dataset = make_dataset(store, [Batch(rows, clouds()[1], [f"page {row}" for row in range(N)])])
    id = attempted(store, context, dataset=dataset.id, algorithm=algorithm, options=dict(options))
    return outcome_of(store, id)


@pytest.mark.parametrize("algorithm", ["kernel_svm", "ramp_svm", "svm"])
def test_a_job_bears_an_unlabeled_document_of_a_huge_value_and_names_it(
    store: Store, context: WorkerContext, algorithm: str
) -> None:
    dense, _ = clouds()
    dense[33, 3] = 4e18
    outcome = run(store, context, dense, algorithm)
    assert outcome.state is JobState.SUCCEEDED
    assert len(outcome.warnings) == 1
    assert "document 'page 33' has values up to 4.0e+18 of feature 'column 3'" in outcome.warnings[0]
    lines = [json.loads(line) for line in store.read(outcome.files["labels"].key).splitlines()]
    others = [line for line in lines if line["id"] != "page 33"]
    assert np.mean([line["label"] == ("no", "yes")[int(line["id"].split()[1]) % 2] for line in others]) > 0.9


def test_numbers_out_of_range_fail_a_job_by_the_name_of_what_is_too_large(store: Store, context: WorkerContext) -> None:
    dense, _ = clouds()
    dense[:, 2] += np.linspace(4e18, 5e18, N)
    outcome = run(store, context, dense, "kernel_svm", kernel="linear")
    assert outcome.state is JobState.FAILED
    assert outcome.error is not None
    assert outcome.error.type == "/problems/numerical-error"
    assert "feature 'column 2' outweighs all others together" in outcome.error.detail
    assert "leave it out, or divide its values by" in outcome.error.detail
    detail = "feature 'column 2' has the largest value of all, 5.0e+18"
    assert outcome.error.errors == [
        {"document": "page 59", "field": "values", "detail": detail, "place": "document 'page 59'"}
    ]
    followed = run(store, context, np.delete(dense, 2, axis=1), "kernel_svm", kernel="linear")
    assert (followed.state, followed.warnings) == (JobState.SUCCEEDED, [])
