"""Trainings on documents of which some lack vectors: one on what all documents have, one on those that have all parts.

An encoder reads a share of a large pool, the labeled documents first. To what knows vectors alone, all documents
without one are the same: in a sum it flattens what their text says, and class fractions that are right for these are
wrong for the others. So the first model learns from the whole pool by its other parts, and answers the documents that
lack a vector. The second one learns from those that have all parts. Documents that have all, as new ones do, are
answered by the sum of both: the first has learned from more of them.
"""

import time
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import is_dense
from core.documents.reorder import gathered
from core.evaluation.training_warnings import NO_UNLABELED
from core.models.assembly import scores_in_slices
from core.models.model import LinearModel
from core.models.parted import PartedModel
from core.problem import Status
from core.progress import Phase, Span, Watch
from core.registry import AUTO
from core.selection.class_fractions import by_class, fraction_warnings
from core.selection.data import with_features
from core.selection.prediction import judge
from core.selection.report import time_warnings
from core.task import SingleTask, Training, TrainingContext, TrainingTask
from core.weak_supervision.derived import Train
from core.weak_supervision.opinion_pool import opinion_pool

_MOST_FEATURES = 1 << 24
"""features up to which a table of all is bearable"""
_FIRST = 0.5
"""share of the work that the training on what all documents have is"""
_FIRST_SECONDS = 0.3
"""share of the seconds that are left which that training may take: the other one has more parts"""


class Incomplete(NamedTuple):
    """A task some of whose unlabeled documents lack vectors."""

    task: TrainingTask
    lacked: dict[str, slice]
    """the columns of these vectors, by the name of the part"""
    complete: NDArray[np.bool_]
    """shape (n_rows,): documents that have all vectors, among them all labeled ones"""

    @classmethod
    def of(cls, task: TrainingTask) -> Self | None:
        """The task, if it is one of these, of ``auto``, and labels of two classes or more weigh anything; else None."""
        labeled, weighs = task.class_indices >= 0, SingleTask.labeled(task)
        several = task.votes is not None or task.label_sets is not None
        if task.algorithm != AUTO.name or several or len(np.unique(task.class_indices[weighs])) < 2:
            return None
        held = {name: task.rows.held(own.start, own.stop) for name, own in task.parts.items() if is_dense(name)}
        lacked = {name: task.parts[name] for name, own in held.items() if not own.all()}
        if not lacked or len(lacked) == len(task.parts) or task.rows.n_features > _MOST_FEATURES:
            return None
        complete = np.logical_and.reduce(list(held.values()))
        return cls(task, lacked, complete) if complete[labeled].all() else None

    def trained(self, train: Train, context: TrainingContext) -> Training:
        """Both trainings as one; raises Stopped where there is no iterate at hand, and as core.train.train does."""
        began = time.monotonic() if context.began is None else context.began
        first, second = context.span.between(0.0, _FIRST), context.span.between(_FIRST, 1.0)
        task, numbers = self._of_all_documents(context, self._watch(context, first.start, began))
        found = train(task, replace(context, span=first, began=began))
        found = replace(found, model=found.model.renumbered(numbers))
        if found.status is Status.CANCELLED:
            return found
        task, positions = self._of_all_parts(context, self._watch(context, second.start, began))
        whole = train(task, replace(context, span=second, began=began))
        if whole.status is Status.CANCELLED:
            return replace(found, status=Status.CANCELLED)
        return self._joined(
            found,
            replace(whole, unlabeled=positions[whole.unlabeled]),
            self._watch(context, second.stop, began),
        )

    def _watch(self, context: TrainingContext, position: float, began: float) -> Watch:
        """The checkpoint of work that takes no share of the whole."""
        watch = Watch(context.observer, Span(position, position), began)
        watch.begin(Phase(self.task.algorithm))
        return watch

    def _of_all_documents(self, context: TrainingContext, watch: Watch) -> tuple[TrainingTask, NDArray[np.int64]]:
        """The task without the vectors that some lack, and the number here of each of its features."""
        task, kept = self.task, np.ones(self.task.rows.n_features, bool)
        for own in self.lacked.values():
            kept[own] = False
        numbers, options = np.flatnonzero(kept), dict(task.options)
        if options.get("seconds") is not None:
            options["seconds"] = watch.seconds + _FIRST_SECONDS * (options["seconds"] - watch.seconds)
        places = {
            name: slice(*np.searchsorted(numbers, [own.start, own.stop]).tolist())
            for name, own in task.parts.items()
            if name not in self.lacked
        }
        rows = with_features(task.rows, kept, watch, context.engine.space)
        names = task.names._replace(feature=lambda column: task.names.feature(int(numbers[column])))
        return replace(task, rows=rows, options=options, parts=places, names=names, linear=True), numbers

    def _of_all_parts(self, context: TrainingContext, watch: Watch) -> tuple[TrainingTask, NDArray[np.int64]]:
        """The task of the documents that have all parts, and their positions; of the labeled ones alone, where these
        are more than the others: class fractions of a few documents are chance.
        """
        task, labeled = self.task, self.task.class_indices >= 0
        enough = np.count_nonzero(self.complete) >= 2 * np.count_nonzero(labeled)
        positions = np.flatnonzero(self.complete if enough else labeled)
        taken: dict[str, Any] = {
            name: each[positions]
            for name in ("class_indices", "drawn", "by_voters", "weights")
            if (each := getattr(task, name)) is not None
        }
        rows = gathered(task.rows, positions, watch, context.engine.space)
        names = task.names._replace(document=lambda place: task.names.document(int(positions[place])))
        return replace(task, rows=rows, names=names, linear=True, **taken), positions

    def _joined(self, found: Training, whole: Training, watch: Watch) -> Training:
        """The training ``whole`` with the one that was ``found`` of all documents, which answers those that lack a
        part.
        """
        total = self._sum_of(found, whole)
        assert isinstance(total.model, LinearModel)
        assert isinstance(found.model, LinearModel)
        required = np.array([[own.start, own.stop] for own in self.lacked.values()], np.int64)
        model = PartedModel.of(total.model, found.model, required)
        scores = scores_in_slices(model, self.task.rows, watch)[found.unlabeled]
        probabilities = model.calibrated_probabilities(scores)
        of_all = found.report or {}
        # warnings of a share of the seconds, or of the documents
        partial = {NO_UNLABELED, *time_warnings(of_all), *fraction_warnings(whole.report or {})}
        partial -= {*fraction_warnings(of_all)}
        return replace(
            total,
            model=model,
            unlabeled=found.unlabeled,
            scores=scores,
            probabilities=probabilities,
            status=Status.worse(found.status, whole.status),
            trace=[*found.trace, *whole.trace],
            passes=found.passes + whole.passes,
            warnings=list(dict.fromkeys(each for each in (*found.warnings, *total.warnings) if each not in partial)),
            report=self._report(total.report or {}, of_all, by_class(probabilities.mean(axis=0), model.classes)),
            range_remedy=whole.range_remedy or found.range_remedy,
            largest=lambda: whole.largest() or found.largest(),
        )

    def _report(self, total: dict[str, Any], of_all: dict[str, Any], fractions: dict[str, float]) -> dict[str, Any]:
        """The report of the sum, with the class fractions of the whole pool and what they rest on; ``fractions`` are
        the mean probabilities.
        """
        report = {name: value for name, value in total.items() if name != "certain_labels"}
        report |= {name: of_all[name] for name in ("class_fractions", "estimate", "fractions") if name in of_all}
        if report.get("estimate"):
            report["class_fractions"] = fractions
        report["incomplete"] = {
            "documents": int(np.count_nonzero(~self.complete)),
            "lack": list(self.lacked),
            "confidence": of_all.get("confidence"),
            "weight": total.get("certain_labels", {}).get("weight", 0.0),
        }
        return report

    def _sum_of(self, found: Training, whole: Training) -> Training:
        """The training ``whole`` with the model that was ``found`` of all documents added.

        Each weighs by the inverse fourth power of its loss on labels left out, as candidates of ``auto`` do. The first
        counts by the share of the unlabeled documents that the second has not learned from.
        """
        assert whole.held_out is not None
        labels = self.task.class_indices[self.task.class_indices >= 0]
        truth = np.searchsorted([self.task.classes.index(label) for label in whole.model.classes], labels)
        known = np.isfinite(whole.held_out).all(axis=1)
        held_out = [each.held_out[known] for each in (whole, found) if each.held_out is not None]
        losses = np.array([1.0 - judge(each, truth[known]).log_likelihood for each in held_out])
        shares = np.array([1.0, 1.0 - len(whole.unlabeled) / len(found.unlabeled)])
        features, merits = np.union1d(whole.model.features, found.model.features), shares / np.square(np.square(losses))
        return opinion_pool(_over(whole, features), _over(found, features), truth, merits / merits.sum())


def _over(training: Training, features: NDArray[np.uint32]) -> Training:
    """The training with its model over more features, which have no weight in it."""
    model = training.model
    assert isinstance(model, LinearModel)
    coefficients = np.zeros((len(features), model.n_columns))
    coefficients[np.searchsorted(features, model.features)] = model.coefficients
    return replace(training, model=replace(model, features=features, coefficients=coefficients))
