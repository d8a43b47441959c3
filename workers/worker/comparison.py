"""Whether a new version takes over from the one that is served.

They are compared on labels that neither learned from: a version that is clearly worse does not take over.

The new version predicts a label by cross-validation, by a fit without it. The version that is served was trained
without the label, which is found by the content of documents in its dataset. The two are paired on each document, and a
sign test decides.

What is not fair about it does no harm. In cross-validation the new version has a third fewer labels than in the end: a
version that loses by that alone is not clearly worse. Labels of documents that ``suggest`` chose are hard for the
version that was unsure of them, which favours the new.
"""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import kind_of, row_digests
from core.documents.label_sets import APPLIES, EXCLUDED
from core.errors import InvalidDocuments
from core.models.model import Model
from core.numerics.binomial import is_worse, sign_test
from storage.errors import NotFound, StoreDamaged
from storage.records import Comparison, JobRequest, Version
from storage.repositories.datasets import Datasets, Documents
from storage.repositories.models import Models
from storage.store import Store

if TYPE_CHECKING:
    from core.train import Training

_MOST_LABELS = 5_000
"""labels that are compared at most: enough for any difference that matters"""
_ROWS = 500
"""documents that are compared at a time"""
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
    held_out = training.held_out
    if held_out is None:
        return _uncompared(
            "its training left no labels out, as auto does and other algorithms with the option probabilities"
        )
    difference = _difference(served, encoded, training.model)
    if difference is not None:
        return _uncompared(f"version {served.number}, which was served, has other {difference}")
    try:
        known = Datasets(store).open(served.dataset, served.annotations)
        rows, positions = _fresh_labels(documents, known, held_out, request.seed)
        new = _right(training.model, held_out[rows], documents, positions)
        old = _right_of_served(models.load(served), encoded, documents, positions)
        return _compared(served, documents, positions, new, old)
    except (NotFound, StoreDamaged, InvalidDocuments):
        return _uncompared(
            f"version {served.number}, which was served, or the dataset that it learned from was deleted or "
            "cannot be read"
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
    documents: Documents, known: Documents, held_out: NDArray[np.float64], seed: int
) -> tuple[Positions, Positions]:
    """The labels that neither version learned from: rows of the held-out scores, and positions of their documents; of
    too many some at random.
    """
    finite = np.isfinite(held_out)
    labeled = documents.known
    rows = np.flatnonzero(finite.all(axis=1) if documents.label_sets is None else finite.any(axis=1))
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
    probabilities = model.calibrated_probabilities(scores)
    known = documents.label_sets.taken(positions).among(model.classes).matrix()
    answers = np.where(model.given_labels(probabilities), APPLIES, EXCLUDED)
    return np.asarray(((answers == known) & np.isfinite(scores)).sum(axis=1))


def _right_of_served(model: Model, encoded: Documents, documents: Documents, positions: Positions) -> Positions:
    """How many answers of a model that predicts the documents anew, as they are ``encoded``, are right of each."""

    def parts() -> Iterator[Positions]:
        for start in range(0, len(positions), _ROWS):
            part = positions[start : start + _ROWS]
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
