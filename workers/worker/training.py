"""The work of one attempt at a job: fetch the documents, choose the engine, train, compare the new version, store the
files.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import parts_of
from core.documents.part_columns import EncoderId
from core.documents.text.tfidf import class_names
from core.documents.vocabulary import Vocabulary
from core.engine import EngineName
from core.errors import InvalidOption, MessageNames
from core.evaluation.active_learning import top_two
from core.memory_estimate import RowsSize, cheapest_engine, table_bytes, training_bytes
from core.options.base import TrainingSize
from core.options.text import TextOptions
from core.problem import Status
from core.progress import WHOLE, Span, Stopped, Watch
from core.registry import find_algorithm
from storage.errors import JobTooLarge, OutOfRange
from storage.process.tracing import tracing
from storage.records import Comparison, File, JobRequest
from storage.repositories.datasets import Datasets, Documents
from storage.repositories.datasets.files.ids import Ids
from storage.repositories.models import Models
from storage.store import Store, staging_folder
from storage.store.local_files import reported_to
from workers.cluster.address import ClusterAddress
from workers.encoders.encoder import EncoderUnavailable
from workers.worker.comparison import compare
from workers.worker.context import WorkerContext
from workers.worker.heartbeat import Heartbeat
from workers.worker.results import store_results, usable
from workers.worker.store_retry import StoreRetry
from workers.worker.training_inputs import (
    ScratchFiles,
    TextEngine,
    TrainingInputs,
    text_remedy,
    training_inputs,
    with_vectors,
)

if TYPE_CHECKING:
    from core.engine.passes import Engine
    from core.models.model import Model
    from core.task import TrainingTask
    from core.train import Training


_LOCAL: tuple[EngineName, ...] = ("memory", "mapped")
_HELD = "{} holds all documents in memory, where auto and linear methods such as tsvm read them from files"


class ChosenEngine(NamedTuple):
    """The engine of a training."""

    name: EngineName
    resident_bytes: int
    """bytes of memory that are left for the page cache"""
    cluster: ClusterAddress | None = None

    @contextmanager
    def opened(self, store: Store, prefix: str) -> Iterator["Engine"]:
        """The engine, for as long as the block is entered: the training keeps its copies of the rows in a staging
        folder of the store; a cluster reads its rows below ``prefix`` in the store. Raises ClusterUnavailable.
        """
        # imported here, since Numba takes a second to load, and only a training needs it
        from core.engine.passes import Engine

        if self.name == "memory":
            yield Engine()
            return
        with ExitStack() as stack:
            space = ScratchFiles(stack.enter_context(staging_folder(store)))
            if self.cluster is None:
                yield Engine("mapped", space, self.resident_bytes)
                return
            from workers.cluster.engine import ClusterEngine, ClusterStore, connected

            client = stack.enter_context(connected(self.cluster.url, self.cluster.files))
            yield ClusterEngine(client, space, ClusterStore(store, self.cluster.store_url, prefix))


class EngineChoice(NamedTuple):
    """The facts that decide the engine of a job, beside its size."""

    request: JobRequest
    n_labeled: int
    n_classes: int
    n_threads: int
    most_bytes: int
    """bytes of memory that a job may have"""
    engine: Literal["auto"] | EngineName
    """the setting"""
    cluster: ClusterAddress | None = None
    several: bool = False
    """whether documents may have several labels"""

    def of_text(self, size: RowsSize) -> TextEngine:
        """The engine that finds the terms of texts of this size, whatever the algorithm. Raises as ``of``."""
        bound: dict[EngineName, int] = {"memory": size.making_bytes, "mapped": size.least_making_bytes}
        here = "mapped" if self.engine == "cluster" else self.engine
        needed = {each: n_bytes for each, n_bytes in bound.items() if here in ("auto", each)}
        fit = [each for each, n_bytes in needed.items() if n_bytes <= self.most_bytes]
        if not fit:
            name, least = min(needed.items(), key=itemgetter(1))
            raise JobTooLarge(least, self.most_bytes, text_remedy(TextOptions.parse(self.request.text or {}), name))
        return TextEngine(fit[0], table_bytes(size, self.most_bytes) if fit[-1] != "memory" else 0)

    def of(self, size: RowsSize) -> ChosenEngine:
        """The engine of a training of this size.

        Raises JobTooLarge for one that the system would kill halfway for want of memory.
        """
        options, most = find_algorithm(self.request.algorithm).options.parse(self.request.options), self.most_bytes
        training = TrainingSize(
            size.n_rows,
            self.n_labeled,
            size.n_nonzeros,
            size.n_features,
            self.n_classes,
            size.n_parts,
            self.n_threads,
            self.several,
        )
        offered = _LOCAL if self.engine == "auto" else (self.engine,)
        offered = ("memory",) if options.holds_rows else offered
        name = cheapest_engine(options, training, most, offered)
        if name is None:
            remedy, held = (
                options.memory_remedy(training),
                _HELD.format(self.request.algorithm) if options.holds_rows else "",
            )
            needed = min(training_bytes(options, training, each) for each in offered)
            raise JobTooLarge(needed, most, f"{remedy}; {held}" if held else remedy)
        left = most - training_bytes(options, training, name)
        # mapped rows beyond the page cache would be read from the disk in every pass
        shared = self.engine == "cluster" or (self.engine == "auto" and 8 * size.n_nonzeros > left)
        name = "cluster" if shared and self.cluster is not None and name == "mapped" else name
        return ChosenEngine(name, left, self.cluster if name == "cluster" else None)


_DOUBTED, _ENCODED = 0.05, 0.5
"""shares of the work of a job that are done when it is known which texts are doubtful, and when texts have vectors"""
_READING = 0.5
"""share of the seconds that a training may take in which an encoder reads"""
_UNREAD = (
    "the encoder {name!r} has read {read:,} of {texts:,} texts, and not yet all that are labeled, so this version "
    "learned from the terms alone; the next training reads on"
)
_OUT_OF_RANGE = "the numbers of the training ran out of range, so there is no model; "


class Trained(NamedTuple):
    """The results of an attempt, with the records of its stored files."""

    training: "Training"
    comparison: Comparison
    files: dict[str, File]


class Work:
    """The work of one attempt. Its files lie below ``prefix`` in the store."""

    def __init__(
        self, context: WorkerContext, request: JobRequest, heartbeat: Heartbeat, retry: StoreRetry, prefix: str
    ) -> None:
        self._context = context
        self._store = context.store
        self._request = request
        self._heartbeat = heartbeat
        self._retried = retry.call
        self._prefix = prefix
        self._began = time.monotonic()

    def run(self) -> Trained:
        """Do the work. Raises Stopped, Unavailable, and errors that fail the job: OutOfRange, InvalidDocuments, …"""
        with tracing.span("read documents"), reported_to(self._report_fetched):
            documents = self._retried(
                lambda: Datasets(self._store).open_to_train(self._request.dataset, self._request.annotations)
            )
        self._began = time.monotonic()
        with tracing.span("train"):
            encoded, read = self._retried(lambda: self._encoded(documents))
            training = self._train(
                encoded, self._request, WHOLE if self._request.encoder is None else Span(_ENCODED, 1.0)
            )
            if read:
                warnings = training.warnings if read["used"] else [_UNREAD.format(**read), *training.warnings]
                training = replace(training, warnings=warnings, report={**(training.report or {}), "encoder": read})
        if training.status is Status.CANCELLED:
            raise Stopped
        if not usable(training):
            raise OutOfRange(_OUT_OF_RANGE + training.range_remedy, training.largest())
        with tracing.span("compare"):
            comparison = self._retried(lambda: compare(self._store, self._request, documents, training, encoded))
        with tracing.span("store results"):
            files = self._retried(lambda: store_results(self._store, training, documents, self._prefix))
        return Trained(training, comparison, files)

    def _report_fetched(self, file: File, n_bytes: int) -> None:
        """Publish how much of a file of the dataset is there; raises Stopped when the attempt is asked to stop."""
        name = file.key.rpartition("/")[2]
        fetched = f"fetching the documents: {n_bytes / 1e6:,.0f} of {file.bytes / 1e6:,.0f} MB of {name}"
        if self._heartbeat.wait_for(fetched):
            raise Stopped

    def _encoded(self, documents: Documents) -> tuple[Documents, dict[str, Any]]:
        """The documents, with vectors of their texts if the request names an encoder, and the encoder's part of the
        report; raises Stopped.
        """
        context, request = self._context, self._request
        if request.encoder is None:
            return documents, {}
        id = EncoderId(request.encoder.name, request.encoder.digest)
        try:
            encoder = context.encoders.load(id)
        except EncoderUnavailable as error:
            raise InvalidOption("encoder", f"{id.name!r} {error}") from None
        n_rows, vectors = documents.rows.n_rows, RowsSize.of_vectors(documents.rows.n_rows, encoder.width)
        expected = RowsSize.of_parts(n_rows, [RowsSize.of(documents.rows, request.text), vectors])
        self._engine_choice(documents, request).of(expected)  # raises JobTooLarge
        seconds = request.options.get("seconds")
        until = inf if seconds is None else self._began + _READING * seconds
        margins = partial(self._margins, documents) if _has_margins(documents) else None
        found = with_vectors(
            self._store,
            Datasets(self._store).get(request.dataset).documents,
            documents.rows,
            documents.labeled,
            id,
            encoder,
            Watch(self._heartbeat.observe, began=self._began),
            Span(_DOUBTED, _ENCODED),
            until=until,
            margins=margins,
        )
        return documents._replace(rows=found.rows), {
            **request.encoder.model_dump(),
            "read": found.n_read,
            "texts": found.n_texts,
            "used": id.part in parts_of(found.rows),
        }

    def _margins(self, documents: Documents) -> NDArray[np.float64]:
        """How sure a supervised model without vectors is of each unlabeled document, shape (n_rows,)."""
        plain: dict[str, Any] = {"algorithm": "svm", "options": {}, "encoder": None, "start": None, "nested": False}
        training = self._train(documents, self._request.model_copy(update=plain), Span(0.0, _DOUBTED))
        margins = np.zeros(documents.rows.n_rows)
        margins[training.unlabeled] = top_two(training.scores).margins
        return margins

    def _engine_choice(self, documents: Documents, request: JobRequest) -> EngineChoice:
        context, n_labeled = self._context, int(np.count_nonzero(documents.labeled))
        return EngineChoice(
            request,
            n_labeled,
            len(documents.classes),
            context.threads,
            context.max_job_bytes,
            context.settings.engine,
            context.cluster,
            documents.label_sets is not None,
        )

    def _train(self, documents: Documents, request: JobRequest, span: Span) -> "Training":
        # imported here, since Numba takes a second to load, and only a training needs it
        from core.train import TrainingContext, train

        context = self._context
        with ExitStack() as stack:
            watch = Watch(self._heartbeat.observe, span, self._began)
            choice = self._engine_choice(documents, request)
            expected = RowsSize.of(documents.rows, request.text)
            text_engine = choice.of_text(expected)
            open_inputs = partial(
                training_inputs,
                self._store,
                documents.rows,
                request.text,
                watch,
                context.max_job_bytes,
                text_engine,
                context.threads,
            )
            choice.of(expected)  # raises JobTooLarge
            inputs = self._retried(lambda: stack.enter_context(open_inputs()))
            chosen = choice.of(RowsSize.of(inputs.rows, None)._replace(n_parts=len(parts_of(documents.rows))))
            engine = self._retried(lambda: stack.enter_context(chosen.opened(self._store, self._prefix)))
            start = None
            if request.start is not None:
                models = Models(self._store)
                start = inputs.renumbered(models.load(models.version(request.start.name, request.start.version)))
            training = train(
                _task(inputs, documents, request, start),
                TrainingContext(
                    self._heartbeat.observe,
                    span.between(*inputs.rest),
                    self._began,
                    context.threads,
                    context.settings.max_model_bytes,
                    engine,
                ),
            )
        model = replace(training.model, vocabulary=inputs.columns_by(request.encoder), nested=request.nested)
        report = {**(training.report or {}), "engine": chosen.name}
        report |= {} if inputs.terms_engine is None else {"terms_engine": inputs.terms_engine}
        if request.nested and documents.votes is None:
            report |= _nested_report(training, documents)
        return replace(training, model=model, warnings=[*inputs.warnings, *training.warnings], report=report)


def _has_margins(documents: Documents) -> bool:
    """Whether a supervised model can tell which documents are doubtful: each has one label at most, of two or more."""
    if documents.label_sets is not None or documents.votes is not None:
        return False
    weighs = documents.weights is None or documents.weights > 0
    return len(np.unique(documents.class_indices[(documents.class_indices >= 0) & weighs])) > 1


def _nested_report(training: "Training", documents: Documents) -> dict[str, Any]:
    """The part of the report on a tree of labels, by labels that were left out; none where none was."""
    if training.held_out is None:
        return {}
    left_out = np.isfinite(training.held_out).all(axis=1)
    probabilities = training.model.calibrated_probabilities(training.held_out[left_out])
    places = {label: place for place, label in enumerate(training.model.classes)}
    known = documents.class_indices[documents.known][left_out].tolist()
    truth = np.array([places[documents.classes[place]] for place in known], np.int64)
    return {"nested": training.model.tree.report(probabilities, truth)}


def _task(inputs: TrainingInputs, documents: Documents, request: JobRequest, start: "Model | None") -> "TrainingTask":
    from core.task import TrainingTask

    return TrainingTask(
        inputs.rows,
        documents.class_indices,
        documents.classes,
        request.algorithm,
        request.options,
        seed=request.seed,
        start=start,
        parts=inputs.parts,
        drawn=documents.drawn,
        label_sets=documents.label_sets,
        class_names=None if documents.label_sets is None else class_names(documents.classes, inputs.vocabulary),
        votes=documents.votes,
        by_voters=documents.by_voters,
        weights=documents.weights,
        other=request.other,
        names=_names(documents.ids, inputs.vocabulary),
    )


def _names(ids: Ids, vocabulary: Vocabulary) -> MessageNames:
    """The names of documents and features in messages to the owner of a dataset."""

    def feature(column: int) -> str | int:
        named = vocabulary.named(np.array([column]))
        return column if named is None else named[0]

    return MessageNames(lambda position: ids.taken([position])[0], feature)
