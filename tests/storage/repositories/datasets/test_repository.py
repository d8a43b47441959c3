"""Datasets: faults that are refused, counts, the digest of the content, and shared documents."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Fault, InvalidDocuments
from storage.errors import InvalidName, LimitExceeded, NotFound, QuotaExceeded
from storage.names import new_id
from storage.process.settings import Settings
from storage.records import Dataset, Label
from storage.repositories.datasets import Batch, Datasets
from storage.repositories.datasets.quota import Quota
from storage.store import Store, json_records, open_store
from tests.stores import later, make_dataset, rows, sparse


def build(store: Store, batches: Sequence[Batch], limits: Settings | None = None) -> Dataset:
    with Datasets(store, limits).builder() as builder:
        for batch in batches:
            builder.add(batch)
        return builder.seal()


def refusal(store: Store, *batches: Batch, limits: Settings | None = None) -> list[Fault]:
    """The faults for which a dataset is refused; nothing of it stays."""
    with pytest.raises(InvalidDocuments) as caught:
        build(store, batches, limits)
    assert store.children("datasets") == []
    return list(caught.value.faults)


def test_a_dataset_comes_back_as_it_was_given(store: Store) -> None:
    first = Batch(rows({1: 0.5, 4: 2.0}, {}, n_features=6), ["b", None], ["x", "y"])
    second = Batch(rows({0: 1.0}, {5: 3.0, 2: -1.0}, n_features=7), ["a", "b"], ["z", "ü\n"])
    with Datasets(store).builder("my-set") as builder:
        builder.add(first)
        builder.add(second)
        assert builder.n_documents == 4
        dataset = builder.seal()
    assert Datasets(store).get(dataset.id) == dataset
    assert (dataset.name, dataset.n_documents, dataset.n_labeled, dataset.n_features, dataset.n_nonzeros) == (
        "my-set",
        4,
        3,
        7,
        5,
    )
    assert dataset.classes == [("a", 1), ("b", 2)]
    documents = Datasets(store).open(dataset.id)
    assert sparse(documents.rows).indptr.tolist() == [0, 2, 2, 3, 5]
    assert sparse(documents.rows).indices.tolist() == [1, 4, 0, 2, 5]
    assert sparse(documents.rows).values.tolist() == [0.5, 2.0, 1.0, -1.0, 3.0]
    assert documents.class_indices.tolist() == [1, -1, 0, 1]
    assert documents.classes == ["a", "b"]
    assert list(documents.ids) == ["x", "y", "z", "ü\n"]
    assert isinstance(sparse(documents.rows).indices, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        sparse(documents.rows).values[0] = 1


def test_warnings_name_what_is_odd(store: Store) -> None:
    dataset = make_dataset(store, [Batch(rows({1: 1.0}, {}, {3: 1.0}, n_features=6), ["a", "b", "b"])])
    assert dataset.warnings == [
        "1 document without any nonzero value",
        "4 features that no document has",
        "class 'a' has one labeled document",
    ]
    assert make_dataset(store, [Batch(rows({0: 1.0}), [None])]).warnings == ["no document is labeled"]


FRACTION: Any = [1.5]


@pytest.mark.parametrize(
    ("batch", "fault"),
    [
        (
            Batch(rows({1: 1.0}, {2: float("nan")}), [None, None], ["p", "q"]),
            Fault(
                "q", "values", "the value of index 2 is not a finite number, or beyond 3.4e38, the largest of float32"
            ),
        ),
        (
            Batch(rows({1: 1.0}, {9: 1.0}, n_features=5), [None, None]),
            Fault(2, "indices", "index 9 is not below the 5 features"),
        ),
        (Batch(rows({1: 1.0}), [True]), Fault(1, "label", "must be a string or an integer")),
        (Batch(rows({1: 1.0}), [7]), Fault(1, "label", "labels must be all strings or all integers")),
        (Batch(rows({1: 1.0}), FRACTION), Fault(1, "label", "must be a string or an integer")),
        (Batch(rows({1: 1.0}), [""]), Fault(1, "label", "must have 1 to 256 characters")),
        (Batch(rows({1: 1.0}), ["\ud800"]), Fault(1, "label", "is not valid Unicode")),
        (Batch(rows({1: 1.0}), [None], [""]), Fault(1, "id", "must have 1 to 256 characters")),
        (Batch(rows({1: 1.0}), [None], [5]), Fault(1, "id", "must be a string")),  # type: ignore[list-item]
        (Batch(rows({1: 1.0}), [None], ["\ud800"]), Fault(1, "id", "is not valid Unicode")),
        (Batch(rows({1: 1.0}), [None, None]), Fault("", "label", "2 given for 1 documents")),
        (Batch(rows({1: 1.0}), [None], []), Fault("", "id", "0 given for 1 documents")),
    ],
)
def test_faults_name_document_and_field(store: Store, batch: Batch, fault: Fault) -> None:
    assert refusal(store, Batch(rows({0: 1.0}), ["a"]), batch) == [fault]


def test_integers_must_fit(store: Store) -> None:
    assert refusal(store, Batch(rows({0: 1.0}, {0: 1.0}), [2**63, -(2**63)])) == [Fault(0, "label", "must fit 64 bits")]


def test_strings_and_integers_in_one_batch(store: Store) -> None:
    assert refusal(store, Batch(rows({0: 1.0}, {0: 1.0}), ["a", 1])) == [
        Fault(1, "label", "labels must be all strings or all integers")
    ]


def test_at_most_twenty_faults_of_all_kinds(store: Store) -> None:
    batch = Batch(rows(*[{0: float("nan")}] * 30), [None] * 29 + [True])
    assert [fault.document for fault in refusal(store, batch)] == [*range(20)]


def test_no_documents(store: Store) -> None:
    assert refusal(store) == [Fault("", "documents", "there is none")]


@pytest.mark.parametrize(
    ("batches", "fault"),
    [
        ([["a", "b"], ["c", "a"]], Fault("a", "id", "is used twice, again by document number 4")),
        ([None, ["1", "x"]], Fault("1", "id", "is used twice, again by document number 3")),
        ([["a", "3"], [None, None]], Fault("3", "id", "is used twice, again by document number 4")),
    ],
)
def test_ids_must_differ_across_batches(store: Store, batches: list[list[str | None] | None], fault: Fault) -> None:
    two = rows({0: 1.0}, {1: 1.0})
    assert refusal(store, *(Batch(two, [None, None], ids) for ids in batches)) == [fault]


def test_ids_that_are_positions_are_not_stored(store: Store) -> None:
    two = rows({0: 1.0}, {1: 1.0})
    said = make_dataset(store, [Batch(two, ["a", None], ["0", None]), Batch(two, ["b", None], ["2", "3"])])
    unsaid = make_dataset(store, [Batch(two, ["a", None]), Batch(two, ["b", None])])
    assert said.sha256 == unsaid.sha256
    assert "ids" not in said.files
    assert list(Datasets(store).open(said.id).ids) == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("limits", "what"),
    [
        (Settings(max_documents=1), "documents"),
        (Settings(max_features=3), "features"),
        (Settings(max_nonzeros=2), "nonzeros"),
        (Settings.model_construct(max_classes=1), "classes"),
        (Settings(max_dataset_bytes=40), "bytes"),
    ],
)
def test_limits(store: Store, limits: Settings, what: str) -> None:
    batch = Batch(rows({0: 1.0}, {3: 1.0, 1: 2.0}), ["a", "b"])
    with pytest.raises(LimitExceeded, match=what):
        build(store, [batch], limits)
    assert store.children("datasets") == []
    exact = Settings(max_documents=2, max_features=4, max_nonzeros=3, max_classes=2, max_dataset_bytes=48)
    assert build(store, [batch], exact).n_documents == 2


@pytest.mark.parametrize("name", ["", " a", "a\n", "a\nb", "a\u2028b", "x" * 129])
def test_names(store: Store, name: str) -> None:
    with pytest.raises(InvalidName):
        Datasets(store).builder(name)


documents = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, 7), st.sampled_from([0.0, 0.5, -1.0]), max_size=4),
        st.sampled_from([None, "a", "b", "c"]),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=25, deadline=None)
@given(documents, st.data())
def test_the_digest_is_of_the_content(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[dict[int, float], Label | None]], data: Any
) -> None:
    store = open_store(f"file://{tmp_path_factory.mktemp('s')}")
    whole = make_dataset(store, [Batch(rows(*(row for row, _ in drawn), n_features=8), [label for _, label in drawn])])
    cut = data.draw(st.integers(0, len(drawn)))
    shuffled = [({key: row[key] for key in data.draw(st.permutations(list(row)))}, label) for row, label in drawn]
    parts = [part for part in (shuffled[:cut], shuffled[cut:]) if part]
    again = make_dataset(
        store, [Batch(rows(*(row for row, _ in part), n_features=8), [label for _, label in part]) for part in parts]
    )
    assert again.sha256 == whole.sha256
    other = [*drawn[:-1], (drawn[-1][0], "d")]
    changed = make_dataset(
        store, [Batch(rows(*(row for row, _ in other), n_features=8), [label for _, label in other])]
    )
    assert changed.sha256 != whole.sha256


@pytest.mark.parametrize("id", ["", "ds-1", "../../etc", "ds-000000000000000000000000", "a/b"])
def test_unknown_datasets(store: Store, id: str) -> None:
    for act in (Datasets(store).get, Datasets(store).open, Datasets(store).delete):
        with pytest.raises(NotFound):
            act(id)


def relabeled(store: Store, labels: dict[str, Label | None]) -> tuple[Dataset, Dataset]:
    base = make_dataset(store, [Batch(rows({0: 1.0}, {1: 1.0}, {}), ["a", None, "b"], ["x", "y", "z"])])
    return base, Datasets(store).relabel(base.id, labels)


def test_relabeling_changes_labels_and_shares_documents(store: Store) -> None:
    base, changed = relabeled(store, {"x": None, "y": "c", "z": "0"})
    assert changed.classes == [("0", 1), ("c", 1)]
    assert changed.documents == base.id
    assert changed.files["indices"] == base.files["indices"]
    assert changed.warnings == [
        "1 document without any nonzero value",
        "class '0' has one labeled document",
        "class 'c' has one labeled document",
    ]
    opened = Datasets(store).open(changed.id)
    assert (opened.class_indices.tolist(), opened.classes, list(opened.ids)) == (
        [-1, 1, 0],
        ["0", "c"],
        ["x", "y", "z"],
    )
    assert Datasets(store).open(base.id).class_indices.tolist() == [0, -1, 1]
    posted = make_dataset(store, [Batch(rows({0: 1.0}, {1: 1.0}, {}), [None, "c", "0"], ["x", "y", "z"])])
    assert changed.sha256 == posted.sha256


def test_relabeling_by_position_and_to_another_kind(store: Store) -> None:
    base = make_dataset(store, [Batch(rows({0: 1.0}, {1: 1.0}), ["a", None])])
    changed = Datasets(store).relabel(base.id, {"0": 5, "1": -3})
    assert changed.classes == [(-3, 1), (5, 1)]
    assert Datasets(store).open(changed.id).class_indices.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("labels", "fault"),
    [
        ({"w": "a"}, Fault("w", "id", "there is no such document")),
        ({"x": True}, Fault("x", "label", "must be a string or an integer")),
        ({"y": 3}, Fault("y", "label", "labels must be all strings or all integers")),
    ],
)
def test_relabeling_refuses_and_keeps_nothing(store: Store, labels: dict[str, Label | None], fault: Fault) -> None:
    base = make_dataset(store, [Batch(rows({0: 1.0}, {1: 1.0}, {}), ["a", None, "b"], ["x", "y", "z"])])
    with pytest.raises(InvalidDocuments) as caught:
        Datasets(store).relabel(base.id, labels)
    assert list(caught.value.faults) == [fault]
    assert store.children("datasets") == [base.id]
    assert store.children(f"datasets/{base.id}/shared") == []


@pytest.mark.parametrize("id", ["01", "-1", "2", "²", "1" * 5000])
def test_positions_are_written_one_way(store: Store, id: str) -> None:
    base = make_dataset(store, [Batch(rows({0: 1.0}, {1: 1.0}), ["a", None])])
    with pytest.raises(InvalidDocuments):
        Datasets(store).relabel(base.id, {id: "b"})


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_documents_live_as_long_as_a_dataset_shares_them(store: Store, order: tuple[int, int, int]) -> None:
    base, first = relabeled(store, {"y": "a"})
    family = [base, first, Datasets(store).relabel(first.id, {"y": "b"})]
    assert family[2].documents == base.id
    for done, place in enumerate(order):
        Datasets(store).delete(family[place].id)
        for dataset in (family[rest] for rest in order[done + 1 :]):
            assert sparse(Datasets(store).open(dataset.id).rows).n_nonzeros == 2
        with pytest.raises(NotFound):
            Datasets(store).open(family[place].id)
    assert store.children("datasets") == []


def test_collecting_removes_only_what_is_old_and_unsealed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = make_dataset(store)
    fresh = new_id("ds")
    with monkeypatch.context() as patch:
        patch.setattr("storage.names.time.time_ns", lambda: 1_700_000_000 * 10**9)
        torn = new_id("ds")
    for id in (fresh, torn):
        store.create(f"datasets/{id}/indptr.npy", b"x")
    datasets = Datasets(store)
    datasets.remove_abandoned()
    assert store.children("datasets") == sorted([kept.id, fresh, torn]), "a clock may be wrong"
    with later(monkeypatch, 3_700):
        datasets.remove_abandoned()
    assert store.children("datasets") == sorted([kept.id, fresh])
    with later(monkeypatch, 90_000):
        datasets.remove_abandoned()
    assert store.children("datasets") == [kept.id]


def test_array_headers_are_numpys_own(store: Store) -> None:
    dataset = make_dataset(store, [Batch(rows({}, {}), [1, 2])])
    assert dataset.n_nonzeros == 0
    for name in ("indptr", "indices", "values", "labels"):
        path = store.local(dataset.files[name])
        assert np.load(path, allow_pickle=False).ndim == 1
    assert json.loads(store.read(f"datasets/{dataset.id}/manifest.json"))["classes"] == [[1, 1], [2, 1]]


@pytest.mark.parametrize(("most", "n_bytes"), [(1, None), (9, 600)])
def test_uploads_at_the_same_time_are_counted_when_they_are_sealed(store: Store, most: int, n_bytes: int) -> None:
    datasets = Datasets(store, quota=Quota(store, most, n_bytes))
    with datasets.builder() as first, datasets.builder() as second:
        for builder in (first, second):
            builder.add(Batch(rows({1: 1.0}), [None]))
        kept = first.seal()
        with pytest.raises(QuotaExceeded):
            second.seal()
    assert store.children("datasets") == [kept.id]


def test_a_dataset_counts_while_it_is_created_and_nobody_waits_for_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    quota, create, counted = Quota(store, datasets=9), json_records.create, list[int]()

    def slow(*record: Any) -> bool:
        with ThreadPoolExecutor(1) as others:
            counted.append(others.submit(quota.used).result(timeout=20)[0])
        return create(*record)

    monkeypatch.setattr(json_records, "create", slow)
    with Datasets(store, quota=quota).builder() as builder:
        builder.add(Batch(rows({1: 1.0}), [None]))
        builder.seal()
    assert counted == [1]
