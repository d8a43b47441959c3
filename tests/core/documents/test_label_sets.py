"""Known labels of documents that may have several."""

import numpy as np

from core.documents.label_sets import EXCLUDED, LabelSets

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
