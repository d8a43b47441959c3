"""Schemas of predictions."""

from app.http.schemas import Schema
from storage.records import Label


class Prediction(Schema):
    """Labels and scores of documents, in the order of the documents."""

    model: str
    version: int
    classes: list[Label]
    ids: list[str] | None = None
    """Ids of the documents; of one without an id its position. Left out if none has an id."""
    labels: list[Label]
    scores: list[list[float]]
    """Scores, a row a document. Two classes have one column, for the second of ``classes``."""
    probabilities: list[list[float]] | None
    """Probabilities, a row a document, a column a class. Null if the model is not calibrated: auto calibrates, other
    algorithms by the option probabilities."""
    warnings: list[str]


class LabeledDocument(Schema):
    """A document that was unlabeled, with the label that a job has given to it."""

    id: str
    label: Label
    score: float
    """Score of the second of two classes; of more classes, score of the label."""
    probability: float | None
    """Probability of the label. Null if the model is not calibrated: auto calibrates, other algorithms by the option
    probabilities."""
