"""Schemas of evaluations, and of the body of their calls."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from pydantic import AwareDatetime, Field

from app.http.schemas import OfVersion, Schema
from storage.records import Label

Fraction = float | None
"""A fraction; null for 0 / 0."""


class ClassFigures(Schema):
    """Figures of one label."""

    label: Label
    known: bool
    """Whether the model knows the label. Documents of an unknown label count as errors."""
    documents: int
    """Number of documents that have the label."""
    given: int
    """Number of documents to which the model gives the label."""
    precision: Fraction
    """Precision: of the documents that were given the label, the fraction that has it; null if none was given it."""
    recall: Fraction
    """Recall: of the documents that have the label, the fraction that was given it; null if none has it."""
    f1: Fraction
    """F1, the harmonic mean of precision and recall; null if no document has the label or was given it."""
    break_even: Fraction
    """Precision-recall break-even point: the precision among as many documents as have the label, those of the highest
    scores; ties count by their fraction. Null if no document has the label, or if there were too many scores to
    keep."""
    average_precision: Fraction
    """Average precision by scores; null where break_even is."""
    curve: list[tuple[float, float]] | None
    """Points (recall, precision) of the precision-recall curve; null for labels that are not among the most frequent,
    and where break_even is."""


class ReliabilityBin(Schema):
    """The documents with a probability of the likeliest class from ``start`` to ``end``."""

    start: float
    end: float
    documents: int
    confidence: Fraction
    """Mean probability of the likeliest class; null if there are no documents."""
    accuracy: Fraction
    """Fraction of the documents that have the likeliest class; null if there are no documents."""


class CalibrationFigures(Schema):
    """Calibration of the probabilities."""

    expected_error: float
    """Expected calibration error of the likeliest class: mean gap between confidence and accuracy, over bins of equal
    width."""
    brier: float
    """Brier score, the mean squared error of the probabilities: with two classes from 0 to 1, with more from 0 to 2."""
    log_loss: float
    """Log loss, the mean of -ln of the probability of the label. An unknown label counts 36.04, which is -ln of the
    machine epsilon."""
    bins: list[ReliabilityBin]


class SeveralFigures(Schema):
    """Figures of sets of labels, with the names of scikit-learn. Averages are over documents and labels together
    (micro), labels (macro), labels by their number of documents (weighted), or documents (samples); 0 / 0 counts as 0.
    """

    precision_micro: float
    recall_micro: float
    f1_micro: float
    precision_macro: float
    recall_macro: float
    f1_macro: float
    precision_weighted: float
    recall_weighted: float
    f1_weighted: float
    precision_samples: float
    recall_samples: float
    f1_samples: float
    subset_accuracy: float
    """Share of the documents that are given all their labels and no other."""
    hamming_loss: float
    """Share of all pairs of document and label that are wrong."""
    coverage_error: float
    """How far down the labels by probability one must go, in the mean, to have all that apply."""
    label_ranking_average_precision_score: float
    label_ranking_loss: float
    """Share of the pairs of a label that applies and one that does not that are in the wrong order."""
    expected_error: float
    """Expected calibration error of the probabilities of all pairs of document and label."""


class Evaluation(OfVersion):
    """An evaluation of a version of a model on labeled documents."""

    dataset: str | None
    """Id of the dataset; null for documents in the body."""
    evaluated_at: AwareDatetime
    documents: int
    """Number of documents, labeled or not."""
    labeled: int
    """Number of labeled documents, on which the model is evaluated."""
    told: int | None
    """Number of these that the version learned with their labels, so that the figures are too good; null if that is
    unknown."""
    accuracy: float
    error: float
    """Error rate: 1 - accuracy."""
    macro_precision: float
    """Mean over the labels that documents have or were given, and by a model of several over all; null counts as 0."""
    macro_recall: float
    """Mean over the labels that documents have or were given, and by a model of several over all; null counts as 0."""
    macro_f1: float
    """Mean over the labels that documents have or were given, and by a model of several over all."""
    micro_f1: float
    """F1 over all documents and labels. Where each document has one label and is given one, it equals the accuracy."""
    macro_break_even: Fraction
    """Mean of break_even over the labels that have one."""
    classes: list[ClassFigures]
    """Figures of the classes of the model, then of labels that it does not know."""
    confusion: list[list[int]]
    """Confusion matrix: documents by the label that they have (rows) and the label that they were given (columns), in
    the order of ``classes``."""
    calibration: CalibrationFigures | None
    """Calibration of the probabilities; null if the model is not calibrated, or of several labels."""
    several: SeveralFigures | None = None
    """Figures of sets of labels, by a model of several. Accuracy is then that of whole sets, and there is no confusion
    matrix."""
    warnings: list[str] = Field(
        examples=[["12 of the 400 labeled documents were trained on with their labels: the figures are too optimistic"]]
    )


class EvaluateBody(msgspec.Struct, forbid_unknown_fields=True):
    """A dataset or documents to evaluate on."""

    dataset: str | None = None
    documents: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    held_out: bool = False
    """Whether to leave out the documents of the dataset whose labels the version was trained on."""
    annotations: Literal["latest"] | Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    """Labels to compare with: those that people gave by so many entries of the log, or by all; by default those of the
    dataset alone."""
