"""Audits: a random sample of the documents without a label, and what its labels say of each version of a model.

A version that was told a label of the audit, since it was trained later, is compared with what cross-validation said without that label. The promise
of automatic labels takes only labels that the version was not told. So it is about the last version from before the audit, if there is one.
"""

import secrets
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.predictions.dataset_scores import DatasetScores, scores_at, scores_of_dataset
from app.review.schemas import AuditBody, AuditOut, AuditReport, Automatic, Forecast, VersionError
from app.services import Services
from core.evaluation.forecast import Point, forecast
from core.evaluation.proportions import clopper_pearson, fewest_labels, promise
from workers.contract import Audit, Label, Version
from workers.errors import Conflict, NotFound
from workers.names import new_id
from workers.repositories.datasets import Documents

_MOST_VERSIONS = 50
_MORE = 20
"""Labels to come that a forecast is about."""
Positions = NDArray[np.int64]


class _Labels(NamedTuple):
    """The labels that an audit has by now."""

    positions: Positions
    """Positions of the documents, ascending."""
    labels: list[Label]


class _Answers(NamedTuple):
    """What a version says of the documents of an audit."""

    right: NDArray[np.bool_]
    """Whether it says the label that the document has, shape (n,)."""
    usable: NDArray[np.bool_]
    """Whether that is said by a model that was not told, shape (n,)."""
    told: NDArray[np.bool_]
    """Whether the version was told the label."""
    scores: DatasetScores
    learned: int | None
    """Number of labels that the version learned from; None if its dataset was deleted."""


def draw(services: Services, dataset: str, body: AuditBody) -> AuditOut:
    """Draw a sample of the documents that have no label and that nobody left out; raises NotFound, Conflict if there are none."""
    if body.model is not None:
        services.models.resolve(body.model)
    log = services.datasets.log(dataset)
    number, answers = log.refreshed(), log.answers()
    documents = services.datasets.open_annotated(dataset, answers)
    candidates = np.setdiff1d(np.flatnonzero(documents.class_indices < 0), list(answers))
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
    return AuditOut(documents=_ids(documents, audit.positions), **audit.model_dump(exclude={"positions", "annotations"}))


def report(services: Services, dataset: str, id: str, reference: str | None, precision: float) -> AuditReport:
    """What the labels of an audit say by now; raises NotFound."""
    audit = services.datasets.audits.get(dataset, id)
    answers = services.datasets.log(dataset).answers()
    documents = services.datasets.open_annotated(dataset, answers)
    labeled = [position for position in audit.positions if documents.class_indices[position] >= 0]
    skipped = [position for position in audit.positions if documents.class_indices[position] < 0 and position in answers]
    left = [position for position in audit.positions if documents.class_indices[position] < 0 and position not in answers]
    positions = np.array(sorted(labeled), np.int64)
    labels = _Labels(positions, [documents.classes[place] for place in documents.class_indices[positions].tolist()])
    reference = audit.model if reference is None else reference
    versions = [] if reference is None else _versions(services, reference)
    errors = [_error(version, _answers(services, version, dataset, documents, labels)) for version in versions]
    return AuditReport(
        **audit_out(audit, documents).model_dump(),
        labeled=len(labeled),
        skipped=len(skipped),
        open=_ids(documents, left),
        versions=errors,
        automatic=None
        if reference is None
        else _automatic(services, _untold(services, reference, versions, audit), dataset, documents, labels, precision),
        forecast=_forecast(errors),
        warnings=_warnings(len(labeled), len(skipped)),
    )


def _versions(services: Services, reference: str) -> list[Version]:
    """The newest versions of a model, or the one that an alias names."""
    if "@" in reference:
        return [services.models.resolve(reference)]
    return list(services.models.versions(reference))[: -_MOST_VERSIONS - 1 : -1]


def _untold(services: Services, reference: str, versions: list[Version], audit: Audit) -> Version:
    """The version that a promise is about: the one that is served, or the newest before it that was trained before the audit was drawn."""
    served = services.models.resolve(reference)
    earlier = (version for version in versions if version.number <= served.number and version.created_at <= audit.created_at and version.takes_over)
    if served.created_at <= audit.created_at:
        return served
    return next(earlier, served)


def _answers(services: Services, version: Version, dataset: str, documents: Documents, labels: _Labels) -> _Answers:
    """What a version says of the documents of an audit, by itself or, where it was told the label, by cross-validation."""
    scores = scores_at(services.model_cache.load(version), documents, labels.positions)
    predicted = scores.predicted.astype(np.int64)
    learned, told = _told(services, version, dataset, labels.positions)
    usable = ~told
    left_out = services.models.held_out(version) if told.any() else None
    if left_out is not None:
        places = np.searchsorted(left_out.positions, labels.positions)
        places[places == len(left_out.positions)] = 0
        known = told & (left_out.positions[places] == labels.positions)
        predicted[known] = np.argmax(left_out.probabilities[places[known]], axis=1)
        usable |= known
    said = [version.classes[place] for place in predicted.tolist()]
    right = np.array([one == other for one, other in zip(said, labels.labels, strict=True)], bool)
    return _Answers(right, usable, told, scores, learned)


def _told(services: Services, version: Version, dataset: str, positions: Positions) -> tuple[int | None, NDArray[np.bool_]]:
    """How many labels a version learned from, and whether those of these documents were among them. Those of other documents were not."""
    nothing = np.zeros(len(positions), bool)
    try:
        labeled = services.datasets.open(version.dataset, version.annotations).class_indices >= 0
        same = services.datasets.get(version.dataset).documents == services.datasets.get(dataset).documents
    except NotFound:
        return None, nothing
    return int(np.count_nonzero(labeled)), labeled[positions] if same else nothing


def _error(version: Version, answers: _Answers) -> VersionError:
    n = int(np.count_nonzero(answers.usable))
    errors = int(np.count_nonzero(answers.usable & ~answers.right))
    interval = clopper_pearson(errors, n)
    return VersionError(
        model=version.name,
        version=version.number,
        learned=answers.learned,
        labels=n,
        held_out=int(np.count_nonzero(answers.usable & answers.told)),
        errors=errors,
        error=errors / n if n else None,
        low=interval.low,
        high=interval.high,
    )


def _forecast(versions: list[VersionError]) -> Forecast | None:
    """What some more labels are likely to bring, by the versions of one model."""
    found = forecast([Point(each.learned, each.labels, each.errors) for each in versions if each.learned is not None], _MORE)
    if found is None:
        return None
    why = f"{_MORE} more labels are likely to bring the error from {found.now:.1%} to {found.expected:.1%} ({found.low:.1%} to {found.high:.1%})"
    return Forecast(labels=_MORE, now=found.now, expected=found.expected, low=found.low, high=found.high, why=why)


def _automatic(services: Services, version: Version, dataset: str, documents: Documents, labels: _Labels, precision: float) -> Automatic:
    """How many documents the version may label at the promised precision."""
    answers = _answers(services, version, dataset, documents, labels)
    untold = ~answers.told
    found = promise(answers.scores.certainty[untold], answers.right[untold], precision)
    fields = {"model": version.name, "version": version.number, "precision": precision}
    if found is None:
        why = _missing(int(np.count_nonzero(untold)), int(np.count_nonzero(answers.told)), precision)
        return Automatic(**fields, possible=False, documents=0, at_least=None, labels=0, errors=0, why=why)
    scores = scores_of_dataset(services, version, services.model_cache.load(version), dataset, documents)
    trusted = (documents.class_indices < 0) & (scores.certainty > (-1.0 if found.threshold is None else found.threshold))
    documents_left, count = int(np.count_nonzero(documents.class_indices < 0)), int(np.count_nonzero(trusted))
    why = (
        f"{count} of {documents_left} documents without a label may be labeled by version {version.number}: at least {precision:.0%} of these labels "
        f"are right, which is wrong for one audit of twenty at most; of {found.labels} labels of the audit among them {found.errors} were wrong"
    )
    return Automatic(**fields, possible=True, documents=count, at_least=found.threshold, labels=found.labels, errors=found.errors, why=why)


def _missing(untold: int, told: int, precision: float) -> str:
    """What is missing for a promise."""
    fewest = fewest_labels(precision)
    if untold < fewest:
        advice = f"; {told} more were told to this version, so that they cannot count: draw another audit" if told else ""
        return f"it takes {fewest} labels of an audit, none of them wrong, to promise {precision:.0%}, and there are {untold}{advice}"
    return f"the version is wrong too often even where it is the surest, so that {precision:.0%} cannot be promised for any document"


def _warnings(labeled: int, skipped: int) -> list[str]:
    return [f"{skipped} documents of the audit were left out: if these are the hard ones, the error is higher than it looks"] if skipped else []


def _ids(documents: Documents, positions: list[int]) -> list[str]:
    """The ids of documents at positions in any order."""
    ascending = sorted(positions)
    found = dict(zip(ascending, documents.ids.at(ascending), strict=True))
    return [found[position] for position in positions]
