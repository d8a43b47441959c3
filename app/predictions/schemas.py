"""Predictions by the names of the contract."""

from app.http.schemas import Schema
from workers.contract import Label


class Prediction(Schema):
    """Labels and scores of documents, in their order."""

    model: str
    version: int
    classes: list[Label]
    labels: list[Label]
    scores: list[list[float]]
    """a row a document; for two classes one column, for the second of ``classes``"""
    probabilities: list[list[float]] | None
    """a row a document, a column a class; null where the model was not calibrated (auto does that, the others by the option probabilities)"""
    warnings: list[str]


class LabeledDocument(Schema):
    """A line of a job's labels: a document that was unlabeled."""

    id: str
    label: Label
    score: float
    """of the second of two classes, or of the given label among more"""
    probability: float | None
    """of the given label; null where the model was not calibrated (auto does that, the others by the option probabilities)"""
