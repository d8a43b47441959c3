"""Several labels on a document: stored beside the rows, changed by relabelings, turned into single ones and back."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from core.documents.drawn import Draw
from core.documents.label_sets import EXCLUDED
from core.errors import InvalidDocuments
from storage.errors import LimitExceeded
from storage.process.settings import Settings
from storage.records import Dataset, Label
from storage.repositories.datasets import Batch, Datasets
from storage.repositories.datasets.labels import LabelLists
from storage.store import Store
from tests.storage.repositories.datasets.files.refusals import refusal
from tests.stores import make_dataset, rows

IDS = ["a", "b", "c", "d"]
LABELS: list[list[Label] | None] = [["wheat", "grain"], [], None, None]
NOT: list[list[Label] | None] = [None, None, ["ship"], None]


def batch(labels: Any = LABELS, excluded: Any = NOT, single: Any = None, **other: Any) -> Batch:
    features = [{position: 1.0} for position in range(len(labels))]
    return Batch(
        rows(*features, n_features=9),
        single or [None] * len(labels),
        other.pop("ids", IDS[: len(labels)]),
        label_lists=LabelLists(labels, excluded or [None] * len(labels)),
        **other,
    )


def known(store: Store, id: str) -> tuple[list[list[Label] | None], list[list[Label]]]:
    """The labels of all documents, None where they are not known, and those that do not apply."""
    sets = Datasets(store).open(id).label_sets
    assert sets is not None
    applied = zip(sets.sets(), sets.complete.tolist(), strict=True)
    return [each if complete else None for each, complete in applied], list(sets.sets(EXCLUDED))


def test_labels_come_back_as_they_were_given(store: Store) -> None:
    made = make_dataset(store, [batch()])
    assert (made.label_kind, made.n_labeled) == ("several", 2)
    assert made.classes == [("grain", 1), ("ship", 0), ("wheat", 1)]
    assert known(store, made.id) == ([["grain", "wheat"], [], None, None], [[], [], ["ship"], []])
    documents = Datasets(store).open(made.id)
    assert documents.labeled.tolist() == [True, True, False, False]
    assert (documents.class_indices == -1).all()
    assert "labels" not in made.files


def test_the_order_of_labels_and_batches_changes_no_byte(store: Store) -> None:
    one = make_dataset(store, [batch()])
    turned = [None if each is None else each[::-1] for each in LABELS]
    first, rest = Batch(rows({0: 1.0}, n_features=9), [None], ["z"]), batch()
    assert make_dataset(store, [batch(turned)]).sha256 == one.sha256
    assert known(store, make_dataset(store, [first, rest]).id)[0] == [None, ["grain", "wheat"], [], None, None]
    assert make_dataset(store, [batch([["grain"], [], None, None])]).sha256 != one.sha256


def test_documents_of_one_label_have_no_files_of_several(store: Store) -> None:
    made = make_dataset(store, [Batch(rows({0: 1.0}), ["a"])])
    assert (made.label_kind, [name for name in made.files if name.startswith("label_sets")]) == ("single", [])
    assert Datasets(store).open(made.id).label_sets is None


SINGLE = Batch(rows({0: 1.0}, n_features=9), ["a"], ["first"])


@pytest.mark.parametrize(
    ("batches", "document", "field", "words"),
    [
        ([batch([["x", "x"]], None)], "a", "labels", "'x' twice"),
        ([batch([None], [["x", "x"]])], "a", "not", "'x' twice"),
        ([batch([["x"]], [["x"]])], "a", "not", "'x', which labels has"),
        ([batch([["x"]], None, ["y"])], "a", "labels", "beside label"),
        ([batch([[""]], None)], "a", "labels", "1 to 256 characters"),
        ([batch([["x"], [3]], None)], "b", "labels", "all strings or all integers"),
        ([batch([None, None], [[3], ["x"]])], "b", "not", "all strings or all integers"),
        ([SINGLE, batch([["x"]], None)], "a", "labels", "all documents have label, or all labels"),
        ([batch([["x"]], None), SINGLE], "first", "label", "all documents have label, or all labels"),
        ([batch([None, ["x"]], None, ["y", None])], "a", "label", "all documents have label, or all labels"),
        ([batch([list(range(10_001))], None)], "a", "labels", "10001 labels, more than the 10000"),
        ([batch([None], None, drawn=np.array([1], np.int8))], "a", "drawn", "has no label"),
    ],
)
def test_what_does_not_go_together_is_refused(
    store: Store, batches: Sequence[Batch], document: str, field: str, words: str
) -> None:
    fault = refusal(store, *batches)[0]
    assert (fault.document, fault.field) == (document, field)
    assert words in fault.detail


def test_classes_are_bounded(store: Store) -> None:
    with (
        pytest.raises(LimitExceeded, match="classes"),
        Datasets(store, Settings(max_classes=2)).builder() as builder,
    ):
        builder.add(batch([["x", "y"], ["z"]], None))


def relabel(store: Store, made: Dataset, labels: Mapping[str, Any], **other: Any) -> Dataset:
    return Datasets(store).relabel(made.id, labels, **other)


def test_relabeling_changes_sets(store: Store) -> None:
    made = make_dataset(store, [batch(drawn=np.array([1, 0, 0, 0], np.int8))])
    changed = relabel(
        store,
        made,
        {"a": None, "c": ("ship", "corn"), "d": ("corn",)},
        drawn={"c": "chosen"},
        excluded={"b": ("wheat",)},
    )
    assert known(store, changed.id) == ([None, [], ["corn", "ship"], ["corn"]], [[], ["wheat"], [], []])
    assert changed.classes == [("corn", 2), ("ship", 1), ("wheat", 0)]
    assert (changed.n_labeled, changed.label_kind, changed.documents) == (3, "several", made.documents)
    drawn = Datasets(store).open(changed.id).drawn
    assert drawn is not None
    assert drawn.tolist() == [Draw.UNKNOWN, Draw.UNKNOWN, Draw.CHOSEN, Draw.UNKNOWN]
    assert known(store, made.id)[0] == [["grain", "wheat"], [], None, None]


@pytest.mark.parametrize(
    ("labels", "other", "document", "words"),
    [
        ({"a": "grain"}, {}, "a", "must be a list"),
        ({"a": ("x", "x")}, {}, "a", "'x' twice"),
        ({"a": (3,)}, {}, "a", "all strings or all integers"),
        ({}, {"excluded": {"a": ("grain",)}}, "a", "labels has, too"),
        ({"e": ("x",)}, {}, "e", "no such document"),
        ({}, {"label_kind": "single"}, "a", "has not one label alone"),
        ({"a": "grain", "b": "ship"}, {"label_kind": "single"}, "c", "has not one label alone"),
        ({"a": ("grain",)}, {"label_kind": "single"}, "a", "has one label here"),
        ({}, {"drawn": {"c": "random"}}, "c", "has no label"),
    ],
)
def test_changes_that_are_refused(
    store: Store, labels: Mapping[str, Any], other: Any, document: str, words: str
) -> None:
    made = make_dataset(store, [batch()])
    with pytest.raises(InvalidDocuments, match=words) as caught:
        relabel(store, made, labels, **other)
    assert caught.value.faults[0].document == document


def test_single_labels_become_several_and_come_back(store: Store) -> None:
    ids = ["a", "b", "c"]
    made = make_dataset(store, [Batch(rows({0: 1.0}, {1: 1.0}, {2: 1.0}), ["y", None, "x"], ids)])
    several = relabel(store, made, {}, label_kind="several")
    assert known(store, several.id)[0] == [["y"], None, ["x"]]
    assert (several.label_kind, several.classes) == ("several", made.classes)
    again = relabel(store, several, {}, label_kind="single")
    assert again.sha256 == made.sha256
    assert Datasets(store).open(again.id).class_indices.tolist() == [1, -1, 0]


def test_a_document_of_two_labels_becomes_single_with_a_label_for_it(store: Store) -> None:
    made = make_dataset(store, [batch(LABELS[:2], None)])
    single = relabel(store, made, {"a": "grain", "b": None}, label_kind="single")
    assert (single.label_kind, single.classes, single.n_labeled) == ("single", [("grain", 1)], 1)
