"""Known labels of documents that may have several, and how labels were come by."""

import numpy as np
import pytest

from core.documents.drawn import Draw, checked_drawn
from core.documents.label_sets import EXCLUDED, LabelSets
from core.documents.rows import SparseRows
from core.errors import InvalidDocuments
from core.task import SingleTask
from core.train import TrainingTask, train

SETS = LabelSets.of([[2, 0], [], None, None], [None, None, [1], None], ["grain", "ship", "wheat"])
"""grain and wheat; looked at without finding any; no ship; unknown"""


def test_the_classes_of_a_document_are_sorted() -> None:
    assert list(SETS.sets()) == [["grain", "wheat"], [], [], []]
    assert list(SETS.sets(EXCLUDED)) == [[], [], ["ship"], []]
    assert SETS.complete.tolist() == [True, True, False, False]
    assert SETS.counts.tolist() == [1, 0, 1]
    assert SETS.n_rows == 4


def test_a_class_is_known_where_it_is_said_and_where_all_are() -> None:
    assert SETS.matrix().T.tolist() == [
        [1, -1, 0, 0],
        [-1, -1, -1, 0],
        [1, -1, 0, 0],
    ]


def test_documents_are_taken_in_any_order() -> None:
    taken = SETS.taken(np.array([2, 0, 0]))
    assert list(taken.sets()) == [[], ["grain", "wheat"], ["grain", "wheat"]]
    assert list(taken.sets(EXCLUDED)) == [["ship"], [], []]
    assert taken.complete.tolist() == [False, True, True]
    assert taken.indptr.dtype == np.int64


def task(drawn: list[int] | None, algorithm: str = "tsvm", **options: str) -> TrainingTask:
    """Documents of two classes that differ clearly; the first and the third are unlabeled."""
    features = np.array([0, 1, 0, 1, 0, 1], np.uint32)
    rows = SparseRows(np.arange(7, dtype=np.int64), features, np.ones(6, np.float32), 2)
    given = None if drawn is None else np.array(drawn, np.int8)
    return TrainingTask(rows, np.array([-1, 1, -1, 1, 0, 0]), ["no", "yes"], algorithm, options, drawn=given)


def test_every_draw_has_a_word() -> None:
    assert {draw.word: int(draw) for draw in Draw} == {"unknown": 0, "random": 1, "chosen": 2, "found": 3}
    assert all(Draw.of(draw.word) is draw for draw in Draw)
    with pytest.raises(KeyError):
        Draw.of("guessed")


@pytest.mark.parametrize(
    ("drawn", "detail"),
    [
        ([1, 2], "drawn: 2 given for 6 documents"),
        ([0, 1, 2, 3, 4, 0], r"drawn: must be one of 0 \(unknown\), 1 \(random\), 2 \(chosen\), 3 \(found\)"),
        ([0, 1, 2, 3, -1, 0], "drawn: must be one of"),
    ],
)
def test_what_is_no_draw_is_refused(drawn: list[int], detail: str) -> None:
    with pytest.raises(InvalidDocuments, match=detail) as caught:
        train(task(drawn))
    assert caught.value.faults[0].field == "drawn"


def test_a_matrix_is_refused() -> None:
    with pytest.raises(InvalidDocuments, match="2 dimensions"):
        checked_drawn(np.zeros((2, 2), np.int8), 2)


def test_a_training_knows_the_draws_of_its_labels_in_their_order() -> None:
    assert SingleTask.of(task([3, 1, 2, 0, 2, 3])).drawn.tolist() == [1, 0, 2, 3]
    assert SingleTask.of(task(None)).drawn.tolist() == [0, 0, 0, 0]


def test_what_the_job_says_of_all_labels_wins() -> None:
    assert SingleTask.of(task([3, 1, 2, 0, 2, 3], labels_drawn="random")).drawn.tolist() == [1, 1, 1, 1]
    assert SingleTask.of(task(None, labels_drawn="chosen")).drawn.tolist() == [3, 3, 3, 3]
    assert SingleTask.of(task([3, 1, 2, 0, 2, 3], labels_drawn="unknown")).drawn.tolist() == [1, 0, 2, 3]
