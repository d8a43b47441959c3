"""The work of one attempt at a job: fetch the documents, train, compare the new version, store the files."""

import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import parts_of
from core.documents.part_columns import EncoderId
from core.documents.text.tfidf import class_names
from core.documents.vocabulary import Vocabulary
from core.errors import InvalidOption, MessageNames
from core.evaluation.active_learning import top_two
from core.memory_estimate import RowsSize
from core.problem import Status
from core.progress import WHOLE, Span, Stopped, Watch
from storage.errors import OutOfRange
from storage.process.tracing import tracing
from storage.records import Comparison, File, JobRequest
from storage.repositories.datasets import Datasets, Documents
from storage.repositories.datasets.files.ids import Ids
from storage.repositories.models import Models
from storage.store.local_files import reported_to
from workers.encoders.encoder import EncoderUnavailable
from workers.worker.context import WorkerContext
from workers.worker.engines import EngineChoice
from workers.worker.heartbeat import Heartbeat, StoreRetry
from workers.worker.inputs import TrainingInputs, size_of, training_inputs, with_vectors
from workers.worker.results import compare, store_results, usable

if TYPE_CHECKING:
    from core.models.model import Model
    from core.train import Training
    from core.training import TrainingTask

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

    def done(self) -> Trained:
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
            raise OutOfRange(_OUT_OF_RANGE + training.range_remedy, training.largest)
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
        expected = RowsSize.of_parts(n_rows, [size_of(documents.rows, request.text), vectors])
        self._engine_choice(documents, request).check(expected)
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
            context.engine,
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
            expected = size_of(documents.rows, request.text)
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
            choice.check(expected)
            inputs = self._retried(lambda: stack.enter_context(open_inputs()))
            chosen = choice.of(size_of(inputs.rows, None)._replace(n_parts=len(parts_of(documents.rows))))
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
                    context.max_model_bytes,
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
    return (
        documents.label_sets is None
        and documents.votes is None
        and len(np.unique(documents.class_indices[documents.known])) > 1
    )


def _nested_report(training: "Training", documents: Documents) -> dict[str, Any]:
    """The part of the report on a tree of labels, by labels that were left out; none where none was."""
    if training.held_out is None:
        return {}
    left_out = np.isfinite(training.held_out).all(axis=1)
    probabilities = training.model.probabilities(training.held_out[left_out])
    assert probabilities is not None
    places = {label: place for place, label in enumerate(training.model.classes)}
    known = documents.class_indices[documents.known][left_out].tolist()
    truth = np.array([places[documents.classes[place]] for place in known], np.int64)
    return {"nested": training.model.tree.report(probabilities, truth)}


def _task(inputs: TrainingInputs, documents: Documents, request: JobRequest, start: "Model | None") -> "TrainingTask":
    from core.training import TrainingTask

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
