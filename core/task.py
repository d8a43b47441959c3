"""What a training is asked to do, what it runs on, and what it returns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw, checked_drawn
from core.documents.label_sets import LabelSets
from core.documents.reorder import Compact, compact
from core.documents.rows import Space, SparseRows
from core.documents.votes import Votes, checked_weights
from core.engine.passes import Engine
from core.engine.runner import PassCounter, Scheduler
from core.errors import Fault, MessageNames
from core.models.model import LinearModel, Model
from core.one_vs_rest import n_problems
from core.options.base import Options
from core.problem import Status
from core.progress import WHOLE, Checkpoint, Observer, Span, TracePoint, Watch
from core.registry import Algorithm, check_options, find_algorithm
from core.selection.data import SelectionData
from core.validation.confidence import Confidence
from core.validation.label_calibration import LabelCalibration


@dataclass(frozen=True)
class TrainingTask:
    """Documents, labels, algorithm and options of a training."""

    rows: SparseRows
    class_indices: NDArray[np.integer[Any]]
    """shape (n_rows,): each document's position in ``classes``, -1 where it is unlabeled"""
    classes: Sequence[str | int]
    """labels, sorted; those that no document has are left out of the model"""
    algorithm: str
    """name in the registry"""
    options: Mapping[str, Any]
    """options of the algorithm, as JSON"""
    seed: int = 0
    """seed of the folds, and of the random numbers of algorithms that draw any"""
    start: Model | None = None
    """model of nearly the same documents, as before some more labels: training from it takes a fraction of the passes;
    classes that it does not have start from nothing"""
    parts: Mapping[str, slice] = field(default_factory=dict)
    """of documents of several parts the columns of each, by name"""
    drawn: NDArray[np.integer[Any]] | None = None
    """shape (n_rows,): how each document's label was come by, values of core.documents.drawn.Draw, of no meaning where
    it is unlabeled; None: nothing is known"""
    label_sets: LabelSets | None = None
    """known labels of documents that may have several, in place of ``class_indices`` and ``classes``; None: each has
    one at most"""
    votes: Votes | None = None
    """votes of rules, models and people beside the labels; None: there are none"""
    by_voters: NDArray[np.bool_] | None = None
    """shape (n_rows,): labels that voters gave themselves, and that therefore say nothing of how right these are; None:
    there are none"""
    weights: NDArray[np.float64] | None = None
    """shape (n_rows,): weight of each document's label, at least 0; None: all 1"""
    other: str | int | None = None
    """name of the class of all documents that are not of the one class that is labeled; None: the usual one"""
    class_names: SparseRows | None = None
    """the names of the classes of ``label_sets``, as rows of terms that documents have; None where columns are no
    terms
    """
    linear: bool = False
    """whether the model must be linear, and of the values as they are"""
    supervised: bool = False
    """whether ``auto`` learns from labeled documents alone"""
    weighs_terms: bool = False
    """whether values of sparse documents are weighed as terms of text are; ``auto`` does so always"""
    names: MessageNames = field(default_factory=MessageNames)
    """names of documents and features in messages"""


@dataclass(frozen=True)
class CheckedTask:
    """A task that can be trained."""

    task: TrainingTask
    algorithm: Algorithm
    options: Options
    classes: list[str | int]
    """labels that documents have"""
    order: NDArray[np.int64]
    """shape (n_rows,): positions of the documents, the labeled ones first"""
    weights: NDArray[np.float64]
    """shape (n_labeled,): weight of the label of each document, above 0; documents of weight 0 are unlabeled"""

    def compact(self, run: "Run") -> Compact:
        """The documents as the algorithm reads them. One that scales features weighs terms, too."""
        return compacted(self.task, self.order, run, weighs=self.task.weighs_terms or self.options.rescales_features)

    @property
    def n_labeled(self) -> int:
        """Number of labeled documents."""
        return len(self.weights)

    @property
    def unlabeled(self) -> NDArray[np.int64]:
        """shape (n_unlabeled,), ascending: positions of the other documents."""
        return self.order[self.n_labeled :]

    @property
    def drawn(self) -> NDArray[np.int8]:
        """shape (n_labeled,): how each label was come by, values of core.documents.drawn.Draw; what the option
        labels_drawn says holds for all. Labels that the option calls chosen were looked for.
        """
        drawn = checked_drawn(self.task.drawn, self.task.rows.n_rows)[self.order[: self.n_labeled]]
        requested = self.options.requested_fractions(self.classes)
        if requested is not None and requested.labels_drawn != "unknown":
            random = requested.labels_drawn == "random"
            drawn = np.full(self.n_labeled, Draw.RANDOM if random else Draw.FOUND, np.int8)
        return drawn


def compacted(task: TrainingTask, order: NDArray[np.int64], run: "Run", *, weighs: bool = True) -> Compact:
    """A copy of the documents at these positions, with weights of terms; documents of several parts are scaled already.
    Raises Stopped.
    """
    documents = compact(task.rows, order, run.watch, run.context.engine.space)
    return documents.weighed(run.watch) if weighs and len(task.parts) < 2 and not task.linear else documents


@dataclass(frozen=True)
class SingleTask(CheckedTask):
    """A task of one label a document, whose weights have the mean 1."""

    class_indices: NDArray[np.integer[Any]]
    """shape (n_labeled,): positions in these classes"""

    @classmethod
    def of(cls, task: TrainingTask) -> Self:
        """The task with its options parsed; raises as ``core.train.train``."""
        weights, known = checked_weights(task.weights, task.rows.n_rows), cls.labeled(task)
        labeled, unlabeled = np.flatnonzero(known), np.flatnonzero(~known)
        present, class_indices = np.unique(task.class_indices[labeled], return_inverse=True)
        classes = [task.classes[position] for position in present]
        options = check_options(task.algorithm, task.options, classes, task.rows.n_rows)
        return cls(
            task,
            find_algorithm(task.algorithm),
            options,
            classes,
            np.concatenate([labeled, unlabeled]),
            weights[labeled] / weights[labeled].mean(),
            class_indices,
        )

    @staticmethod
    def labeled(task: TrainingTask) -> NDArray[np.bool_]:
        """shape (n_rows,): whether a document has a label that weighs anything."""
        return np.asarray((task.class_indices >= 0) & (checked_weights(task.weights, task.rows.n_rows) > 0))

    def of_all_labels(self, held_out: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of the labeled documents, shape (n_labeled, n_columns), with NaN for labels of weight 0 in between."""
        labeled = np.flatnonzero(self.task.class_indices >= 0)
        found = np.full((len(labeled), held_out.shape[1]), np.nan)
        found[np.isin(labeled, self.order[: self.n_labeled])] = held_out
        return found

    def known_fractions(self) -> NDArray[np.float64] | None:
        """Class fractions that need no estimate, shape (n_classes,).

        None if they are to be estimated, or play no part.
        """
        requested = self.options.requested_fractions(self.classes)
        if requested is None:
            return None
        if requested.fractions is not None:
            return np.array(list(requested.fractions.values()))
        if requested.source == "labeled" or not len(self.unlabeled):
            return np.asarray(np.bincount(self.class_indices, self.weights, len(self.classes)) / self.weights.sum())
        return None

    def fraction_bounds(self) -> NDArray[np.float64] | None:
        """The least and the largest fraction of each class, shape (n_classes, 2); None where nothing is known."""
        requested = self.options.requested_fractions(self.classes)
        return None if requested is None or requested.bounds is None else np.array(list(requested.bounds.values()))

    def columns_by_part(self, features: NDArray[np.integer[Any]]) -> dict[str, NDArray[np.int64]]:
        """Of documents of several parts the columns of each that has any, ascending, by name.

        ``features`` are those of the columns, ascending.
        """
        columns = {
            name: np.arange(*np.searchsorted(features, [own.start, own.stop])) for name, own in self.task.parts.items()
        }
        return {name: own for name, own in columns.items() if len(own)}

    def part_numbers(self, features: NDArray[np.integer[Any]]) -> NDArray[np.int64] | None:
        """The part of each of these features, shape (n_features,); None of documents of one part."""
        columns = list(self.columns_by_part(features).values())
        if len(columns) < 2:
            return None
        numbers = np.zeros(len(features), np.int64)
        for number, own in enumerate(columns):
            numbers[own] = number
        return numbers

    def selection_data(
        self, rows: SparseRows, centred: bool, checkpoint: Checkpoint, space: Space, *, bags: bool = False
    ) -> SelectionData:
        """The data of a selection or of an estimate of class fractions, with copies of the rows in ``space``; raises
        errors of ``checkpoint``. ``bags``: the rows are bags of terms, however many values they have.
        """
        return SelectionData.of(
            rows,
            self.class_indices,
            self.classes,
            self.task.seed,
            checkpoint,
            self.drawn,
            space,
            centred=centred,
            bags=bags,
            bounds=self.fraction_bounds(),
            weights=self.weights,
        )


@dataclass(frozen=True)
class TrainingContext:
    """The surroundings of a training: observer, threads, limits and engine."""

    observer: Observer | None = None
    """callback for progress; a true answer stops the training"""
    span: Span = WHOLE
    """stretch of the observed work that this training is"""
    began: float | None = None
    """time by ``time.monotonic`` at which the observed work began; None: now"""
    threads: int | None = None
    """number of threads; None: one a core"""
    max_model_bytes: int | None = None
    """most bytes of the documents that a model keeps and of their weights"""
    engine: Engine = field(default_factory=Engine)
    """where the rows lie, and what reads them; algorithms that must hold all rows take memory"""


class Run(NamedTuple):
    """State that all parts of one training share."""

    context: TrainingContext
    watch: Watch
    counter: PassCounter

    @classmethod
    def of(cls, context: TrainingContext) -> Self:
        """The state at the beginning."""
        return cls(context, Watch(context.observer, context.span, context.began), PassCounter())

    def scheduler(self, rows: SparseRows) -> Scheduler:
        """A scheduler of solvers over these rows."""
        return Scheduler(
            rows,
            engine=self.context.engine,
            threads=self.context.threads,
            max_model_bytes=self.context.max_model_bytes,
            watch=self.watch,
            counter=self.counter,
        )


@dataclass(frozen=True)
class Training:
    """A trained model, and its predictions for the unlabeled documents."""

    model: Model
    unlabeled: NDArray[np.int64]
    """shape (n_unlabeled,), ascending: positions of the documents that were unlabeled"""
    scores: NDArray[np.float64]
    """shape (n_unlabeled, 1 for two classes or n_classes): scores of these documents"""
    probabilities: NDArray[np.float64] | None
    """shape (n_unlabeled, n_classes), or None where the model was not calibrated"""
    objective: float
    """objective of the two-class problem, or the sum over those of one-vs-rest"""
    status: Status
    """least satisfying status of all solvers"""
    warnings: list[str]
    trace: list[TracePoint]
    passes: float
    """passes over the nonzeros, summed over all solves, those for estimates and probabilities included"""
    report: dict[str, Any] | None = None
    """what was estimated and selected, and why, as JSON; of auto also what was tried; None where nothing was to be
    found"""
    range_remedy: str = ""
    """what would have kept its numbers within range, for a training that is not usable"""
    largest: Callable[[], Fault | None] = lambda: None
    """largest value of all documents, as a fault of its document, whose id is looked for when this is called"""
    held_out: NDArray[np.float64] | None = None
    """shape (n_labeled, n_columns): scores of the labeled documents in their order, each by cross-validation without
    its label; NaN where no fold leaves a document out; None of a training without cross-validation"""
    confidence: Confidence | None = None
    """what these scores show of the model"""


def untrained(
    classes: Sequence[str | int],
    unlabeled: NDArray[np.int64],
    n_features: int,
    passes: float = 0.0,
    calibration: LabelCalibration | None = None,
) -> Training:
    """The outcome when training is stopped before there is any iterate, after so many passes: coefficients of no
    feature. With ``calibration`` documents may have several labels.
    """
    n_columns = n_problems(len(classes)) if calibration is None else len(classes)
    nothing, scores = np.zeros((0, n_columns)), np.full((len(unlabeled), n_columns), np.nan)
    model = LinearModel(
        classes, n_features, np.zeros(0, np.uint32), nothing, np.zeros(n_columns), calibration=calibration
    )
    return Training(model, unlabeled, scores, None, np.nan, Status.CANCELLED, [], [], passes)
