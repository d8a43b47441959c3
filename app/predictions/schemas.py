"""Schemas of predictions, explanations and suggestions, and of the bodies of their calls."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from pydantic import Field

from app.codecs.json_documents.document import DrawWord, ShortText
from app.http.schemas import OfVersion, Schema
from storage.records import Label


class Prediction(OfVersion):
    """Labels and scores of documents, in the order of the documents."""

    classes: list[Label]
    ids: list[str] | None = None
    """Ids of the documents; of one without an id its position. Left out if none has an id."""
    texts: list[str | None] | None = None
    """Texts of the documents, null of one without a text; only if the request asks by `include=text`."""
    labels: list[Label] | list[list[Label]]
    """Labels of the documents; by a model of several labels of each all that it is given, the likeliest first."""
    scores: list[list[float]]
    """Scores, a row a document. Two classes have one column, for the second of ``classes``; several labels have one
    each."""
    probabilities: list[list[float]] | None
    """Probabilities, a row a document, a column a class: of several labels those that each applies. Null if the model
    is not calibrated: auto calibrates, other algorithms by the option probabilities."""
    warnings: list[str]


class LabelsOut(Schema):
    """The labels of a text by a model of several."""

    labels: list[Label]
    """All labels that the text is given, the likeliest first."""
    probabilities: dict[str, float]
    """Probabilities of these labels, and of others that are not unlikely."""


class DocumentLabels(LabelsOut):
    """A document that was unlabeled, with the labels that a job has given to it."""

    id: str


class LabeledDocument(Schema):
    """A document that was unlabeled, with the label that a job has given to it."""

    id: str
    label: Label
    score: float
    """Score of the second of two classes; of more classes, score of the label."""
    probability: float | None
    """Probability of the label. Null if the model is not calibrated: auto calibrates, other algorithms by the option
    probabilities."""
    path: dict[str, float] | None = None
    """Probabilities along the path to the label, by a nested model: the label goes as deep as it is sure, and its
    score is that of the likeliest class. Left out otherwise."""


class ExplainBody(msgspec.Struct, forbid_unknown_fields=True):
    """Documents to explain; without any, the model alone is explained."""

    documents: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    n: Annotated[int, Meta(ge=1, le=100)] = 10
    """Number of items in each list."""
    class_: Label | None = msgspec.field(default=None, name="class")
    """Class whose score is explained; by default the label of each document."""


class Feature(Schema):
    """A feature of a linear model."""

    feature: int
    """Index of the feature, as in vectors."""
    name: str | None = None
    """Name of the feature, or the term of text; left out for vectors."""
    part: str | None = None
    """Part of the documents that the feature belongs to; left out for documents of one part."""
    weight: float


class Kept(Schema):
    """A training document that a kernel model keeps."""

    position: int | None
    """Position in the training dataset; null for models from before that was stored."""
    id: str | None
    """Id of the document; null if the training dataset was deleted."""
    weight: float


class FeatureTerm(Feature):
    """The contribution of a feature to a score."""

    value: float
    """Value of the feature in the document."""
    contribution: float
    """Product of value and weight."""
    spans: list[tuple[int, int]] | None = None
    """Where the term stands in the text: its first character and that after its last, in characters from 0; left out
    where the document is not text alone."""


class KeptTerm(Kept):
    """The contribution of a training document to a score."""

    value: float
    """Value of the kernel function of the two documents, their similarity."""
    contribution: float
    """Product of value and weight."""


class ClassWeights(Schema):
    """The largest weights for a class and against it, the largest first."""

    class_: Label = Field(alias="class")
    bias: float
    for_: list[Feature] | list[Kept] = Field(alias="for")
    against: list[Feature] | list[Kept]


class ExplainedDocument(Schema):
    """A score as a sum: bias, contributions and rest."""

    id: str
    label: Label
    class_: Label = Field(alias="class")
    """Class whose score is explained; of two classes always the second."""
    score: float
    bias: float
    contributions: list[FeatureTerm] | list[KeptTerm]
    """Contributions: of features the largest first, of training documents the most similar first."""
    rest: float
    """Sum of the contributions that are not listed."""
    parts: dict[str, float] | None = None
    """Sum of all contributions of each part, by a linear model; left out for documents of one part."""


class ExplanationOut(OfVersion):
    """An explanation of a model, and of scores."""

    family: str = Field(examples=["linear", "kernel"])
    """Family of the model: a linear model has weights of features, a kernel model weights of training documents."""
    classes: list[Label]
    weights: list[ClassWeights]
    """Weights of each column of scores: of two classes those of the second, of more those of each class."""
    documents: list[ExplainedDocument]
    warnings: list[str]


Strategy = Literal["diverse", "uncertain", "random"]
"""Query strategy of active learning."""


class SuggestBody(msgspec.Struct, forbid_unknown_fields=True):
    """A query for unlabeled documents of a dataset."""

    dataset: str
    n: Annotated[int, Meta(ge=1, le=1000)] = 10
    strategy: Strategy = "diverse"
    """Strategy. uncertain: the documents of least margin, evenly of the classes that are predicted; of several labels
    more of those with more in doubt. diverse: representatives of three times as many of these. random: any."""
    random: Annotated[float, Meta(ge=0, le=1)] = 0.25
    """Share of documents that are drawn at random, whatever the strategy; at least one of four or more documents,
    unless it is 0."""
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    """Seed of the random documents; equal seeds give equal documents until some of them have labels."""
    by: ShortText | None = None
    """Name of the person who will label. Documents that others have claimed are not suggested to this person."""
    claim: Annotated[int, Meta(ge=0, le=86_400)] = 0
    """Seconds for which the documents are claimed for the person; 0: not at all. Claims end by themselves."""
    for_: ShortText | None = msgspec.field(default=None, name="for")
    """Name of a voter to ask, who may be new: documents without its vote where that is worth most. As long as little is
    known of the voter, a quarter are documents that have a label, which say how right it is."""
    price: Annotated[float, Meta(ge=0)] | None = None
    """Price of an answer of that voter, in any currency."""
    share: ShortText | None = None
    """Name of a person: documents in the shares of others are not suggested. Of those that everybody answers the ones
    that this person has not answered are, first among the random ones."""
    include: list[Literal["document"]] = []
    """What to include in each suggestion: document, the document as it was sent."""


class Suggestion(LabeledDocument):
    """A document to label, with the label that the model gives to it."""

    rival: Label
    """Likeliest class beside ``label``."""
    drawn: DrawWord
    """How it was drawn, which the service remembers for its label: at random, or chosen by the model."""
    margin: float
    """Difference between the likeliest class and the next one."""
    voters_differ: bool
    """Whether votes about it are for several classes."""
    document: dict[str, Any] | None = None
    """The document as it was sent; only if `include` names it."""


class AskedClass(Schema):
    """What a voter's answers to documents of a class are worth."""

    right: float
    """How often its votes for the class are right, as the training has found out."""
    low: float
    high: float
    """Ends of an interval of 95 %."""
    unasked: int
    """Number of documents without a label and without its vote to which the model gives the class."""
    worth: float
    """Documents that its answers to all of these would set right in the mean."""


class Asking(Schema):
    """What more answers of a voter are worth."""

    voter: str
    answered: int
    """Number of documents with its vote."""
    unasked: int
    """Number of documents without a label and without its vote."""
    cost: float | None
    """Price of asking about all of these; null without a price."""
    worth: float
    """Documents that its answers to all of these would set right in the mean."""
    next: float
    """The same of the documents that are suggested."""
    stop: bool
    """Whether it is time to stop: fewer than one of 100 of these answers would set a document right. It is never before
    the first answers of the voter."""
    classes: dict[str, AskedClass]
    """The same by the class that the model gives."""


class Suggestions(OfVersion):
    """Documents to label next, the most useful first, with the random ones spread evenly among them."""

    dataset: str
    strategy: Strategy
    n_unlabeled: int
    """Number of documents of the dataset that have no label."""
    margin_of: str = Field(examples=["probabilities", "scores"])
    """Quantity whose differences the margins are: scores if the model is not calibrated."""
    suggestions: list[Suggestion]
    asking: Asking | None = None
    """What more answers of the voter are worth; left out unless the query names one by `for`."""
    warnings: list[str]


class LabelBody(msgspec.Struct, forbid_unknown_fields=True):
    """A text to label."""

    text: str


class LabelOut(Schema):
    """The label of a text."""

    label: Label
    probability: float | None
    """Probability of the label; null if the model is not calibrated."""
    path: dict[str, float] | None = None
    """Probabilities along the path to the label, by a nested model; left out otherwise."""
