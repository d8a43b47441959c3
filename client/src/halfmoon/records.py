"""Answers of the service as typed records. Fields that a newer service adds are ignored."""

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from halfmoon.display import listed, pairs, table, tally

Label = str | int


class Progress(Struct, frozen=True):
    """Progress of a job."""

    fraction: float = 0.0
    """Share of the work that is done, 0 to 1."""
    phase: str = ""
    """What the job does, or waits for, in words."""
    iteration: int = 0
    objective: float | None = None


class DatasetRecord(Struct, frozen=True):
    """A set of documents, as the service describes it."""

    id: str
    name: str | None
    n_documents: int
    n_labeled: int
    kind: str
    n_features: int | None
    n_nonzeros: int | None
    classes: dict[str, int]
    sha256: str
    created_at: datetime
    label_kind: str = "single"
    """Whether each document has one label at most, or any number of them: single, several."""
    voters: dict[str, int] = {}
    """Number of documents by voter."""
    drawn: dict[str, int] = {}
    fields: list[str] = []
    warnings: list[str] = []
    parts: list[dict[str, Any]] = []
    """Parts of the documents, sorted by name; empty if all documents have but one."""
    archived: bool = False
    guidelines: str = ""
    """How to label its documents, in the words of who knows."""
    shares: dict[str, float] = {}
    """Weight of each person's share of the documents to label; empty: each document is for whoever comes."""
    overlap: float = 0.0
    """Share of the documents that everybody answers."""
    clusters: dict[str, str] = {}
    """Names of clusters of first looks, by id of the job and number of the cluster with / between them."""


class Made(Struct, frozen=True):
    """A version of a model."""

    name: str
    version: int


class _Trained(Struct, frozen=True, kw_only=True):
    """What a job and the version that it makes have in common."""

    algorithm: str
    options: dict[str, Any]
    dataset: str
    created_at: datetime
    text: dict[str, int] | None = None
    objective: float | None = None
    comparison: dict[str, Any] | None = None
    annotations: int | None = None
    """Number of entries of the log of the dataset that it learns from; None if it does not."""


class JobRecord(_Trained, frozen=True, kw_only=True):
    """A job, as the service describes it."""

    id: str
    state: str
    seed: int
    model: Made | None
    model_name: str
    progress: Progress
    attempt: int
    started_at: datetime | None = None
    finished_at: datetime | None = None
    start_from: Made | None = None
    encoder: dict[str, Any] | None = None
    publish: str = "if_better"
    nested: bool = False
    """Whether the steps of labels are a tree."""
    other: str | int | None = None
    """Class of the documents that are not of the only class that is labeled."""
    status: str | None = None
    warnings: list[str] = []
    report: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Version(_Trained, frozen=True, kw_only=True):
    """A version of a model. It never changes."""

    name: str
    version: int
    job: str
    classes: list[Label]
    kind: str
    n_features: int
    status: str
    takes_over: bool = True
    facts: dict[str, Any] = {}
    held_out: dict[str, Any] | None = None
    confidence: str | None = None
    label_kind: str = "single"
    """Whether it gives each document one label, or any number of them: several."""


class ModelRecord(Struct, frozen=True):
    """A model with its versions, oldest first, and its aliases."""

    name: str
    served: int
    versions: list[Version]
    aliases: dict[str, int]
    warnings: list[str] = []


class ModelSummary(Struct, frozen=True):
    """A model in a list."""

    name: str
    newest: int
    served: int
    aliases: dict[str, int]


class _OfVersion(Struct, frozen=True):
    model: str
    version: int


class Prediction(_OfVersion, frozen=True):
    """Labels and scores of documents, in the order of the documents."""

    classes: list[Label]
    labels: list[Label | list[Label]]
    """Label of each document, by a model of several the list of all that it is given."""
    scores: list[list[float]]
    probabilities: list[list[float]] | None
    """A row a document, a column a class; None if the model is not calibrated."""
    ids: list[str] | None = None
    """Ids of the documents; None if none has one."""
    warnings: list[str] = []
    texts: list[str | None] | None = None
    """Texts of the documents; None of those of a matrix."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def columns(self) -> dict[str, Any]:
        """What a person reads: id, text (where one has it), label, and its probability."""
        name = "labels" if any(isinstance(given, list) for given in self.labels) else "label"
        return {
            "id": [*map(str, range(len(self)))] if self.ids is None else self.ids,
            **({"text": self.texts} if self.texts and any(self.texts) else {}),
            name: self.labels,
            "probability": self.confidences or [None] * len(self),
        }

    def __repr__(self) -> str:
        counts = tally(", ".join(map(str, each)) or "none" if isinstance(each, list) else each for each in self.labels)
        return f"<Prediction of {len(self)} documents by {self.model} version {self.version}: {counts}>"

    @property
    def confidences(self) -> list[float] | None:
        """Probability of each label, of several that of the likeliest; None if the model is not calibrated."""
        return None if self.probabilities is None else list(map(max, self.probabilities))

    def to_pandas(self) -> Any:
        """A DataFrame with a row a document: its id if it has one, its text, its label, and a column of probabilities
        for each class.
        """
        import pandas

        left_out = ("probability", *(["id"] if self.ids is None else []))
        columns = {name: values for name, values in self.columns.items() if name not in left_out}
        if self.probabilities is not None:
            columns |= {
                str(label): [row[place] for row in self.probabilities] for place, label in enumerate(self.classes)
            }
        return pandas.DataFrame(columns)

    def _repr_html_(self) -> str:
        title = f"{len(self)} predictions of {self.model}, version {self.version}"
        return table(title, [*self.columns], zip(*self.columns.values(), strict=True))


class Suggestion(Struct, frozen=True):
    """A document to label next, with the label that the model gives to it."""

    id: str
    label: Label
    rival: Label
    score: float
    probability: float | None
    drawn: str
    margin: float
    voters_differ: bool
    path: dict[str, float] | None = None
    document: dict[str, Any] | None = None

    def __repr__(self) -> str:
        sure = "" if self.probability is None else f" {self.probability:.0%}"
        return f"<Suggestion {self.id}: {self.label}{sure}, or {self.rival}>"

    @property
    def text(self) -> str | None:
        """The text of the document, if it is one."""
        return None if self.document is None else self.document.get("text")

    def _repr_html_(self) -> str:
        shown = {"text": self.text, "label": self.label, "rival": self.rival, "probability": self.probability}
        return pairs(f"Document {self.id}", {name: value for name, value in shown.items() if value is not None})


class Annotation(Struct, frozen=True):
    """An entry of the log of a dataset."""

    sequence: int
    id: str
    document: str
    action: str
    label: Label | None
    drawn: str
    by: str | None
    mode: str | None
    at: datetime
    note: str | None = None
    labels: list[Label] | None = None
    """All that apply in place of one label, in a dataset of several."""
    batch: str | None = None
    """Name of what was done at once."""
    undo_of: str | None = None
    """Id of the entry that an undo takes back; None: the last of the same person."""


class Trace(Struct, frozen=True):
    """The objective by iteration."""

    job: str
    points: list[dict[str, Any]]


class Explanation(Struct, frozen=True):
    """The weights of a model, and contributions for and against the labels of documents.

    ``content`` is the answer of the service.
    """

    content: dict[str, Any]

    def __repr__(self) -> str:
        about = {name: self.content.get(name) or () for name in ("classes", "documents")}
        of = f"{self.content.get('model')} version {self.content.get('version')}"
        return f"<Explanation of {of}: classes {listed(about['classes'])}; {len(about['documents'])} documents>"


class Evaluation(_OfVersion, frozen=True):
    """How good a model is on labeled documents."""

    dataset: str | None
    documents: int
    labeled: int
    accuracy: float
    error: float
    macro_precision: float
    macro_recall: float
    macro_f1: float
    classes: list[dict[str, Any]]
    confusion: list[list[int]]
    calibration: dict[str, Any] | None = None
    warnings: list[str] = []
    micro_f1: float | None = None
    macro_break_even: float | None = None
    told: int | None = None
    several: dict[str, Any] | None = None
    """Figures of sets of labels, by a model of several."""
    evaluated_at: datetime | None = None
    page: str = field(default="", name="_page")
    """The page of figures and plots, as HTML."""

    def show(self) -> None:
        """Show the page with its plots in a notebook; elsewhere print the figures."""
        try:
            from IPython import get_ipython
            from IPython.display import HTML, display
        except ImportError:
            print(self)
            return
        display(HTML(self._repr_html_())) if get_ipython() else print(self)

    def __repr__(self) -> str:
        return (
            f"<Evaluation of {self.model} version {self.version}: error {self.error:.3f}, {self.labeled} labeled "
            "documents>"
        )

    def __str__(self) -> str:
        lines = [
            f"{self.model} version {self.version}: error {self.error:.3f}, macro F1 {self.macro_f1:.3f}, of "
            f"{self.labeled} labeled documents"
        ]
        for each in self.classes:
            figures = (
                f"precision {_figure(each['precision'])}  recall {_figure(each['recall'])}  of {each['documents']}"
            )
            lines.append(f"  {each['label']!s:24} {figures}")
        return "\n".join([*lines, *self.warnings])

    def _repr_html_(self) -> str:
        from html import escape

        return f'<iframe sandbox srcdoc="{escape(self.page)}" style="width:100%;height:48em;border:0"></iframe>'


def _figure(value: float | None) -> str:
    return "    -" if value is None else f"{value:.3f}"


class Webhook(Struct, frozen=True):
    """An address that the service tells of events."""

    id: str
    url: str
    events: list[str]
    created_at: datetime
    waiting: int
    """Number of messages that were not delivered yet."""
    last_error: str | None
    """Why one of them failed last."""
    secret: str | None = None
    """Secret by which messages are signed; known where the webhook is created, and nowhere else."""
