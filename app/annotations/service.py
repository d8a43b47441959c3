"""Work behind calls about annotations: append to the log of a dataset, and summarise it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Literal

import numpy as np

from app.annotations.schemas import AnnotationBody, AnnotationsBody, AnnotationSummary, Appended, PairAgreement
from app.datasets.shares import overlap_of
from app.errors import InvalidRequest
from app.services.wiring import Services
from core.documents.drawn import Draw
from core.evaluation.voting import cohen, krippendorff
from storage.records import Given, LabelKind
from storage.repositories.datasets import NewAnnotation
from storage.repositories.datasets.documents import class_counts

_MOST_PAIRS = 50
_SEVERAL = (
    "a document has one label here; where documents belong to several classes, make a dataset of several labels of it "
    'by PUT /v1/datasets/{id}/labels with "label_kind": "several"'
)


def append(services: Services, dataset: str, body: AnnotationsBody) -> Appended:
    """Append annotations; raises NotFound, InvalidRequest, InvalidDocuments, LimitExceeded.

    After an error nothing was appended.
    """
    now = datetime.now(UTC)
    if (body.annotations is None) == (body.undo_of is None):
        raise InvalidRequest("annotations", "are needed, or undo_of: a batch of annotations to take back; not both")
    if body.annotations is None:
        sequence, accepted = services.datasets.take_back(dataset, str(body.undo_of), now)
    else:
        kind = services.datasets.get(dataset).label_kind
        given = [_checked(place, each, now, kind) for place, each in enumerate(body.annotations)]
        sequence, accepted = services.datasets.annotate(dataset, given)
    return Appended(sequence=sequence, accepted=accepted)


def summary(services: Services, dataset: str) -> AnnotationSummary:
    """Summary of the log of a dataset now; raises NotFound."""
    log = services.datasets.log(dataset)
    answers, count = log.answers(), log.refreshed()
    documents = services.datasets.open_annotated(dataset, answers)
    labeled = documents.labeled
    draws = (
        np.zeros(len(Draw), np.int64)
        if documents.drawn is None
        else np.bincount(documents.drawn[labeled], minlength=len(Draw))
    )
    # those that the dataset itself labels are nobody's to answer
    shared = overlap_of(len(labeled), services.datasets.profile(dataset).overlap)
    overlap = [each for each in shared.tolist() if each in answers or not labeled[each]]
    compared = [answer for answer in answers.values() if len(answer.votes) > 1]
    return AnnotationSummary(
        sequence=count,
        changed=log.changed(),
        classes={str(label): count for label, count in class_counts(documents)},
        labels=list(documents.classes),
        documents=len(documents.class_indices),
        labeled=int(np.count_nonzero(labeled)),
        skipped=sum(answer.skipped and not labeled[position] for position, answer in answers.items()),
        drawn={draw.word: int(draws[draw]) for draw in Draw if draw is not Draw.UNKNOWN and draws[draw]},
        people=Counter(name for answer in answers.values() for name in answer.answered_by),
        compared=len(compared),
        agreed=sum(answer.agreed for answer in compared),
        disputed=sum(answer.disputed for answer in compared),
        flagged=sum(answer.flagged for answer in answers.values()),
        overlap=len(overlap),
        overlap_answered=Counter(name for each in overlap if each in answers for name in answers[each].answered_by),
        krippendorff=krippendorff([[*answer.votes.values()] for answer in compared]),
        pairs=_pairs([answer.votes for answer in compared]),
    )


def resolved(services: Services, dataset: str, wanted: Literal["latest"] | int | None) -> int | None:
    """The number of entries of the log that ``wanted`` means now, so that later entries change nothing; raises
    InvalidRequest, NotFound.
    """
    if wanted is None:
        return None
    count = services.datasets.log(dataset).refreshed()
    if wanted == "latest":
        return count
    if wanted > count:
        raise InvalidRequest("annotations", f"the log of the dataset has {count} entries")
    return wanted


def _pairs(votes: Sequence[Mapping[str, Given]]) -> list[PairAgreement]:
    """How far each two people agree, by the labels by person of documents that several labeled."""
    shared: dict[tuple[str, str], list[tuple[Given, Given]]] = {}
    for each in votes:
        for one, other in combinations(sorted(each), 2):
            shared.setdefault((one, other), []).append((each[one], each[other]))
    most = sorted(shared.items(), key=lambda item: (-len(item[1]), item[0]))[:_MOST_PAIRS]
    return [
        PairAgreement(
            people=[*people],
            compared=len(labels),
            agreed=sum(one == other for one, other in labels),
            cohen=cohen(labels),
        )
        for people, labels in most
    ]


def _checked(place: int, given: AnnotationBody, now: datetime, kind: LabelKind) -> NewAnnotation:
    if given.at is not None and given.at.tzinfo is None:
        raise InvalidRequest(f"annotations[{place}].at", "needs its time zone, as in 2026-01-31T12:00:00Z")
    if given.label is not None and given.labels is not None:
        raise InvalidRequest(f"annotations[{place}].labels", "give either label or labels")
    label: Given | None = given.label
    if kind == "several":
        label = (given.label,) if given.label is not None else None if given.labels is None else tuple(given.labels)
    elif given.labels is not None:
        if len(given.labels) != 1:
            raise InvalidRequest(f"annotations[{place}].labels", _SEVERAL)
        label = given.labels[0]
    return NewAnnotation(
        id=given.id,
        document=given.document,
        action=given.action,
        label=None if isinstance(label, tuple) else label,
        labels=label if isinstance(label, tuple) else None,
        draw=None if given.drawn is None else Draw.of(given.drawn),
        by=given.by,
        mode=given.mode,
        at=given.at or now,
        note=given.note,
        batch=given.batch,
    )
