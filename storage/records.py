"""The records that several rooms share, each noun once, and the keys under which they are stored. Others stand beside
the repository that writes them.

Every record but an alias and a profile is written once and never changed. What changes is which records exist. The
state of a job follows from its records (see ``docs/architecture.md``), so neither a lost message nor a late writer can
falsify it.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal, NamedTuple, get_args

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from core.documents.kinds import Kind, PartKind
from core.problem import Status

Label = str | int
"""Name of a class, as its owner wrote it. Within a dataset all labels are strings, or all are integers."""

MAX_TEXT = 256
"""Most characters of a label, and of the id of a document."""


class Record(BaseModel):
    """An immutable value that is stored as JSON.

    Fields of a newer release are kept, also where this one stores a changed copy.
    """

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="null")


class File(Record):
    """A stored array or text, with its checksum."""

    key: str
    sha256: str
    bytes: int


class Failure(Record):
    """Why a job failed, as a problem of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = []


class DatasetPart(Record):
    """A part of the documents of a dataset that have several."""

    name: str
    """name of the part: the field of a document that holds it; of dense vectors ``vector``, and of several of these
    ``vector.`` and their name"""
    kind: PartKind
    n_features: int | None
    """number of features, of dense vectors of numbers; null for text"""
    n_nonzeros: int | None
    """number of nonzero values; null for text"""
    n_missing: int
    """number of documents that lack the part"""


Given = Label | tuple[Label, ...]
"""What a person says of a document: its label, or all of several."""


def labels_in(given: Given | Sequence[Label] | None) -> Sequence[Label]:
    """The labels of what was given: the one, all of several, or none."""
    return () if given is None else (given,) if isinstance(given, str | int) else given


LabelKind = Literal["single", "several"]
"""Whether documents have one label at most, or any number of them."""


class DatasetFacts(Record):
    """Facts about a dataset: the fields that its manifest and its answer have in common.

    Their descriptions are those of the contract.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    id: str
    name: str | None
    n_documents: int
    n_labeled: int
    """Number of documents whose label is known, or all labels of several."""
    label_kind: LabelKind = "single"
    """Whether each document has one label at most, or any number of them."""
    kind: Kind = "vectors"
    """Kind of the documents: vectors (indices or a dense vector), named features, text, or several parts."""
    n_features: int | None
    """Number of features; null for text, whose terms a job finds, and for several parts, which have their own."""
    n_nonzeros: int | None
    """Number of nonzero values; null likewise."""
    parts: list[DatasetPart] = []
    """Parts of the documents, sorted by name; empty if all documents have but one."""
    voters: dict[str, int] = {}
    """Number of documents by voter."""
    drawn: dict[str, int] = Field(default={}, examples=[{"random": 5, "chosen": 15}])
    """Number of labels by how they were come by; those of which nothing is known are left out."""
    fields: list[str] = []
    """Names of the extra fields, which are kept beside documents and not learned from."""
    sha256: str
    """Digest of the documents; equal documents have equal digests in every format."""
    created_at: AwareDatetime
    warnings: list[str]


class Dataset(DatasetFacts):
    """Manifest of a sealed set of documents.

    ``datasets/{id}/manifest.json``. A relabeled dataset shares the documents of another.
    """

    classes: list[tuple[Label, int]]
    """classes with the number of documents labeled with each, sorted (integers by value, strings by code point); those
    that are voted for or excluded alone have 0"""
    voted: list[Label] = []
    """classes that are voted for, sorted: the votes are numbered by them"""
    documents: str
    """id of the dataset under which rows and ids are stored"""
    files: dict[str, File]
    """files by content: ``labels`` (.npy), in place of it for several labels ``label_sets.indptr``, ``.indices``,
    ``.values`` and ``.complete`` (.npy), if there are votes ``votes.indptr``, ``.voter``, ``.class_index`` and
    ``.probability`` (.npy), if one is not 1 ``weights`` (.npy), if something is known of how labels were come by
    ``drawn`` (.npy) and, unless ids are positions, ``ids`` (NDJSON); for vectors ``indptr``, ``indices``, ``values``
    (.npy); for named features also ``names`` (NDJSON); for text ``indptr`` and ``text`` (.npy, UTF-8); for documents of
    several parts those of each, with its name and a dot before them; for extra fields ``fields`` and ``fields.indptr``
    (.npy, lines of JSON)"""


class JobState(StrEnum):
    """State of a job. The last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """Whether no other state follows."""
        return self in (JobState.CANCELLED, JobState.SUCCEEDED, JobState.FAILED)


Publish = Literal["if_better", "always"]
"""When a new version takes over from the one that is served: unless it is clearly worse, or in any case."""

JobSize = Literal["small", "medium", "large"]
"""Size of a job, by the memory that it is expected to need."""
SIZES: tuple[JobSize, ...] = get_args(JobSize)


class QueuePlace(NamedTuple):
    """The place of a job among others: it decides when the job has its turn."""

    size: JobSize = "medium"
    caller: str | None = None
    """id of the API key; None where no keys are required"""

    @property
    def flow(self) -> str:
        """Name of the flow of the job."""
        return f"{self.size} {self.caller or ''}"


class EncoderRef(Record):
    """A pre-trained encoder, by its name here and the digest of its files."""

    name: str
    digest: str


class Publication(Record):
    """Version that a succeeded job was published as: ``jobs/{id}/published.json``, created after the version."""

    name: str
    version: int


class JobSpec(Record):
    """The specification of a job: the fields that its body, its record and its answer have in common.

    A field that is added here is read from the body, stored and answered. Their descriptions are those of the contract.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    dataset: str
    algorithm: str = "auto"
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the algorithm. Those that were left out have the defaults of the day of the request."""
    seed: int = Field(default=0, ge=0, le=2**32 - 1)
    text: dict[str, int] | None = None
    """Options of how text becomes terms; null if the documents are not text."""
    encoder: EncoderRef | None = None
    """Encoder that makes a vector of each text; null if none does."""
    other: Label | None = None
    """Name of the class of all documents that are not of the only class that is labeled; null: ``other``, of integers
    0, or 1 beside 0. Labels of one class and documents without a label are enough for ``auto``."""
    publish: Publish = "if_better"
    """When the new version takes over from the one that is served: if_better, unless it is clearly worse on labels that
    neither was told; always."""
    annotations: int | None = None
    """Number of entries of the log of the dataset that the job learns from; null: the labels of the dataset alone."""
    nested: bool = False
    """Whether labels with steps, such as sport/football, are a tree: answers then go as deep as they are sure."""


class JobDraft(JobSpec):
    """A job that is to be stored."""

    model: str
    start: Publication | None = None
    """version of a model to start from"""
    size: JobSize = "medium"
    """size by which the job has its turn, and by which workers take it"""
    caller: str | None = None
    """id of the API key of the request"""
    traceparent: str | None = None
    """span of the request, which the spans of the job continue"""


class JobRequest(JobDraft):
    """Request for a job: ``jobs/{id}/request.json``, durable before the job is enqueued."""

    id: str
    key: str | None = None
    """digest of the idempotency key of the request"""
    created_at: AwareDatetime


class Progress(BaseModel):
    """Progress of a job.

    While the job runs it is held in Redis only and may be lost; the last goes into the outcome.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    fraction: float = 0.0
    """estimated share of the work that is done, 0 to 1"""
    phase: str = ""
    """what a queued job waits for, or what a running one does, in words; the trace has its own names for phases"""
    iteration: int = 0
    """number within the phase"""
    objective: float | None = None
    """the objective that chooses the best iterate, as far as it is known"""


class Comparison(Record):
    """A comparison of a new version with the one that was served when its training ended, on labels that neither was
    told.
    """

    model_config = ConfigDict(use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)

    takes_over: bool
    """Whether the name of the model stands for the new version; if not, its number and aliases do."""
    why: str
    """Reason, in plain sentences, and what can be done."""
    against: int | None = None
    """Number of the version that was served; null if the two were not compared."""
    labels: int = 0
    """Number of labels that neither was told."""
    gained: int = 0
    """Number of these on which the new version alone is right."""
    lost: int = 0
    """Number of these on which the new version alone is wrong."""
    p_value: float | None = None
    """Probability of so few gained by chance, if both were equally good; null if the two were not compared."""


class HeldOut(Record):
    """Results on labels that cross-validation left out.

    Documents that a model chose are not counted if there are enough others.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    labels: int
    """Number of these labels."""
    right: int
    """Number of right predictions."""
    by_chance: float
    """Share that would be right by chance: each class predicted as often, whatever the labels are."""
    likeliest: float | None = None
    """Share of the labels of the likeliest class: who always said it is right so often; null of earlier releases."""
    by_votes: bool = False
    """Whether these are labels by votes, as fewer than ten are certain, or all of these are of one class."""


class Outcome(Record):
    """How a job ended: ``jobs/{id}/outcome.json``. The first counts; the files of every other attempt are removed."""

    state: Literal[JobState.CANCELLED, JobState.SUCCEEDED, JobState.FAILED]
    attempt: int
    finished_at: AwareDatetime
    status: Status | None = None
    objective: float | None = None
    warnings: list[str] = []
    report: dict[str, Any] | None = None
    """estimates and choices of the training, with their reasons"""
    comparison: Comparison | None = None
    """comparison of a success with the version that was served then"""
    held_out: HeldOut | None = None
    """predictions of labels left out; null without cross-validation"""
    error: Failure | None = None
    versions_before: int = 0
    """number of versions of the model that existed before this outcome; a version of this job has a higher number"""
    progress: Progress | None = None
    """progress at the end"""
    files: dict[str, File] = {}
    """files by content: ``trace`` (JSON) if a solver has begun; for a success ``model`` (safetensors), ``model_meta``
    (JSON), ``labels`` (NDJSON of the documents that were unlabeled) and, if labels were left out, ``held_out``
    (safetensors)"""


ConfidenceLevel = Literal["high", "low", "none"]
"""How far a model can be trusted; none: it knows nothing that chance would not."""


class VersionFacts(Record):
    """Facts about a version of a model: the fields that its record and its answer have in common.

    Their descriptions are those of the contract.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    name: str
    job: str
    dataset: str
    annotations: int | None = None
    """Number of entries of the log of the dataset that it learned from, beside the labels of the dataset; null:
    none."""
    algorithm: str
    options: dict[str, Any]
    classes: list[Label]
    label_kind: LabelKind = "single"
    """Whether the model gives each document one label, or any number of them."""
    kind: Kind = "vectors"
    """Kind of the documents that the model predicts: vectors (indices), named features, or text."""
    text: dict[str, int] | None = None
    """Options of how text became terms; null if the documents are not text."""
    n_features: int
    """Number of features of the training documents; of text, number of terms."""
    facts: dict[str, str | int] = Field(
        default={}, examples=[{"family": "kernel", "kernel": "rbf", "bytes": 1843200, "n_support": 640}]
    )
    """Facts about the model: ``family`` (linear or kernel) and ``bytes`` of its arrays and words; of a linear model
    ``n_seen_features``, and ``values``, how those of documents are weighed, if they are; of a kernel model ``kernel``
    and ``n_support``, the number of training documents that it keeps; of named features ``n_names``; of text
    ``n_terms`` and ``n_words``."""
    objective: float | None
    comparison: Comparison | None = None
    """Comparison with the version that was served before; null of versions from before there were comparisons."""
    confidence: ConfidenceLevel | None = None
    """How far the report of the training trusts the model; none: it knows nothing that chance would not; null if the
    report does not say."""
    created_at: AwareDatetime


class Version(VersionFacts):
    """A published model.

    ``models/{name}/versions/{number}.json``. Numbers start at 1 and have no gaps; a job has at most one version.
    """

    number: int
    status: Status
    held_out: HeldOut | None = None
    """predictions of labels left out; null without cross-validation"""
    files: dict[str, File]

    @property
    def takes_over(self) -> bool:
        """Whether the name of the model stands for this version, unless a newer one takes over."""
        return self.comparison is None or self.comparison.takes_over


class Job(BaseModel):
    """A job, as its records show it."""

    request: JobRequest
    state: JobState
    attempt: int = 0
    started_at: AwareDatetime | None = None
    outcome: Outcome | None = None
    version: int | None = None
    progress: Progress = Field(default_factory=Progress)
