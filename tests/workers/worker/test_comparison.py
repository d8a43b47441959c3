"""A new version that is clearly worse, on labels that neither was told, does not take over; and however it is cut
short, it never does.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.kinds import NamedRows, TextRows
from core.errors import InvalidDocuments
from core.models.model import LinearModel
from core.train import Training
from core.validation.confidence import Confidence
from storage.errors import StoreDamaged
from storage.records import Comparison, HeldOut, Job, JobDraft, JobState, Publish
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from storage.store.folder import FolderStore
from tests.stores import make_dataset, sparse, two_clouds
from tests.there import there
from tests.workers.worker.attempts import Faked, trained
from workers.worker.attempt import Attempts
from workers.worker.comparison import compare
from workers.worker.context import WorkerContext

CLOUDS = two_clouds(60, 6)
SIGNS = np.repeat([-1.0, 1.0, 0.0], [10, 10, 1])[:, None]
RIGHT = LinearModel(["no", "yes"], 21, np.arange(21, dtype=np.uint32), SIGNS, np.zeros(1))
"""model that is right on all of the clouds"""


def after(model: LinearModel, held_out: Any = None) -> Training:
    """A training that has ended with a model, and with held-out scores."""
    return replace(trained(), model=model, held_out=None if held_out is None else np.asarray(held_out, float)[:, None])


def truth(labeled: int) -> NDArray[np.float64]:
    """Held-out scores of the first labeled documents that are all right."""
    return np.where(np.arange(labeled) % 2, 1.0, -1.0)


class Loop:
    """The loop of labeling and training: each dataset has more labels than the one before."""

    def __init__(self, store: Store, context: WorkerContext, fake: list[Faked]) -> None:
        self.store, self.context, self.fake = store, context, fake
        self.dataset = make_dataset(store, [CLOUDS]).id

    def label(self, n: int) -> None:
        labels = {f"d{position}": ("no", "yes")[position % 2] for position in range(n)}
        self.dataset = Datasets(self.store).relabel(self.dataset, labels).id

    def submit(self, publish: Publish = "if_better", algorithm: str = "auto") -> str:
        job, _ = Jobs(self.store).create(
            JobDraft(dataset=self.dataset, model="news", algorithm=algorithm, publish=publish)
        )
        return job.request.id

    def train(self, training: Training, publish: Publish = "if_better", algorithm: str = "auto") -> Job:
        id = self.submit(publish, algorithm)
        self.fake.append(lambda _: training)
        Attempts(self.context).run(id)
        return Jobs(self.store).get(id)


@pytest.fixture
def loop(store: Store, context: WorkerContext, fake: list[Faked]) -> Loop:
    return Loop(store, context, fake)


@pytest.fixture
def labeled(loop: Loop) -> None:
    """A version of 12 labels is served, and 18 more labels have come since."""
    loop.train(after(RIGHT, truth(12)))
    loop.label(30)


def verdict(job: Job) -> Comparison:
    return there(there(job.outcome).comparison)


def test_the_first_version_takes_over(loop: Loop, store: Store) -> None:
    found = verdict(loop.train(after(RIGHT, truth(12))))
    assert found == Comparison(
        takes_over=True, why="the new version takes over without a comparison: the model has no other"
    )
    assert Models(store).resolve("news").comparison == found


@pytest.mark.usefixtures("labeled")
def test_a_version_that_is_clearly_worse_does_not_take_over(loop: Loop, store: Store) -> None:
    job = loop.train(after(RIGHT, np.where(np.arange(30) < 24, -truth(30), truth(30))))
    found = verdict(job)
    assert (found.takes_over, found.against, found.labels, found.gained, found.lost) == (False, 1, 18, 0, 12)
    assert found.p_value == pytest.approx(2**-12)
    assert found.why == (
        "the new version does not take over from version 1: of 18 labels that neither was told, the new "
        "version alone is right on 0, version 1 alone "
        "on 12, which is not chance (p = 0.0002). 6 of these 12 documents are labeled 'no': check that these "
        "labels are right; more labels of "
        "documents like these would help most, and suggestions of the model name some. A job with "
        '"publish": "always" takes over in any case'
    )
    assert there(job.outcome).warnings[-1] == found.why
    models = Models(store)
    assert models.resolve("news").number == 1
    assert (models.newest("news"), models.version("news", 2).comparison, job.version) == (2, found, 2)
    models.set_alias("news", "trial", 2)
    assert models.resolve("news@trial").number == 2


@pytest.mark.usefixtures("labeled")
def test_what_it_is_compared_with_is_the_version_that_is_served(loop: Loop, store: Store) -> None:
    for _ in range(2):
        assert verdict(loop.train(after(RIGHT, -truth(30)))).against == 1
    better = verdict(loop.train(after(RIGHT, truth(30))))
    assert (better.takes_over, better.against, better.gained, better.lost, better.p_value) == (True, 1, 0, 0, 1.0)
    assert better.why == (
        "the new version takes over, as it is not clearly worse: of 18 labels that neither was told, the new version "
        "alone is right on 0, version 1 alone on 0"
    )
    assert Models(store).resolve("news").number == 4
    assert verdict(loop.train(after(RIGHT, -truth(30)))).against == 4


def test_a_few_labels_are_no_evidence(loop: Loop, store: Store) -> None:
    loop.train(after(RIGHT, truth(12)))
    loop.label(16)
    found = verdict(loop.train(after(RIGHT, -truth(16))))
    assert (found.takes_over, found.labels, found.lost) == (True, 4, 4)


def test_without_labels_that_neither_was_told_it_takes_over(loop: Loop) -> None:
    loop.train(after(RIGHT, truth(12)))
    found = verdict(loop.train(after(RIGHT, -truth(12))))
    assert (found.takes_over, found.against, found.labels) == (True, 1, 0)
    assert found.why == "the new version takes over: no label exists that neither was told"


@pytest.mark.usefixtures("labeled")
def test_labels_that_no_fold_leaves_out_do_not_count(loop: Loop) -> None:
    assert verdict(loop.train(after(RIGHT, np.where(np.arange(30) < 20, -truth(30), np.nan)))).labels == 8


def test_documents_are_known_by_their_content(loop: Loop, store: Store) -> None:
    """The documents of another upload, in another order and with other ids."""
    loop.train(after(RIGHT, truth(12)))
    order = np.arange(60)[::-1]
    labels = [("no", "yes")[position % 2] if position < 30 else None for position in order.tolist()]
    loop.dataset = make_dataset(store, [CLOUDS._replace(rows=CLOUDS.rows.taken(order), labels=labels, ids=None)]).id
    found = verdict(loop.train(after(RIGHT, -truth(30)[::-1])))
    assert (found.takes_over, found.labels, found.lost) == (False, 18, 18)


@pytest.mark.usefixtures("labeled")
def test_always_takes_over(loop: Loop, store: Store) -> None:
    found = verdict(loop.train(after(RIGHT, -truth(30)), publish="always"))
    assert found.why == "the new version takes over without a comparison: the job requested that"
    assert Models(store).resolve("news").number == 2


def test_a_first_look_at_clusters_takes_over_from_another_one_alone(loop: Loop, store: Store) -> None:
    assert verdict(loop.train(after(RIGHT), algorithm="clusters")).takes_over, "the first"
    assert verdict(loop.train(after(RIGHT), algorithm="clusters")).takes_over
    loop.train(after(RIGHT, truth(12)))
    job = loop.train(after(RIGHT), algorithm="clusters")
    assert not verdict(job).takes_over
    assert "does not take over from version 3, which learned from labels" in there(job.outcome).warnings[-1]
    assert Models(store).resolve("news").number == 3
    assert verdict(loop.train(after(RIGHT), "always", "clusters")).takes_over


def test_without_held_out_scores_there_is_no_comparison(loop: Loop) -> None:
    loop.train(after(RIGHT, truth(12)))
    found = verdict(loop.train(after(RIGHT)))
    assert (found.takes_over, found.against) == (True, None)
    assert found.why.endswith(
        "its training left no labels out, as auto does and other algorithms with the option probabilities"
    )


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (LinearModel(["no", "maybe"], 21, RIGHT.features, SIGNS, np.zeros(1)), "classes"),
        (LinearModel(["no", "yes"], 25, RIGHT.features, SIGNS, np.zeros(1)), "features"),
    ],
)
def test_versions_of_other_classes_or_features_are_not_compared(
    loop: Loop, store: Store, other: LinearModel, what: str
) -> None:
    loop.train(after(other, truth(12)))
    loop.label(30)
    found = verdict(loop.train(after(RIGHT, -truth(30))))
    assert (
        found.why == f"the new version takes over without a comparison: version 1, which was served, has other {what}"
    )
    assert Models(store).resolve("news").number == 2


@pytest.mark.parametrize("kind", ["text", "features"])
def test_versions_of_other_kinds_are_not_compared(loop: Loop, store: Store, kind: str) -> None:
    loop.train(after(RIGHT, truth(12)))
    names = [f"f{column}" for column in range(21)]
    given = TextRows.of(["a"] * 60) if kind == "text" else NamedRows(sparse(CLOUDS.rows), names)
    documents = Datasets(store).open(make_dataset(store, [CLOUDS._replace(rows=given)]).id)
    request = Jobs(store).get(loop.submit()).request
    assert compare(store, request, documents, after(RIGHT, truth(12))).why.endswith("has other features")


def delete_dataset(store: Store) -> None:
    Datasets(store).delete(Models(store).version("news", 1).dataset)


def delete_files(store: Store) -> None:
    store.delete(Models(store).version("news", 1).files["model"].key)


@pytest.mark.usefixtures("labeled")
@pytest.mark.parametrize("lose", [delete_dataset, delete_files])
def test_what_was_deleted_is_not_compared(loop: Loop, store: Store, lose: Callable[[Store], None]) -> None:
    lose(store)
    assert verdict(loop.train(after(RIGHT, -truth(30)))).why.endswith(
        "or the dataset that it learned from was deleted or cannot be read"
    )


@pytest.mark.usefixtures("labeled")
@pytest.mark.parametrize("error", [StoreDamaged("jobs/x"), InvalidDocuments("too large a value")])
def test_what_cannot_be_read_is_not_compared(loop: Loop, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:

    def load(*_: Any) -> None:
        raise error

    monkeypatch.setattr(Models, "load", load)
    assert verdict(loop.train(after(RIGHT, -truth(30)))).why.endswith(
        "or the dataset that it learned from was deleted or cannot be read"
    )


def test_many_labels_are_compared_in_parts_and_up_to_a_bound(
    loop: Loop, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.worker.comparison._ROWS", 4)
    loop.train(after(RIGHT, truth(12)))
    loop.label(50)
    assert verdict(loop.train(after(RIGHT, truth(50)))).labels == 38
    monkeypatch.setattr("workers.worker.comparison._MOST_LABELS", 9)
    found = verdict(loop.train(after(RIGHT, -truth(50)), publish="if_better"))
    assert (found.labels, found.against) == (0, 2)
    documents, request = Datasets(store).open(loop.dataset), Jobs(store).get(loop.submit()).request
    Models(store).delete_version("news", 3)
    Models(store).delete_version("news", 2)
    assert compare(store, request, documents, after(RIGHT, -truth(50))).labels == 9


def test_how_labels_left_out_were_predicted_is_kept_with_the_version(loop: Loop, store: Store) -> None:
    loop.train(replace(after(RIGHT, truth(12)), confidence=Confidence(11, 10, 0.25, likeliest=0.5, by_votes=True)))
    assert Models(store).resolve("news").held_out == HeldOut(
        labels=11, right=10, by_chance=0.25, likeliest=0.5, by_votes=True
    )
    loop.train(replace(after(RIGHT, np.full(12, np.nan)), confidence=Confidence(0, 0, 1.0)))
    assert Models(store).resolve("news").held_out is None


@pytest.mark.parametrize(("confidence", "kept"), [("none", "none"), ("high", "high"), ("much", None), (None, None)])
def test_the_confidence_of_the_report_is_kept_with_the_version(
    loop: Loop, store: Store, confidence: Any, kept: Any
) -> None:
    loop.train(replace(after(RIGHT), report={"confidence": confidence}))
    assert Models(store).resolve("news").confidence == kept


class _Killed(BaseException):
    """The death of a process."""


def kill_before_write(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process write ``step`` times to the store, and no more."""
    done: list[str] = []

    def counted(name: str) -> None:
        act = getattr(FolderStore, name)

        def write(store: FolderStore, key: str, *arguments: Any) -> Any:
            if len(done) == step:
                raise _Killed
            done.append(key)
            return act(store, key, *arguments)

        monkeypatch.setattr(FolderStore, name, write)

    for name in ("create", "replace", "delete", "upload"):
        counted(name)


def submitted_worse(loop: Loop) -> str:
    """A job that makes a version that is worse than the one before."""
    loop.train(after(RIGHT, truth(12)))
    loop.label(30)
    id = loop.submit()
    loop.fake.append(lambda _: after(RIGHT, -truth(30)))
    return id


@pytest.mark.parametrize("step", range(11))
def test_a_worse_version_never_takes_over_wherever_its_process_is_killed(
    loop: Loop, store: Store, context: WorkerContext, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    id = submitted_worse(loop)
    with monkeypatch.context() as patch:
        kill_before_write(step, patch)
        with suppress(_Killed):
            Attempts(context).run(id)
    assert Models(store).resolve("news").number == 1
    context.redis_state.leases.revoke(id, 1)
    if Jobs(store).has_outcome(id):
        context.reconciler().reconcile()
    else:
        Attempts(context).run(id)
    job = Jobs(store).get(id)
    assert (job.state, job.version) == (JobState.SUCCEEDED, 2)
    assert not verdict(job).takes_over
    models = Models(store)
    assert (models.resolve("news").number, models.version("news", 2).comparison) == (1, verdict(job))
    assert list(Jobs(store).unfinished_ids()) == []


def test_the_steps_of_that_test_are_all(loop: Loop, context: WorkerContext, monkeypatch: pytest.MonkeyPatch) -> None:
    id = submitted_worse(loop)
    with monkeypatch.context() as patch:
        kill_before_write(11, patch)
        Attempts(context).run(id)
