"""Figures of an evaluation, from batches of scored documents, by a model of one label or of several."""

import math
from collections.abc import Iterable, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from app.evaluation.schemas import CalibrationFigures, ClassFigures, ReliabilityBin, SeveralFigures
from app.http.requests import raise_if_disconnected
from app.predictions.scoring import ScoredBatch, UnseenCounter
from core.documents.label_sets import label_order
from core.errors import MAX_FAULTS, Fault, InvalidDocuments
from core.evaluation.measures import (
    Confusion,
    LabelConfusion,
    RankingCounts,
    Reliability,
    ranked,
)
from core.models.model import Model
from core.one_vs_rest import column_of
from storage.errors import translate_os_errors
from storage.records import Label

_CURVES, _CURVE_POINTS = 20, 100
"""Number of classes with a precision-recall curve, and of points of each curve."""
_UNRANKED = "there are too many scores to rank documents: break_even, average_precision and curve are left out"
_NO_RANKING: dict[str, Any] = {"break_even": None, "average_precision": None, "curve": None}


class Evaluator:
    """Accumulates scored documents and computes the figures of their evaluation.

    Memory holds a class index a document and the confusion matrix. The scores are kept in ``file``, up to ``most``
    numbers.
    """

    def __init__(self, model: Model, file: IO[bytes], most: int) -> None:
        self._model = model
        self._class_indices: dict[Label, int] = {label: class_index for class_index, label in enumerate(model.classes)}
        self._confusion = Confusion(len(model.classes))
        self._reliability = None if model.calibration is None else Reliability()
        self._truth: list[NDArray[np.int32]] = []
        self._scores = ScoreFile(file, model.n_columns, most)
        self._unseen = UnseenCounter()
        self._documents = 0

    def add_all(self, batches: Iterable[ScoredBatch]) -> None:
        """Add documents; unlabeled ones are only counted. Raises StoreUnavailable."""
        for scored in batches:
            self._documents += len(scored.labels)
            self._unseen.count(scored)
            labels = [label for label in scored.labels if label is not None]
            scores = scored.scores[[label is not None for label in scored.labels]]
            class_indices = self._class_indices
            truth = np.fromiter(
                (class_indices.setdefault(label, len(class_indices)) for label in labels), np.int32, len(labels)
            )
            self._truth.append(truth)
            self._confusion.add(truth, self._model.labels_of(scores))
            probabilities = self._model.probabilities(scores)
            if self._reliability is not None and probabilities is not None:
                self._reliability.add(probabilities, truth)
            self._scores.add(scores)

    def figures(self) -> dict[str, Any]:
        """The figures, as fields of an ``Evaluation``. Raises InvalidDocuments if no document is labeled,
        StoreUnavailable.
        """
        truth = np.concatenate(self._truth) if self._truth else np.zeros(0, np.int32)
        if not len(truth):
            raise InvalidDocuments(
                "no document has a label to compare with; send labeled documents; of a table ?label=NAME names the "
                "column of labels, on the command line --label NAME",
                [Fault("", "label", "no document has one")],
            )
        n_known = len(self._model.classes)
        labels = [*self._model.classes, *sorted([*self._class_indices][n_known:], key=label_order)]
        order = [self._class_indices[label] for label in labels]
        self._confusion.counts = self._confusion.counts[np.ix_(order, order)]
        agreement = self._confusion.agreement()
        rankings = self._rankings(truth) if self._scores.complete else {}
        classes = [
            ClassFigures(
                label=label,
                known=class_index < n_known,
                documents=int(agreement.support[class_index]),
                given=int(agreement.given[class_index]),
                precision=_fraction(agreement.precision[class_index]),
                recall=_fraction(agreement.recall[class_index]),
                f1=_fraction(agreement.f1[class_index]),
                **rankings.get(class_index, _NO_RANKING),
            )
            for class_index, label in enumerate(labels)
        ]
        return {
            "documents": self._documents,
            "labeled": len(truth),
            "error": 1 - agreement.accuracy,
            "accuracy": agreement.accuracy,
            "macro_precision": agreement.macro.precision,
            "macro_recall": agreement.macro.recall,
            "macro_f1": agreement.macro.f1,
            "micro_f1": agreement.accuracy,
            "classes": classes,
            "confusion": self._confusion.counts.tolist(),
            "calibration": None if self._reliability is None else _calibration(self._reliability),
            "warnings": [
                *_warnings(labels[n_known:], int(agreement.support[n_known:].sum()), self._scores.complete),
                *self._unseen.warnings(),
            ],
        }

    def _rankings(self, truth: NDArray[np.int32]) -> dict[int, dict[str, Any]]:
        """Ranking figures by class index, for classes that documents have.

        One class is ranked at a time, so that memory is that of one.
        """
        scores = self._scores.read()
        support = np.bincount(truth, minlength=len(self._class_indices))[: len(self._model.classes)]
        shown = set(np.argsort(-support, kind="stable")[:_CURVES].tolist())
        found = {}
        for class_index in np.flatnonzero(support).tolist():
            raise_if_disconnected()
            column = np.array(scores[:, column_of(class_index, scores.shape[1])])
            # with two classes, scores are for the second
            ranking = ranked(-column if scores.shape[1] == 1 and class_index == 0 else column, truth == class_index)
            if ranking is not None:
                curve = [(recall, precision) for recall, precision in ranking.curve(_CURVE_POINTS).tolist()]
                found[class_index] = {
                    "break_even": _fraction(ranking.break_even),
                    "average_precision": _fraction(ranking.average_precision),
                    "curve": curve if class_index in shown else None,
                }
        return found


def _warnings(unknown: Sequence[Label], count: int, complete: bool) -> list[str]:
    """Warnings of labels that the model does not know, ``count`` in all documents, and of scores that are not kept."""
    found = []
    if unknown:
        named = ", ".join(repr(label) for label in unknown[:MAX_FAULTS]) + (", …" if len(unknown) > MAX_FAULTS else "")
        found.append(f"{count} labels of documents are unknown to the model; they count as errors: {named}")
    return found if complete else [*found, _UNRANKED]


def _calibration(reliability: Reliability) -> CalibrationFigures:
    return CalibrationFigures(
        expected_error=reliability.expected_error,
        brier=reliability.brier,
        log_loss=reliability.log_loss,
        bins=[
            ReliabilityBin(
                start=each.start,
                end=each.end,
                documents=each.documents,
                confidence=_fraction(each.confidence),
                accuracy=_fraction(each.accuracy),
            )
            for each in reliability.bins
        ],
    )


def _fraction(value: float) -> float | None:
    """The fraction; None for 0 / 0, which is NaN."""
    return None if math.isnan(value) else float(value)


class ScoreFile:
    """Scores in a temporary file, at most ``most`` numbers; beyond that no more scores are kept."""

    def __init__(self, file: IO[bytes], n_columns: int, most: int) -> None:
        self._file = file
        self._n_columns = n_columns
        self._most = most
        self._n_rows = 0

    @property
    def complete(self) -> bool:
        """Whether all scores are kept."""
        return self._n_rows * self._n_columns <= self._most

    @translate_os_errors("write", "the scores of an evaluation")
    def add(self, scores: NDArray[np.float64]) -> None:
        """Keep scores of shape (n_rows, n_columns). Raises StoreUnavailable."""
        self._n_rows += len(scores)
        # written, not mapped: a full disk then raises an error instead of a signal that ends the process
        if self.complete:
            self._file.write(np.ascontiguousarray(scores).data)

    @translate_os_errors("read", "the scores of an evaluation")
    def read(self) -> NDArray[np.float64]:
        """All scores, of shape (n_rows, n_columns), mapped into memory; there is at least one row.

        Raises StoreUnavailable.
        """
        self._file.flush()
        return np.memmap(self._file, np.float64, "r", shape=(self._n_rows, self._n_columns))


class SeveralEvaluator:
    """Accumulates scored documents with all their labels, and computes the figures of their evaluation.

    The probability of each label in float32 is kept in ``file``, negative where it does not apply, up to ``most``
    numbers.
    """

    def __init__(self, model: Model, file: IO[bytes], most: int) -> None:
        self._model, self._places = model, {label: place for place, label in enumerate(model.classes)}
        self._counts, self._rankings = LabelConfusion(len(model.classes)), RankingCounts()
        self._reliability = Reliability()
        self._pairs = ScoreFile(file, len(model.classes), most)
        self._unseen, self._documents, self._known = UnseenCounter(), 0, 0

    def add_all(self, batches: Iterable[ScoredBatch]) -> None:
        """Add documents; those of which not all labels are known are only counted."""
        for scored in batches:
            self._documents += len(scored.labels)
            self._unseen.count(scored)
            # in a dataset of single labels, the one label is the whole set
            sets = scored.sets or [None if label is None else [label] for label in scored.labels]
            known = [row for row, labels in enumerate(sets) if labels is not None]
            places = [[self._places.setdefault(each, len(self._places)) for each in sets[row] or ()] for row in known]
            truth = np.zeros((len(known), len(self._places)), bool)
            for row, own in enumerate(places):
                truth[row, own] = True
            probabilities = self._model.calibrated_probabilities(scored.scores[known])
            given, n_classes = np.zeros_like(truth), len(self._model.classes)
            given[:, :n_classes] = self._model.given_labels(probabilities)
            self._counts.add(truth, given)
            truth = truth[:, :n_classes]
            self._rankings.add(truth, probabilities)
            pairs = np.column_stack([1 - probabilities.ravel(), probabilities.ravel()])
            self._reliability.add(pairs, truth.ravel().astype(np.int64))
            self._known += len(known)
            self._pairs.add(np.copysign(probabilities.astype(np.float32), np.where(truth, 1.0, -1.0)))

    def figures(self) -> dict[str, Any]:
        """The figures, as ``Evaluator.figures``. Raises InvalidDocuments where no document has labels."""
        if not self._known:
            raise InvalidDocuments(
                "no document has labels to compare with; send documents with labels, [] where none applies",
                [Fault("", "labels", "no document has any")],
            )
        found = self._counts.agreement()
        rankings, n_known = self._ranked(), len(self._model.classes)
        unknown = sorted([*self._places][n_known:], key=label_order)
        classes = [
            ClassFigures(
                label=label,
                known=place < n_known,
                documents=int(found.support[place]),
                given=int(found.given[place]),
                precision=float(found.precision[place]),
                recall=float(found.recall[place]),
                f1=float(found.f1[place]),
                **rankings.get(place, _NO_RANKING),
            )
            for label in [*self._model.classes, *unknown]
            for place in [self._places[label]]
        ]
        several = SeveralFigures(
            **{
                f"{measure}_{average}": getattr(getattr(found, average), measure)
                for average in ("micro", "macro", "weighted", "samples")
                for measure in ("precision", "recall", "f1")
            },
            **self._rankings.ranking()._asdict(),
            subset_accuracy=found.subset_accuracy,
            hamming_loss=found.hamming_loss,
            expected_error=self._reliability.expected_error,
        )
        return {
            "documents": self._documents,
            "labeled": self._known,
            "accuracy": found.subset_accuracy,
            "error": 1 - found.subset_accuracy,
            "macro_precision": found.macro.precision,
            "macro_recall": found.macro.recall,
            "macro_f1": found.macro.f1,
            "micro_f1": found.micro.f1,
            "classes": classes,
            "confusion": [],
            "calibration": None,
            "several": several,
            "warnings": [
                *_warnings(unknown, int(found.support[n_known:].sum()), self._pairs.complete),
                *self._unseen.warnings(),
            ],
        }

    def _ranked(self) -> dict[int, dict[str, Any]]:
        """Ranking figures by place, for labels that documents have; none where there are too many scores."""
        found = {}
        for place, pairs in enumerate(self._pairs.read().T if self._pairs.complete else ()):
            raise_if_disconnected()
            own = ranked(np.abs(pairs), ~np.signbit(pairs))
            if own is not None:
                found[place] = {"break_even": own.break_even, "average_precision": own.average_precision, "curve": None}
        return found
