"""Results of a training in the store: the model, its trace, the labels that it gave; and whether it takes over.

A new version is compared with the one that is served, on labels that neither was told: one that is clearly worse does
not take over.

The new version predicts a label by cross-validation, without having been told it; the version that is served was
trained without the label, which is found by the content of documents in its dataset. The two are paired on each
document, and a sign test decides.

What is not fair about it does no harm. In cross-validation the new version has a third fewer labels than in the end: a
version that loses by that alone is not clearly worse. Labels of documents that ``suggest`` chose are hard for the
version that was unsure of them, which favours the new.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from core.documents.kinds import kind_of, row_digests
from core.documents.label_sets import APPLIES, EXCLUDED
from core.errors import InvalidDocuments
from core.models.model import Model
from core.numerics.binomial import is_worse, sign_test
from core.one_vs_rest import own_scores
from core.problem import Status
from storage.errors import NotFound, StoreDamaged, StoreUnavailable, translate_os_errors
from storage.records import Comparison, File, HeldOut, JobRequest, Version
from storage.repositories.datasets import Datasets, Documents
from storage.repositories.models import Models
from storage.store import Store, staging_folder
from workers.worker.heartbeat import trace_row

if TYPE_CHECKING:
    from core.train import Training

_MOST_LABELS = 5_000
"""labels that are compared at most: enough for any difference that matters"""
_COMPARED_ROWS, _ROWS = 500, 10_000
"""documents that are compared, and lines of labels that are written, at a time"""
_FIRST_LOOK = (
    "a first look at clusters does not take over from version {}, which learned from labels; a job with another "
    '"model", or with "publish": "always", is served'
)

Positions = NDArray[np.int64]


def compare(
    store: Store, request: JobRequest, documents: Documents, training: "Training", encoded: Documents | None = None
) -> Comparison:
    """Whether the version of this training takes over from the one that is served now, and why. Raises
    StoreUnavailable.

    ``encoded`` are the documents with what an encoder has added, if one has: they are predicted with it, and recognised
    without it.
    """
    encoded = encoded or documents
    if request.publish == "always":
        return _uncompared("the job requested that")
    models = Models(store)
    try:
        served = models.resolve(request.model)
    except NotFound:
        return _uncompared("the model has no other")
    if request.algorithm == "clusters" and served.algorithm != "clusters":
        return Comparison(takes_over=False, why=_FIRST_LOOK.format(served.number))
    if training.held_out is None:
        return _uncompared(
            "its training left no labels out, as auto does and other algorithms with the option probabilities"
        )
    difference = _difference(served, encoded, training.model)
    if difference is not None:
        return _uncompared(f"version {served.number}, which was served, has other {difference}")
    try:
        known = Datasets(store).open(served.dataset, served.annotations)
        rows, positions = _fresh_labels(documents, known, training, request.seed)
        assert training.held_out is not None
        new = _right(training.model, training.held_out[rows], documents, positions)
        old = _right_of_served(models.load(served), encoded, documents, positions)
        return _compared(served, documents, positions, new, old)
    except (NotFound, StoreDamaged, InvalidDocuments):
        return _uncompared(
            f"version {served.number}, which was served, or the dataset that it learned from was deleted or "
            "cannot be read"
        )


def held_out_of(training: "Training") -> HeldOut | None:
    """How the labels left out were predicted.

    None of a training without cross-validation, or that could leave out none.
    """
    known = training.confidence
    return (
        None
        if known is None or not known.total
        else HeldOut(
            labels=known.total,
            right=known.right,
            by_chance=known.by_chance,
            likeliest=known.likeliest,
            by_votes=known.by_votes,
        )
    )


def _difference(served: Version, documents: Documents, model: Model) -> str | None:
    """The difference that makes two versions incomparable, None without one."""
    if list(served.classes) != list(model.classes):
        return "classes"
    other_numbers = served.kind == "vectors" and served.n_features != model.n_features
    facts = model.vocabulary.facts()
    other_parts = any(served.facts.get(name) != facts.get(name) for name in ("parts", "encoder_digest"))
    return "features" if served.kind != kind_of(documents.rows) or other_numbers or other_parts else None


def _fresh_labels(
    documents: Documents, known: Documents, training: "Training", seed: int
) -> tuple[Positions, Positions]:
    """The labels that neither version was told: rows of the held-out scores, and positions of their documents; of too
    many some at random.
    """
    assert training.held_out is not None
    finite = np.isfinite(training.held_out)
    labeled = documents.known
    rows = np.flatnonzero(finite.any(axis=1) if training.model.several else finite.all(axis=1))
    digests = set(row_digests(known.rows, np.flatnonzero(known.labeled)))
    fresh = np.fromiter(
        (digest not in digests for digest in row_digests(documents.rows, labeled[rows])), bool, len(rows)
    )
    rows = rows[fresh]
    if len(rows) > _MOST_LABELS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, _MOST_LABELS, replace=False))
    return rows, labeled[rows]


def _right(model: Model, scores: NDArray[np.float64], documents: Documents, positions: Positions) -> Positions:
    """How many answers of a model are right of each document, by its scores: whether its label is or, where it may have
    several, how many of those that are known.
    """
    if documents.label_sets is None:
        return np.asarray(model.labels_of(scores) == documents.class_indices[positions], np.int64)
    probabilities = model.probabilities(scores)
    assert probabilities is not None
    known = documents.label_sets.taken(positions).among(model.classes).matrix()
    answers = np.where(model.given_labels(probabilities), APPLIES, EXCLUDED)
    return np.asarray(((answers == known) & np.isfinite(scores)).sum(axis=1))


def _right_of_served(model: Model, encoded: Documents, documents: Documents, positions: Positions) -> Positions:
    """How many answers of a model that predicts the documents anew, as they are ``encoded``, are right of each."""

    def parts() -> Iterator[Positions]:
        for start in range(0, len(positions), _COMPARED_ROWS):
            part = positions[start : start + _COMPARED_ROWS]
            rows = model.vocabulary.read(encoded.rows.taken(part)).rows
            yield _right(model, model.scores(rows), documents, part)

    return np.concatenate([np.zeros(0, np.int64), *parts()])


def _compared(
    served: Version,
    documents: Documents,
    positions: Positions,
    new: Positions,
    old: Positions,
) -> Comparison:
    """The verdict on how much of the same documents the new version and the one that is served have right."""
    lost_of = positions[old > new]
    gained, lost = int(np.count_nonzero(new > old)), len(lost_of)
    worse, p_value = is_worse(gained, lost), sign_test(gained, lost)
    if documents.label_sets is None:
        compared, alone = "labels", ("alone is right", "alone")
    else:
        compared, alone = "documents with labels", ("has more right", "has more right")
    counts = (
        f"of {len(positions)} {compared} that neither was told, the new version {alone[0]} on {gained}, version "
        f"{served.number} {alone[1]} on {lost}"
    )
    if worse:
        labeled = Counter(label for given in documents.given(lost_of) for label in given)
        label, count = labeled.most_common(1)[0] if labeled else (None, lost)
        why = (
            f"the new version does not take over from version {served.number}: {counts}, which is not chance (p = "
            f"{p_value:.1g}). {count} of these {lost} documents are labeled {label!r}: check that these labels are "
            "right; more labels of documents like these would help most, and suggestions of the model name some. A job "
            'with "publish": "always" takes over in any case'
        )
    else:
        why = (
            f"the new version takes over, as it is not clearly worse: {counts}"
            if len(positions)
            else "the new version takes over: no label exists that neither was told"
        )
    return Comparison(
        takes_over=not worse,
        why=why,
        against=served.number,
        labels=len(positions),
        gained=gained,
        lost=lost,
        p_value=p_value,
    )


def _uncompared(why: str) -> Comparison:
    return Comparison(takes_over=True, why=f"the new version takes over without a comparison: {why}")


def usable(training: "Training") -> bool:
    """Whether all numbers of a training are finite, so that its model may be published."""
    finite = training.model.finite and bool(np.isfinite(training.scores).all())
    return training.status is not Status.NUMERICAL_ERROR and math.isfinite(training.objective) and finite


@translate_os_errors("write", "the results of a training")
def store_results(store: Store, training: "Training", documents: Documents, prefix: str) -> dict[str, File]:
    """Upload the files of a success under ``prefix``: ``model``, ``model_meta``, ``trace``, ``labels``, and
    ``held_out`` of a calibrated training that left labels out. Raises StoreUnavailable."""
    with staging_folder(store) as folder:
        arrays, meta = training.model.to_arrays()
        _write_model(folder / "model.safetensors", arrays)
        (folder / "model.json").write_text(json.dumps(meta | {"facts": training.model.facts()}))
        (folder / "trace.json").write_text(json.dumps([trace_row(point) for point in training.trace]))
        _write_labels(folder / "labels.ndjson", training, documents)
        names = {
            "model": "model.safetensors",
            "model_meta": "model.json",
            "trace": "trace.json",
            "labels": "labels.ndjson",
        }
        left_out = _left_out(training, documents)
        if left_out is not None:
            _write_model(folder / "held_out.safetensors", left_out)
            names["held_out"] = "held_out.safetensors"
        return {kind: store.upload(f"{prefix}/{name}", folder / name) for kind, name in names.items()}


def _left_out(training: "Training", documents: Documents) -> dict[str, NDArray[Any]] | None:
    """Positions of the labels that cross-validation left out, and the probabilities of the classes without them.

    None if there are none.
    """
    if training.held_out is None or training.model.calibration is None:
        return None
    finite = np.isfinite(training.held_out)
    known = finite.any(axis=1) if training.model.several else finite.all(axis=1)
    probabilities = training.model.probabilities(training.held_out[known])
    assert probabilities is not None
    probabilities = np.where(finite[known].repeat(probabilities.shape[1] // finite.shape[1], 1), probabilities, np.nan)
    return {
        "positions": documents.known[known],
        "probabilities": probabilities.astype(np.float32),
    }


def _write_model(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    except SafetensorError as error:
        raise StoreUnavailable(f"cannot write a model: {error}") from error


def _write_labels(path: Path, training: "Training", documents: Documents) -> None:
    """Write a line for each document that was unlabeled, in order: ``{"id", "label", "score", "probability"}``, or of
    several labels ``{"id", "labels", "probabilities"}``.

    ``score`` is that of the second of two classes, or of the given label among more; ``probability`` that of the given
    label, or null.
    """
    encode = msgspec.json.Encoder().encode
    lines = _lines_of_several(training) if training.model.several else _lines(training)
    ids, passed = iter(documents.ids), 0
    with path.open("wb") as file:
        for position, line in zip(training.unlabeled.tolist(), lines, strict=True):
            for _ in range(position - passed):
                next(ids)
            passed = position + 1
            file.write(encode({"id": next(ids)} | line) + b"\n")


def _lines(training: "Training") -> Iterator[dict[str, Any]]:
    """Label, score and probability of each document that was unlabeled, by a nested model with the path to it."""
    scores, model = training.scores, training.model
    if model.nested:
        yield from _nested_lines(training)
        return
    places = model.labels_of(scores, training.probabilities)
    for start in range(0, len(scores), _ROWS):
        part = slice(start, start + _ROWS)
        chosen = places[part]
        best = own_scores(scores[part], chosen)
        sure = (
            None
            if training.probabilities is None
            else training.probabilities[part][range(len(chosen)), chosen].tolist()
        )
        for row, place in enumerate(chosen.tolist()):
            yield {
                "label": model.classes[place],
                "score": float(best[row]),
                "probability": sure[row] if sure else None,
            }


def _nested_lines(training: "Training") -> Iterator[dict[str, Any]]:
    assert training.probabilities is not None
    likeliest = training.probabilities.argmax(axis=1)
    scores = own_scores(training.scores, likeliest).tolist()
    for start in range(0, len(scores), _ROWS):
        part = slice(start, start + _ROWS)
        told = training.model.tree.told(training.probabilities[part])
        for (label, path), score in zip(told, scores[part], strict=True):
            yield {"label": label, "score": score, "probability": path[label], "path": path}


def _lines_of_several(training: "Training") -> Iterator[dict[str, Any]]:
    """The labels of each document that was unlabeled, the likeliest first, with the probabilities worth telling."""
    assert training.probabilities is not None
    for start in range(0, len(training.probabilities), _ROWS):
        probabilities = training.probabilities[start : start + _ROWS]
        for labels, likely in zip(
            training.model.label_sets(probabilities), training.model.likely_labels(probabilities), strict=True
        ):
            yield {"labels": labels, "probabilities": likely}
