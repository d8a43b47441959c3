"""Models of every kind that is exported."""

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from core.documents.kinds import NamedRows, PartRows, Rows, RowsOfKind, TextRows
from core.documents.part_columns import Block, PartColumns, centre_of, unit_of
from core.documents.rows import SparseRows
from core.documents.term_weights import TermWeights
from core.documents.text.tfidf_fit import fit_terms
from core.documents.vocabulary import NUMBERS, Names
from core.kernels.function import Kernel
from core.models.kernel import KernelModel
from core.models.model import LinearModel, Model
from core.models.parted import PartedModel
from core.options.text import TextOptions
from core.validation.calibration import Calibration
from tests.core.problems import dense_of, random_rows

N = 1000


WORDS = ["goal", "vote", "späte", "ΟΔΟΣ", "ελιά", "x1", "İstanbul", "a", "the", "Wahl_2", "12", "未来"]


RNG = np.random.default_rng(3)


TEXTS = [" ".join(RNG.choice(WORDS, int(RNG.integers(0, 40)))) + ("." if k % 3 else "\u2028") for k in range(N - 1)] + [
    "goal " * 400
]


NAMED = [
    {
        str(name): float(value)
        for name, value in zip(RNG.choice(40, 4, replace=False), RNG.standard_normal(4), strict=True)
    }
    for _ in range(N)
]


VECTORS = RNG.standard_normal((N, 9)).astype(np.float32)


def linear(
    n_features: int, classes: list[Any], seed: int = 0, calibrated: bool = True, seen: float = 0.9
) -> LinearModel:
    rng, n_columns = np.random.default_rng(seed), 1 if len(classes) == 2 else len(classes)
    features = np.flatnonzero(rng.random(n_features) < seen).astype(np.uint32)
    calibration = Calibration(
        rng.uniform(0.5, 3, n_columns), rng.standard_normal(n_columns), rng.uniform(0.5, 2, len(classes))
    )
    weights = rng.standard_normal((len(features), n_columns))
    return LinearModel(
        classes,
        n_features,
        features,
        weights,
        rng.standard_normal(n_columns),
        calibration=calibration if calibrated else None,
    )


def named_rows() -> NamedRows:
    names = [str(k) for k in range(40)]
    dense = np.zeros((N, 40), np.float32)
    for row, each in enumerate(NAMED):
        for name, value in each.items():
            dense[row, int(name)] = value
    indptr = np.arange(0, 4 * N + 1, 4, dtype=np.int64)
    return NamedRows(SparseRows(indptr, np.nonzero(dense)[1].astype(np.uint32), dense[dense != 0], 40), names)


def vector_rows() -> SparseRows:
    return SparseRows(
        np.arange(N + 1, dtype=np.int64) * 9, np.tile(np.arange(9, dtype=np.uint32), N), VECTORS.ravel(), 9
    )


def parts() -> tuple[PartColumns, Rows, list[dict[str, Any]]]:
    terms = fit_terms(TextRows.of(TEXTS[: N // 2]), TextOptions(min_documents=1), lambda *_: None)
    names = Names([str(k) for k in range(30)])
    prices = SparseRows(np.arange(N + 1, dtype=np.int64), np.zeros(N, np.uint32), VECTORS[:, 0], 1)
    columns = PartColumns(
        [
            Block("text", terms, len(terms.keys)),
            Block("features", names, 30),
            Block("vector.price", NUMBERS, 1, unit=unit_of(prices)),
            Block("vector.bge", NUMBERS, 9, centre_of(vector_rows())),
        ]
    )
    given: dict[str, RowsOfKind] = {
        "text": TextRows.of(TEXTS),
        "features": named_rows(),
        "vector.bge": vector_rows(),
        "vector.price": prices,
    }
    documents = [
        {"text": text, "features": named, "vectors": {"bge": vector, "price": vector[:1]}}
        for text, named, vector in zip(TEXTS, NAMED, VECTORS.tolist(), strict=True)
    ]
    return columns, PartRows(given), documents


def incomplete() -> tuple[Model, Rows, list[dict[str, Any]]]:
    """A model with another one for documents without a vector, as every third is here."""
    columns, rows, documents = parts()
    assert isinstance(rows, PartRows)
    made = columns.ranges["vector.bge"]
    whole, other = (linear(size, ["a", "b", "c"], seed) for seed, size in enumerate((made.stop, made.start)))
    model = PartedModel.of(whole, other, np.array([[made.start, made.stop]]))
    lengths = np.where(np.arange(N) % 3 == 0, 0, 9)
    vectors = vector_rows().keeping(np.repeat(lengths > 0, 9))
    for document in documents[::3]:
        del document["vectors"]["bge"]
    return replace(model, vocabulary=columns), PartRows({**rows.parts, "vector.bge": vectors}), documents


def weighing(model: LinearModel, *, counts: bool, signed: bool = False, divided: bool = False) -> LinearModel:
    """The model with weights of terms."""
    idf = np.random.default_rng(9).uniform(1, 5, len(model.features)) if counts else np.ones(len(model.features))
    idf[: 2 * counts] *= -1.0  # numbers beside counts
    return replace(model, terms=TermWeights(idf, counts, signed, divided))


def _as_counts(
    rows: SparseRows, pairs: list[dict[str, Any]], unit: float = 1.0
) -> tuple[SparseRows, list[dict[str, Any]]]:
    """The same documents with counts of ``unit``, few of them large; the first has no whole ones, as documents may
    later on.
    """
    values = np.ceil(np.abs(rows.values) * 3).astype(np.float32)
    values[::50] *= 400
    values[: rows.indptr[1]] = rows.values[: rows.indptr[1]]
    values *= np.float32(unit)
    spans = itertools.pairwise(rows.indptr.tolist())
    return rows._replace(values=values), [
        {**each, "values": values[start:stop].tolist()} for each, (start, stop) in zip(pairs, spans, strict=True)
    ]


@cache
def cases() -> dict[str, tuple[Model, Rows, Any]]:
    """Models, documents as rows, and the same documents as people have them."""
    terms = {
        ngrams: fit_terms(TextRows.of(TEXTS[: N // 2]), TextOptions(min_documents=1, ngrams=ngrams), lambda *_: None)
        for ngrams in (1, 2)
    }
    sparse = random_rows(np.random.default_rng(1), N, 50)
    spans = itertools.pairwise(sparse.indptr.tolist())
    pairs = [{"indices": sparse.indices[a:b].tolist(), "values": sparse.values[a:b].tolist()} for a, b in spans]
    counted, of_counts = _as_counts(sparse, pairs)
    columns, part_rows, documents = parts()
    found: dict[str, tuple[Model, Rows, Any]] = {
        "words, two classes": (
            replace(linear(len(terms[1].keys), ["a", "b"]), vocabulary=terms[1]),
            TextRows.of(TEXTS),
            TEXTS,
        ),
        "terms, four classes": (
            replace(linear(len(terms[2].keys), ["ä", "b", "c", "d"]), vocabulary=terms[2]),
            TextRows.of(TEXTS),
            TEXTS,
        ),
        "names": (
            replace(linear(30, [1, 2, 3]), vocabulary=Names([str(k) for k in range(30)])),
            named_rows(),
            [{"features": each} for each in NAMED],
        ),
        "numbers, scores alone": (linear(45, ["a", "b"], calibrated=False), sparse, pairs),
        "counts": (weighing(linear(50, ["a", "b"]), counts=True), counted, of_counts),
        "lengths": (weighing(linear(50, ["a", "b", "c"]), counts=False), sparse, pairs),
        "divided counts": (weighing(linear(50, [1, 2]), counts=True, divided=True), *_as_counts(sparse, pairs, -1 / 7)),
        "signs of hashing": (weighing(linear(50, ["a", "b"]), counts=True, signed=True), sparse, pairs),
        "a dense matrix": (linear(50, ["a", "b", "c"], calibrated=False), sparse, dense_of(sparse)),
        "one class": (replace(linear(50, ["a"]), calibration=None), sparse, pairs),
        "parts": (replace(linear(int(columns.edges[-1]), ["a", "b", "c"]), vocabulary=columns), part_rows, documents),
        "parts, some of which documents lack": incomplete(),
    }
    support, vectors = random_rows(np.random.default_rng(5), 60, 40), vector_rows()
    features = np.arange(2, 42, dtype=np.uint32)
    for kernel in (Kernel("rbf", 0.3), Kernel("poly", 0.5, 3, 1.0)):
        weights = np.random.default_rng(6).standard_normal((60, 3)) * 1e4  # large ones magnify what kernel values lack
        found[kernel.name] = (
            KernelModel(["a", "b", "c"], 50, features, support, weights, np.arange(3.0), kernel),
            sparse,
            pairs,
        )
        wide = support._replace(n_features=400)
        more = KernelModel(
            ["a", "b", "c"], 402, np.arange(2, 402, dtype=np.uint32), wide, weights, np.arange(3.0), kernel
        )
        found[f"{kernel.name}, sparse"] = (more, sparse, pairs)
    far = vectors._replace(values=vectors.values + np.float32(1e4))
    near = KernelModel(
        ["a", "b"], 9, features[:9] - 2, far.between(0, 60), weights[:, :1], np.zeros(1), Kernel("rbf", 0.3)
    )
    found["rbf, far from the origin"] = (near, far, dense_of(far))
    return found
