"""How labels were come by: stored beside them, kept by relabelings, known by itself for documents that were
suggested."""

from typing import Any

import numpy as np
import pytest

from core.documents.drawn import Draw
from core.errors import InvalidDocuments
from storage.repositories.datasets import Batch, Datasets
from storage.store import Store
from tests.stores import make_dataset, rows
from tests.there import there

LABELS = ["a", "b", None, "a", None]
DRAWS = [Draw.RANDOM, Draw.FOUND, Draw.UNKNOWN, Draw.UNKNOWN, Draw.UNKNOWN]


def batch(drawn: list[Draw] | None = DRAWS, labels: Any = LABELS) -> Batch:
    ids = [f"d{position}" for position in range(5)]
    return Batch(
        rows(*[{position: 1.0} for position in range(5)]),
        labels,
        ids,
        None if drawn is None else np.array(drawn, np.int8),
    )


def draws(store: Store, id: str) -> list[str]:
    drawn = Datasets(store).open(id).drawn
    return ["unknown"] * 5 if drawn is None else [Draw(draw).word for draw in drawn.tolist()]


def test_where_nothing_is_known_nothing_is_stored(store: Store) -> None:
    for drawn in (None, [Draw.UNKNOWN] * 5):
        made = make_dataset(store, [batch(drawn)])
        assert "drawn" not in made.files
        assert made.drawn == {}
        assert Datasets(store).open(made.id).drawn is None


def test_draws_of_a_later_batch(store: Store) -> None:
    without_ids = batch()._replace(ids=None)
    made = make_dataset(store, [without_ids._replace(drawn=None), without_ids, without_ids._replace(drawn=None)])
    drawn = there(Datasets(store).open(made.id).drawn)
    assert drawn.tolist() == [0] * 5 + [1, 3, 0, 0, 0] + [0] * 5


def test_a_number_of_draws_that_does_not_fit_is_refused(store: Store) -> None:
    with pytest.raises(InvalidDocuments, match="drawn: 2 given for 5 documents"):
        make_dataset(store, [batch(DRAWS[:2])])


def test_relabeling_keeps_the_draws_of_labels_that_stay_and_takes_new_ones(store: Store) -> None:
    base = make_dataset(store, [batch()])
    changed = Datasets(store).relabel(
        base.id, {"d0": "b", "d1": None, "d2": "a", "d4": "b"}, {"d4": "chosen", "d3": "found"}
    )
    assert draws(store, changed.id) == ["random", "unknown", "unknown", "found", "chosen"]
    assert changed.drawn == {"random": 1, "chosen": 1, "found": 1}
    assert draws(store, base.id) == ["random", "found", "unknown", "unknown", "unknown"]
    bare = Datasets(store).relabel(changed.id, dict.fromkeys(("d0", "d3", "d4")))
    assert "drawn" not in bare.files
    assert draws(store, bare.id) == ["unknown"] * 5


def test_labels_of_suggested_documents_know_how_they_were_come_by(store: Store) -> None:
    base = make_dataset(store, [batch(None, [None] * 5)])
    other = Datasets(store).relabel(base.id, {"d0": "a"})
    Datasets(store).record_suggested(other.id, {1: Draw.RANDOM, 2: Draw.CHOSEN, 3: Draw.CHOSEN})
    first = Datasets(store).relabel(
        other.id, {"d0": "b", "d1": "a", "d2": "b", "d3": "a", "d4": "a"}, {"d3": "unknown"}
    )
    assert draws(store, first.id) == ["unknown", "random", "chosen", "unknown", "unknown"]
    again = Datasets(store).relabel(base.id, {"d1": "a", "d2": "a"})
    assert draws(store, again.id) == ["unknown", "random", "chosen", "unknown", "unknown"], (
        "all that share the documents know it"
    )


def test_what_was_suggested_both_ways_counts_as_chosen(store: Store) -> None:
    base = make_dataset(store, [batch(None, [None] * 5)])
    for first, second, id in ((Draw.RANDOM, Draw.CHOSEN, "d0"), (Draw.CHOSEN, Draw.RANDOM, "d1")):
        for draw in (first, second):
            Datasets(store).record_suggested(base.id, {int(id[1:]): draw})
    assert draws(store, Datasets(store).relabel(base.id, {"d0": "a", "d1": "b"}).id)[:2] == ["chosen", "chosen"]


def test_records_of_suggestions_grow_with_the_documents_alone(store: Store) -> None:
    base = make_dataset(store, [batch(None, [None] * 5)])
    datasets, folder = Datasets(store), f"datasets/{base.id}/suggested"
    for _ in range(20):
        datasets.record_suggested(base.id, {1: Draw.RANDOM, 2: Draw.CHOSEN})
        Datasets(store).record_suggested(base.id, {2: Draw.CHOSEN})
    assert len(store.children(folder)) == 1
    for position in range(5):
        datasets.record_suggested(base.id, dict.fromkeys(range(position + 1), Draw.RANDOM))
    assert len(store.children(folder)) == 1 + 4
    datasets.delete(base.id)
    assert store.children("datasets") == []


def test_a_store_may_lose_a_record_between_its_list_and_its_content(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = make_dataset(store, [batch(None, [None] * 5)])
    Datasets(store).record_suggested(base.id, {1: Draw.RANDOM})
    children = store.children
    monkeypatch.setattr(
        store,
        "children",
        lambda prefix: [*children(prefix), "gone.json"] if prefix.endswith("suggested") else children(prefix),
    )
    assert draws(store, Datasets(store).relabel(base.id, {"d1": "a"}).id)[1] == "random"
