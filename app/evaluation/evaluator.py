"""Figures of an evaluation, from batches of scored documents."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.evaluation.schemas import CalibrationFigures, ClassFigures, Evaluation, ReliabilityBin
from app.evaluation.score_file import ScoreFile
from app.http.disconnect import raise_if_disconnected
from app.predictions.scoring import ScoredBatch, UnseenCounter
from core.errors import MAX_FAULTS, Fault, InvalidDocuments
from core.evaluation import Agreement, Confusion, Ranking, Reliability, ranked
from core.models.model import Model
from core.one_vs_rest import column_of
from workers.contract import Label, Version

_CURVES, _CURVE_POINTS = 20, 100
"""Number of classes with a precision-recall curve, and of points of each curve."""


class Evaluator:
    """Accumulates scored documents and computes the figures of their evaluation.

    Memory holds a class index a document and the confusion matrix. The scores are kept in ``file``, up to ``most`` numbers.
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

    def add(self, scored: ScoredBatch) -> None:
        """Add documents; unlabeled ones are only counted. Raises StoreUnavailable."""
        self._documents += len(scored.labels)
        self._unseen.count(scored)
        labels = [label for label in scored.labels if label is not None]
        scores = scored.scores if len(labels) == len(scored.labels) else scored.scores[[label is not None for label in scored.labels]]
        class_indices = self._class_indices
        truth = np.fromiter((class_indices.setdefault(label, len(class_indices)) for label in labels), np.int32, len(labels))
        self._truth.append(truth)
        self._confusion.add(truth, self._model.labels_of(scores))
        probabilities = self._model.probabilities(scores)
        if self._reliability is not None and probabilities is not None:
            self._reliability.add(probabilities, truth)
        self._scores.add(scores)

    def evaluation(self, version: Version, dataset: str | None, n_documents: int | None, told: int | None, warnings: Sequence[str]) -> Evaluation:
        """The figures. ``n_documents`` is given if not all documents were added, ``told`` is what ``Evaluation`` says of it.

        Raises InvalidDocuments if none is labeled, StoreUnavailable."""
        truth = np.concatenate(self._truth) if self._truth else np.zeros(0, np.int32)
        if not len(truth):
            raise InvalidDocuments(
                "no document has a label to compare with; send labeled documents; of a table ?label=NAME names the column of labels",
                [Fault("", "label", "no document has one")],
            )
        labels, order = self._ordered()
        self._confusion.counts = self._confusion.counts[np.ix_(order, order)]
        agreement = self._confusion.agreement()
        rankings = self._rankings(truth) if self._scores.complete else {}
        classes = _classes(labels, len(self._model.classes), agreement, rankings)
        return Evaluation(
            model=version.name,
            version=version.number,
            dataset=dataset,
            evaluated_at=datetime.now(UTC),
            documents=self._documents if n_documents is None else n_documents,
            labeled=len(truth),
            told=told,
            error=1 - agreement.accuracy,
            macro_break_even=_mean([each.break_even for each in classes if each.break_even is not None]),
            classes=classes,
            confusion=self._confusion.counts.tolist(),
            calibration=None if self._reliability is None else _calibration(self._reliability),
            warnings=[*warnings, *self._warnings(labels, agreement), *self._unseen.warnings()],
            **{name: getattr(agreement, name) for name in ("accuracy", "macro_precision", "macro_recall", "macro_f1", "micro_f1")},
        )

    def _ordered(self) -> tuple[list[Label], list[int]]:
        """All labels with their class indices: those of the model, then the unknown ones, sorted."""
        known: list[Any] = list(self._class_indices)
        n_classes = len(self._model.classes)
        labels = [*known[:n_classes], *sorted(known[n_classes:])]
        return labels, [self._class_indices[label] for label in labels]

    def _rankings(self, truth: NDArray[np.int32]) -> dict[int, "_RankingFigures"]:
        """Ranking figures by class index, for classes that documents have. One class is ranked at a time, so that memory is that of one."""
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
                found[class_index] = _ranking_figures(ranking, class_index in shown)
        return found

    def _warnings(self, labels: Sequence[Label], agreement: Agreement) -> list[str]:
        found = []
        unknown = labels[len(self._model.classes) :]
        if unknown:
            count = int(agreement.support[len(self._model.classes) :].sum())
            named = ", ".join(repr(label) for label in unknown[:MAX_FAULTS]) + (", …" if len(unknown) > MAX_FAULTS else "")
            found.append(f"{count} documents have labels that the model does not know; they count as errors: {named}")
        if not self._scores.complete:
            found.append("there are too many scores to rank documents: break_even, average_precision and curve are left out")
        return found


class _RankingFigures(NamedTuple):
    """Figures of a ranking."""

    break_even: float
    average_precision: float
    curve: list[tuple[float, float]] | None


def _ranking_figures(ranking: Ranking, shown: bool) -> _RankingFigures:
    curve = [(recall, precision) for recall, precision in ranking.curve(_CURVE_POINTS).tolist()] if shown else None
    return _RankingFigures(ranking.break_even, ranking.average_precision, curve)


def _classes(labels: Sequence[Label], n_known: int, agreement: Agreement, rankings: dict[int, _RankingFigures]) -> list[ClassFigures]:
    nothing = _RankingFigures(math.nan, math.nan, None)
    return [
        ClassFigures(
            label=label,
            known=class_index < n_known,
            documents=int(agreement.support[class_index]),
            given=int(agreement.given[class_index]),
            precision=_fraction(agreement.precision[class_index]),
            recall=_fraction(agreement.recall[class_index]),
            f1=_fraction(agreement.f1[class_index]),
            break_even=_fraction(rankings.get(class_index, nothing).break_even),
            average_precision=_fraction(rankings.get(class_index, nothing).average_precision),
            curve=rankings.get(class_index, nothing).curve,
        )
        for class_index, label in enumerate(labels)
    ]


def _calibration(reliability: Reliability) -> CalibrationFigures:
    bins = [
        ReliabilityBin(
            start=each.start, end=each.end, documents=each.documents, confidence=_fraction(each.confidence), accuracy=_fraction(each.accuracy)
        )
        for each in reliability.bins
    ]
    return CalibrationFigures(expected_error=reliability.expected_error, brier=reliability.brier, log_loss=reliability.log_loss, bins=bins)


def _fraction(value: float) -> float | None:
    """The fraction; None for 0 / 0, which is NaN."""
    return None if math.isnan(value) else float(value)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
