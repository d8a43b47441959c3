"""Kernel models in a worker: published with their facts, refused when they would be too large, started from."""

import json

import numpy as np
import pytest

from core.models.kernel import KernelModel
from storage.records import JobState, Publication
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.stores import failure_of, make_dataset, outcome_of, sparse, submit
from tests.there import there
from tests.workers.worker.attempts import attempted, with_settings
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext

KERNEL_FAMILY = pytest.mark.parametrize("algorithm", ["kernel_svm", "ramp_svm", "cccp_tsvm"])


@KERNEL_FAMILY
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_a_model_is_published_with_its_facts_and_predicts(
    store: Store, context: WorkerContext, algorithm: str, kernel: str
) -> None:
    id = attempted(store, context, algorithm=algorithm, options={"kernel": kernel, "C": 10.0})
    job = Jobs(store).get(id)
    assert job.state is JobState.SUCCEEDED
    version = Models(store).resolve("news")
    model = Models(store).load(version)
    documents = Datasets(store).open(job.request.dataset)
    labels = [json.loads(line) for line in store.read(there(job.outcome).files["labels"].key).splitlines()]
    unlabeled = np.flatnonzero(documents.class_indices < 0)
    assert [line["label"] for line in labels] == [("no", "yes")[position % 2] for position in unlabeled]
    np.testing.assert_allclose(
        [line["score"] for line in labels], model.scores(sparse(documents.rows))[unlabeled, 0], atol=1e-4
    )
    if kernel == "linear":
        assert version.facts == {"family": "linear", "bytes": 21 * (4 + 8) + 8, "n_seen_features": 21}
        return
    assert isinstance(model, KernelModel)
    assert 0 < model.support.n_rows <= (60 if algorithm == "cccp_tsvm" else 12)
    size = sum(array.nbytes for array in model.to_arrays()[0].values())
    assert version.facts == {"family": "kernel", "kernel": kernel, "n_support": model.support.n_rows, "bytes": size}


@KERNEL_FAMILY
def test_a_model_that_would_be_too_large_fails_the_job_with_its_size(
    store: Store, context: WorkerContext, algorithm: str
) -> None:
    id = submit(store, algorithm=algorithm)
    Attempts(with_settings(context, max_model_bytes=300)).run(id)
    error = failure_of(store, id)
    assert (error.type, error.status) == ("/problems/model-too-large", 413)
    assert "would keep" in error.detail
    assert "more than the 300" in error.detail
    assert Models(store).names() == ([], None)


@pytest.mark.parametrize(
    ("algorithm", "used"), [("cccp_tsvm", True), ("ramp_svm", True), ("kernel_svm", False), ("tsvm", False)]
)
def test_starting_from_a_kernel_model(store: Store, context: WorkerContext, algorithm: str, used: bool) -> None:
    """From its scores, where the algorithm can start from scores; else the job warns that it was of no use."""
    dataset = make_dataset(store)
    attempted(store, context, dataset=dataset.id, algorithm="cccp_tsvm")
    id = attempted(store, context, dataset=dataset.id, algorithm=algorithm, start=Publication(name="news", version=1))
    outcome = outcome_of(store, id)
    assert outcome.state is JobState.SUCCEEDED
    assert any("of no use" in warning for warning in outcome.warnings) != used
    phases = {point["phase"].split("/")[-1] for point in json.loads(store.read(outcome.files["trace"].key))}
    assert "svm" not in phases or algorithm != "cccp_tsvm"
