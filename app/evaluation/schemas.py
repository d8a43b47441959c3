"""An evaluation by the names of the contract, and what it is asked for with."""

import msgspec
from pydantic import AwareDatetime, Field

from app.http.schemas import Schema
from workers.contract import Label

Share = float | None
"""A fraction, or null: of nothing."""


class ClassFigures(Schema):
    """How well one label is told from the others."""

    label: Label
    known: bool
    """whether the model knows the label; one that it does not know is never given, so its documents count as errors"""
    documents: int
    """that have the label"""
    given: int
    """documents that the model gives the label"""
    precision: Share
    """of the documents that were given the label, the share that has it; null where none was"""
    recall: Share
    """of the documents that have the label, the share that was given it; null where none has it"""
    f1: Share
    """their harmonic mean; null where no document has the label or was given it"""
    break_even: Share
    """precision where it equals recall: among as many documents as have the label, those of the highest scores; ties count by their share. Null where
    no document has the label, and where the scores were too many to be kept"""
    average_precision: Share
    """mean precision over the recall, by scores; null where break_even is"""
    curve: list[tuple[float, float]] | None
    """some points of the precision by recall, recall first; null for labels that are not among the most frequent, and where break_even is"""


class ReliabilityBin(Schema):
    """The documents whose likeliest class has a probability from ``start`` to ``end``."""

    start: float
    end: float
    documents: int
    confidence: Share
    """mean probability of the likeliest class; null where there are no documents"""
    accuracy: Share
    """share of the documents that are of it; null where there are no documents"""


class CalibrationFigures(Schema):
    """Whether the probabilities are what they say."""

    expected_error: float
    """expected calibration error of the likeliest class: the mean gap between confidence and accuracy over bins of equal width"""
    brier: float
    """mean squared error of the probabilities: of two classes from 0 to 1, of more from 0 to 2"""
    log_loss: float
    """mean of -ln of the probability of the label; a label that the model does not know counts as the least that is told from 0, 36.04"""
    bins: list[ReliabilityBin]


class Evaluation(Schema):
    """How good a version of a model is on labeled documents."""

    model: str
    version: int
    dataset: str | None
    """null for documents in the body"""
    evaluated_at: AwareDatetime
    documents: int
    """that were given, labeled or not"""
    labeled: int
    """that were evaluated"""
    accuracy: float
    error: float
    """share of wrong labels: 1 - accuracy"""
    macro_precision: float
    """mean over the labels that documents have or were given; null counts as 0"""
    macro_recall: float
    """mean over the labels that documents have or were given; null counts as 0"""
    macro_f1: float
    """mean over the labels that documents have or were given"""
    micro_f1: float
    """over all documents and labels; each document has one label and is given one, so it is the accuracy"""
    macro_break_even: Share
    """mean of break_even over the labels that have one"""
    classes: list[ClassFigures]
    """the model's classes, then the labels that it does not know"""
    confusion: list[list[int]]
    """documents by the label that they have (rows) and the label that they were given (columns), both in the order of ``classes``"""
    calibration: CalibrationFigures | None
    """null where the model was not calibrated"""
    warnings: list[str] = Field(examples=[["12 of the 400 labeled documents were trained on with their labels: the figures flatter the model"]])


class EvaluateBody(msgspec.Struct, forbid_unknown_fields=True):
    """What to evaluate on: a dataset, or documents in the body."""

    dataset: str | None = None
    documents: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    held_out: bool = False
    """of a dataset, leave out the documents whose labels the version was trained on"""
