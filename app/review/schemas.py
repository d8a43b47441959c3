"""Schemas of doubts and audits, and of the bodies of their calls."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from pydantic import AwareDatetime

from app.http.schemas import OfVersion, Schema
from storage.records import Label

MAX_DOCUMENTS = 1_000


class DoubtsBody(msgspec.Struct, forbid_unknown_fields=True):
    """A query for labels to look at again."""

    dataset: str
    n: Annotated[int, Meta(ge=1, le=MAX_DOCUMENTS)] = 20
    include: list[Literal["document"]] = []
    """What to include in each doubt: document, the document as it was sent."""


class Doubt(Schema):
    """A label that may be wrong."""

    id: str
    label: Label
    """Label that the document has; of several labels the one in doubt."""
    likelier: Label | None
    """Label that is likelier, or that the similar document has; null of several labels, where the contrary is."""
    applies: bool | None
    """Whether the document has the label in doubt, where it may have several; else null."""
    probability: float | None
    """Probability of what is doubted, of several labels that the label applies or does not as is said, by a model that
    was not told it; null of duplicates that such a model does not doubt."""
    why: Literal["held_out", "votes", "duplicate"]
    """Reason. held_out: the model finds another label likelier when it is not told this one. votes: the model and the
    votes together do. duplicate: a document that is nearly the same has another label."""
    other: str | None
    """Id of the document that is nearly the same."""
    document: dict[str, Any] | None = None
    """The document as it was sent; only if `include` names it."""


class Doubts(OfVersion):
    """Labels to look at again, the most doubtful first."""

    dataset: str
    n_labeled: int
    """Number of labels that the training left out and predicted, of those that documents still have; of several labels
    the number of pairs of a document and a label of which is known whether it applies."""
    doubts: list[Doubt]
    warnings: list[str]


class AuditBody(msgspec.Struct, forbid_unknown_fields=True):
    """A random sample to draw."""

    n: Annotated[int, Meta(ge=1, le=MAX_DOCUMENTS)] = 50
    """Number of documents."""
    model: str | None = None
    """Name of the model to be measured; it may be named later."""
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] | None = None
    """Seed of the sample; by default another each time."""


class AuditOut(Schema):
    """A random sample of the documents that had no label."""

    id: str
    dataset: str
    model: str | None
    documents: list[str]
    """Ids of the documents to label, in the order in which they were drawn: every beginning is a random sample."""
    unlabeled: int
    """Number of documents that had no label then, of which these were drawn."""
    seed: int
    created_at: AwareDatetime


class AuditPage(Schema):
    """The audits of a dataset, newest first."""

    audits: list[AuditOut]


class LabelError(Schema):
    """The error of a version on one of several labels."""

    label: Label
    labels: int
    """Number of documents of the audit of which the version says, without having been told, whether they have it."""
    applies: int
    """Number of these that have it."""
    given: int
    """Number of these to which the version gives it."""
    errors: int
    error: float | None
    """Share of errors; null without documents."""
    low: float
    """Lower end of the interval of 95 % (Clopper and Pearson)."""
    high: float
    """Upper end."""


class VersionError(OfVersion):
    """The error of a version on the labels of an audit; of several labels on all labels of each document."""

    learned: int | None
    """Number of labels that the version learned from; null if its dataset was deleted."""
    labels: int
    """Number of labels of the audit that are compared with what the version says without having been told them."""
    held_out: int
    """Number of these that the version was told, so that cross-validation, which left them out, says what it would have
    said."""
    errors: int
    error: float | None
    """Share of errors; null without labels."""
    low: float
    """Lower end of the interval of 95 % (Clopper and Pearson)."""
    high: float
    """Upper end."""
    by_label: list[LabelError] | None
    """Errors of each label that a document has or is given; null where documents have one label."""


class Automatic(OfVersion):
    """How many documents may be labeled by a version without looking."""

    precision: float
    """Precision that is promised: share of right ones among the labels that are given."""
    possible: bool
    """Whether the labels of the audit support the promise for any document."""
    documents: int
    """Number of documents without a label that may be labeled."""
    at_least: float | None
    """Probability above which; null for all, and where it is not possible."""
    labels: int
    """Number of labels of the audit above it."""
    errors: int
    """Number of these that were wrong."""
    why: str
    """The promise in a sentence, or what is missing for it."""


class Forecast(Schema):
    """Likely error with more labels: the learning curve of the versions, continued."""

    labels: int
    """Number of labels to come."""
    expected: float
    """Error that is likely then."""
    low: float
    """Lower end of what is likely: the error is there in some 80 of 100 cases."""
    high: float
    """Upper end."""
    why: str
    """The forecast in a sentence."""


class AuditReport(AuditOut):
    """An audit with its results by the labels now."""

    labeled: int
    """Number of its documents that have a label by now."""
    likeliest: float | None
    """Share of these that have the likeliest label, or labels: who always said so would be right so often; null without
    labels."""
    skipped: int
    """Number of its documents that a person left out: the error says nothing of these."""
    open: list[str]
    """Ids of those that people have yet to answer, in order; with ``share`` also those that everybody answers and this
    person has not."""
    versions: list[VersionError]
    """Versions of the model, newest first; none if no model is named."""
    automatic: Automatic | None
    """What the version that the model serves may label; null if no model is named."""
    forecast: Forecast | None
    """What twenty more labels are likely to bring; null if no version is measured, or the newest is already better."""
    warnings: list[str]
