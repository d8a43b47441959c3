"""Audits: a random sample of the documents without a label, and the error of each version of a model on it.

A version that was told a label of the audit, since it was trained later, is compared with what cross-validation said
without that label. The promise of automatic labels takes only labels that the version was not told. So it is about the
last version from before the audit, if there is one.
"""

import secrets
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.datasets.shares import part_of
from app.predictions.scoring import DatasetScores, score_stored, scores_of_dataset
from app.review.schemas import AuditBody, AuditOut, AuditReport, Automatic, Forecast, LabelError, VersionError
from app.services.wiring import Services
from core.documents.label_sets import LabelSets
from core.evaluation.forecast import Point, forecast
from core.models.model import Model
from core.numerics.binomial import clopper_pearson, fewest_labels, promise
from core.validation.label_calibration import LabelCalibration
from storage.errors import Conflict, NotFound
from storage.names import new_id
from storage.records import Version
from storage.repositories.datasets import Answer, Documents
from storage.repositories.datasets.annotations.offered import Audit

_MOST_VERSIONS = 50
_MORE = 20
"""Labels to come that a forecast is about."""
Positions = NDArray[np.int64]


class _Predictions(NamedTuple):
    """The predictions of a version for the labeled documents of an audit."""

    right: NDArray[np.bool_]
    """Whether the prediction is the label, shape (n,)."""
    usable: NDArray[np.bool_]
    """Whether it is that of a model that was not told the label, shape (n,)."""
    told: NDArray[np.bool_]
    """Whether the version was told the label, shape (n,); where that is unknown, it counts as told."""
    scores: DatasetScores
    learned: int | None
    """Number of labels that the version learned from; None if its dataset was deleted."""
    of_labels: list[LabelError] | None = None
    """Of several labels the errors of each that a document has or is given."""


class _LeftOut(NamedTuple):
    """Probabilities by cross-validation of documents of an audit whose labels a version has learned."""

    known: NDArray[np.bool_]
    """Whether it left them out, shape (n,)."""
    probabilities: NDArray[np.float32]
    """Of those, shape (n_known, n_classes)."""


def draw(services: Services, dataset: str, body: AuditBody) -> AuditOut:
    """Draw a sample of the documents that have no label and that nobody left out; raises NotFound, Conflict if there
    are none.
    """
    if body.model is not None:
        services.models.resolve(body.model)
    log = services.datasets.log(dataset)
    number, answers = log.refreshed(), log.answers()
    documents = services.datasets.open_annotated(dataset, answers)
    candidates = np.setdiff1d(np.flatnonzero(~documents.labeled), _answered(answers))
    if not len(candidates):
        raise Conflict("all documents of the dataset have labels or were left out, so there is nothing to draw from")
    seed = secrets.randbits(32) if body.seed is None else body.seed
    drawn = np.random.default_rng(seed).choice(candidates, min(body.n, len(candidates)), replace=False)
    audit = Audit(
        id=new_id("audit"),
        dataset=dataset,
        positions=drawn.tolist(),
        unlabeled=len(candidates),
        seed=seed,
        model=body.model,
        annotations=number,
        created_at=datetime.now(UTC),
    )
    services.datasets.audits.create(audit)
    return audit_out(audit, documents)


def audit_out(audit: Audit, documents: Documents) -> AuditOut:
    """The audit in the form of the contract."""
    ids = documents.ids.by_position(audit.positions)
    return AuditOut(
        documents=[ids[position] for position in audit.positions],
        **audit.model_dump(exclude={"positions", "annotations"}),
    )


def report(
    services: Services, dataset: str, id: str, reference: str | None, precision: float, person: str | None
) -> AuditReport:
    """Report of the labels of an audit by now, with what is open to a person, if one is named; raises NotFound."""
    audit = services.datasets.audits.get(dataset, id)
    answers = services.datasets.log(dataset).answers()
    answered = {*_answered(answers)}
    seen = {*_answered(part_of(services, dataset, person).answers)}
    documents = services.datasets.open_annotated(dataset, answers)
    drawn = audit_out(audit, documents)
    named = list(zip(audit.positions, drawn.documents, strict=True))
    labeled = np.array(sorted(position for position, _ in named if documents.labeled[position]), np.int64)
    likeliest = Counter(map(tuple, documents.given(labeled)))
    n_skipped = sum(position in answered and not documents.labeled[position] for position, _ in named)
    reference = audit.model if reference is None else reference
    errors, automatic, warnings = [], None, []
    if reference is not None:
        if "@" in reference:
            versions = [services.models.resolve(reference)]
        else:
            versions = list(services.models.versions(reference))[: -_MOST_VERSIONS - 1 : -1]
        found = {each.number: _predictions(services, each, audit, documents, labeled) for each in versions}
        errors = [_error(version, found[version.number]) for version in versions]
        # a promise is about the version that is served, or the newest before it that was trained before the audit
        served = services.models.resolve(reference)
        earlier = (
            version
            for version in [served, *versions]
            if version.number <= served.number and version.created_at <= audit.created_at and version.takes_over
        )
        promised = served if served.created_at <= audit.created_at else next(earlier, served)
        of_promised = found.get(promised.number) or _predictions(services, promised, audit, documents, labeled)
        automatic = _automatic(services, promised, of_promised, audit, documents, precision)
    unknown = [str(each.version) for each in errors if each.learned is None]
    if unknown:
        warnings.append(
            "the dataset of a version was deleted, so only versions from before the audit are known to have been told "
            f"none of its labels: this concerns version {', '.join(unknown)}"
        )
    if n_skipped:
        warnings.append(
            f"{n_skipped} documents of the audit were left out: if these are the hard ones, the error is higher "
            "than it looks"
        )
    return AuditReport(
        **drawn.model_dump(),
        labeled=len(labeled),
        likeliest=max(likeliest.values()) / len(labeled) if len(labeled) else None,
        skipped=n_skipped,
        open=[id for position, id in named if position not in seen],
        versions=errors,
        automatic=automatic,
        forecast=_forecast(errors),
        warnings=warnings,
    )


def _answered(answers: Mapping[int, Answer]) -> list[int]:
    """Positions of the documents that somebody gave a label or left out."""
    return [position for position, answer in answers.items() if answer.answered_by]


def _predictions(
    services: Services, version: Version, audit: Audit, documents: Documents, positions: Positions
) -> _Predictions:
    """The predictions of a version for labeled documents of an audit, by cross-validation where it has learned the
    label.
    """
    model, drawn = services.model_cache.load(version), np.sort(np.array(audit.positions, np.int64))
    of_audit = scores_of_dataset(services, version, model, audit.dataset, documents, drawn)
    places = np.searchsorted(drawn, positions)
    scores = DatasetScores._make(None if each is None else each[places] for each in of_audit)
    learned, told = _told(services, version, audit, positions)
    left_out = _left_out(services, version, positions, told if learned is not None else np.zeros_like(told))
    if version.label_kind == "several":
        return _predictions_of_several(
            model, documents, positions, _Predictions(told, ~told, told, scores, learned), left_out
        )
    predicted = scores.predicted.astype(np.int64)
    predicted[left_out.known] = np.argmax(left_out.probabilities, axis=1)
    right = [
        [version.classes[class_index]] == labels
        for class_index, labels in zip(predicted.tolist(), documents.given(positions), strict=True)
    ]
    return _Predictions(np.array(right, bool), ~told | left_out.known, told, scores, learned)


def _predictions_of_several(
    model: Model, documents: Documents, positions: Positions, predictions: _Predictions, left_out: _LeftOut
) -> _Predictions:
    """The predictions, right where all labels are, with the errors of each label."""
    sets = (documents.label_sets or LabelSets.of_single(documents.class_indices, documents.classes)).taken(positions)
    among = sets.among(model.classes)
    applies = among.matrix() > 0
    probabilities = np.zeros(applies.shape)
    for scored in score_stored(model, documents, positions):
        probabilities[np.searchsorted(positions, scored.positions)] = model.probabilities(scored.scores)
    probabilities[left_out.known] = left_out.probabilities
    usable = (~predictions.told | left_out.known)[:, None] & np.isfinite(probabilities)
    assert isinstance(model.calibration, LabelCalibration)
    given = model.calibration.given(np.nan_to_num(probabilities))
    wrong = given != applies
    right = ~wrong.any(axis=1)
    right[among.owners[among.indices < 0]] = False
    of_labels = [
        LabelError(
            label=model.classes[column],
            applies=int(np.count_nonzero(usable[:, column] & applies[:, column])),
            given=int(np.count_nonzero(usable[:, column] & given[:, column])),
            **_rate(usable[:, column], wrong[:, column]),
        )
        for column in np.flatnonzero((usable & (applies | given)).any(axis=0)).tolist()
    ]
    return predictions._replace(right=right, usable=np.asarray(usable.all(axis=1)), of_labels=of_labels)


def _left_out(services: Services, version: Version, positions: Positions, told: NDArray[np.bool_]) -> _LeftOut:
    """What cross-validation says of the documents at these positions that the version was told."""
    found = services.models.held_out(version) if told.any() else None
    if found is None:
        return _LeftOut(np.zeros_like(told), np.zeros((0, len(version.classes)), np.float32))
    places = np.searchsorted(found.positions, positions)
    places[places == len(found.positions)] = 0
    known = told & (found.positions[places] == positions)
    return _LeftOut(known, found.probabilities[places[known]])


def _told(
    services: Services, version: Version, audit: Audit, positions: Positions
) -> tuple[int | None, NDArray[np.bool_]]:
    """Number of labels that a version learned from, and whether the labels of these documents were among them.

    A version of other documents was told none of them. Where its dataset was deleted that is unknown, unless the
    version is from before the audit, whose documents had no label then.
    """
    try:
        labeled = services.datasets.open(version.dataset, version.annotations).labeled
        training = services.datasets.get(version.dataset).documents
    except NotFound:
        return None, np.full(len(positions), version.created_at > audit.created_at)
    same = training == services.datasets.get(audit.dataset).documents
    return int(np.count_nonzero(labeled)), labeled[positions] if same else np.zeros(len(positions), bool)


def _error(version: Version, predictions: _Predictions) -> VersionError:
    return VersionError(
        model=version.name,
        version=version.number,
        learned=predictions.learned,
        held_out=int(np.count_nonzero(predictions.usable & predictions.told)),
        by_label=predictions.of_labels,
        **_rate(predictions.usable, ~predictions.right),
    )


def _rate(usable: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> dict[str, Any]:
    """How many answers there are, and the errors among them."""
    n, errors = int(np.count_nonzero(usable)), int(np.count_nonzero(usable & wrong))
    low, high = clopper_pearson(errors, n)
    return {"labels": n, "errors": errors, "error": errors / n if n else None, "low": low, "high": high}


def _forecast(versions: list[VersionError]) -> Forecast | None:
    """The error after some more labels, by the versions of one model; None where the newest is better than their curve,
    which has then nothing to say of it.
    """
    points = [Point(each.learned, each.labels, each.errors) for each in versions if each.learned is not None]
    found = forecast(points, _MORE)
    newest = max((each for each in points if each.labels), key=lambda each: each.learned, default=None)
    if found is None or newest is None or newest.errors < found.expected * newest.labels:
        return None
    why = (
        f"{_MORE} more labels are likely to bring the error to {found.expected:.1%} ({found.low:.1%} to "
        f"{found.high:.1%}), by the curve of all versions"
    )
    return Forecast(labels=_MORE, expected=found.expected, low=found.low, high=found.high, why=why)


def _automatic(
    services: Services,
    version: Version,
    predictions: _Predictions,
    audit: Audit,
    documents: Documents,
    precision: float,
) -> Automatic:
    """How many documents the version may label at the promised precision."""
    untold = ~predictions.told
    several = version.label_kind == "several"
    found = None if several else promise(predictions.scores.certainty[untold], predictions.right[untold], precision)
    fields = {"model": version.name, "version": version.number, "precision": precision}
    if found is None:
        why = (
            "documents may have several labels, and a promise is about one: by_label has the error of each"
            if several
            else _missing(predictions.right[untold], int(np.count_nonzero(predictions.told)), precision)
        )
        return Automatic(**fields, possible=False, documents=0, at_least=None, labels=0, errors=0, why=why)
    scores = scores_of_dataset(services, version, services.model_cache.load(version), audit.dataset, documents)
    unlabeled = ~documents.labeled
    count = int(
        np.count_nonzero(unlabeled & (scores.certainty > (-1.0 if found.threshold is None else found.threshold)))
    )
    why = (
        f"{count} of {np.count_nonzero(unlabeled)} documents without a label may be labeled by version "
        f"{version.number}: at least {precision:.0%} of these labels "
        f"are right, which is wrong for one audit of twenty at most; of {found.labels} labels of the audit "
        f"among them {found.errors} were wrong"
    )
    return Automatic(
        **fields,
        possible=True,
        documents=count,
        at_least=found.threshold,
        labels=found.labels,
        errors=found.errors,
        why=why,
    )


def _missing(right: NDArray[np.bool_], told: int, precision: float) -> str:
    """The condition of a promise that is not met, by which labels are right of those that the version was not told."""
    fewest, untold = fewest_labels(precision), len(right)
    if untold < fewest:
        advice = (
            f"; {told} more were or may have been told to this version, so that they cannot count: draw another audit"
        )
        return (
            f"it takes {fewest} labels of an audit, none of them wrong, to promise {precision:.0%}, and there are "
            f"{untold}{advice if told else ''}"
        )
    return (
        f"of {untold} labels of the audit {np.count_nonzero(~right)} were wrong, also "
        f"where the version is the surest: {precision:.0%} cannot be promised for any document by so few labels"
    )
