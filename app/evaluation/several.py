"""Figures of an evaluation of a model of several labels, from batches of scored documents."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from app.evaluation.schemas import ClassFigures, Evaluation, SeveralFigures
from app.predictions.scoring import ScoredBatch, UnseenCounter
from core.errors import Fault, InvalidDocuments
from core.evaluation import Reliability, ranked
from core.evaluation.label_agreement import LabelAgreement, LabelCounts, RankingCounts
from core.evaluation.ranking import Ranking
from core.models.model import Model
from storage.records import Version


class SeveralEvaluator:
    """Accumulates scored documents with all their labels, and computes the figures of their evaluation.

    Memory holds the labels of documents, and a probability in float32 of each document and label.
    """

    def __init__(self, model: Model) -> None:
        self._model, self._places = model, {label: place for place, label in enumerate(model.classes)}
        self._counts, self._rankings = LabelCounts(len(model.classes)), RankingCounts()
        self._reliability = Reliability()
        self._truth: list[NDArray[np.bool_]] = []
        self._likely: list[NDArray[np.float32]] = []
        self._unseen, self._documents, self._beyond = UnseenCounter(), 0, 0

    def add_all(self, batches: Iterable[ScoredBatch]) -> None:
        """Add documents; those of which not all labels are known are only counted."""
        for scored in batches:
            self._documents += len(scored.labels)
            self._unseen.count(scored)
            # in a dataset of single labels, the one label is the whole set
            sets = scored.sets or [None if label is None else [label] for label in scored.labels]
            known = [row for row, labels in enumerate(sets) if labels is not None]
            truth = np.zeros((len(known), len(self._places)), bool)
            for row, place in enumerate(known):
                for label in sets[place] or ():
                    if label in self._places:
                        truth[row, self._places[label]] = True
                    else:
                        self._beyond += 1
            probabilities = self._model.probabilities(scored.scores[known])
            assert probabilities is not None
            self._counts.add(truth, self._model.given_labels(probabilities))
            self._rankings.add(truth, probabilities)
            pairs = np.column_stack([1 - probabilities.ravel(), probabilities.ravel()])
            self._reliability.add(pairs, truth.ravel().astype(np.int64))
            self._truth.append(truth)
            self._likely.append(probabilities.astype(np.float32))

    def evaluation(
        self, version: Version, dataset: str | None, n_documents: int | None, told: int | None, warnings: Sequence[str]
    ) -> Evaluation:
        """The figures, as ``Evaluator.evaluation`` gives them. Raises InvalidDocuments where no document has labels."""
        truth, likely = np.concatenate(self._truth), np.concatenate(self._likely)
        if not len(truth):
            raise InvalidDocuments(
                "no document has labels to compare with; send documents with labels, [] where none applies",
                [Fault("", "labels", "no document has any")],
            )
        found = self._counts.agreement()
        rankings = [ranked(likely[:, place].astype(np.float64), truth[:, place]) for place in range(truth.shape[1])]
        classes = self._classes(found, rankings)
        if self._beyond:
            warnings = [*warnings, f"{self._beyond} labels of documents are unknown to the model, and left out"]
        break_evens = [own.break_even for own in rankings if own is not None]
        return Evaluation(
            model=version.name,
            version=version.number,
            dataset=dataset,
            evaluated_at=datetime.now(UTC),
            documents=self._documents if n_documents is None else n_documents,
            labeled=len(truth),
            told=told,
            accuracy=found.subset_accuracy,
            error=1 - found.subset_accuracy,
            macro_precision=found.macro.precision,
            macro_recall=found.macro.recall,
            macro_f1=found.macro.f1,
            micro_f1=found.micro.f1,
            macro_break_even=sum(break_evens) / len(break_evens) if break_evens else None,
            classes=classes,
            confusion=[],
            calibration=None,
            several=self._several(found),
            warnings=[*warnings, *self._unseen.warnings()],
        )

    def _classes(self, found: LabelAgreement, rankings: Sequence[Ranking | None]) -> list[ClassFigures]:
        return [
            ClassFigures(
                label=label,
                known=True,
                documents=int(found.support[place]),
                given=int(found.given[place]),
                precision=float(found.precision[place]),
                recall=float(found.recall[place]),
                f1=float(found.f1[place]),
                break_even=None if own is None else own.break_even,
                average_precision=None if own is None else own.average_precision,
                curve=None,
            )
            for place, (label, own) in enumerate(zip(self._model.classes, rankings, strict=True))
        ]

    def _several(self, found: LabelAgreement) -> SeveralFigures:
        averages = {
            f"{measure}_{average}": getattr(getattr(found, average), measure)
            for average in ("micro", "macro", "weighted", "samples")
            for measure in ("precision", "recall", "f1")
        }
        return SeveralFigures(
            **averages,
            **self._rankings.ranking()._asdict(),
            subset_accuracy=found.subset_accuracy,
            hamming_loss=found.hamming_loss,
            expected_error=self._reliability.expected_error,
        )
