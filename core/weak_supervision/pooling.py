"""Labels by votes: a model of how right each voter is, fitted with a classifier as one more voter.

The classifier says what it has learned from votes on other documents. Certain labels weigh the voters, and decide
whether votes help at all.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw, checked_drawn
from core.documents.votes import Votes, checked_weights
from core.errors import refused
from core.evaluation.training_warnings import one_class_warnings
from core.models.model import LinearModel
from core.numerics.elementary import Matrix, Vector, log, softmax
from core.options.auto import AutoOptions
from core.problem import Status
from core.progress import WHOLE, Phase, Span, Watch
from core.registry import AUTO
from core.selection.candidates import grid_search
from core.selection.class_fractions import LAMBDA, by_class, fraction_warnings
from core.selection.data import SelectionData
from core.task import Run, SingleTask, Training, TrainingContext, TrainingTask, compacted
from core.validation.calibration import Calibration, calibration_at, fit_calibration
from core.weak_supervision.derived import Derived, Train
from core.weak_supervision.opinion_pool import FEWEST, LEAST_PROBABILITY, opinion_pool
from core.weak_supervision.voters import Ballots, VoterModel

_ROUNDS, _STEPS = 3, 5
"""classifiers that are fitted, and steps of the voters' model after each"""
_LEAST_CONFIDENCE = 0.05
"""confidence below which a document gets no label"""
_SHARES = (1.0, 0.1, 0.0)
"""weights of labels by votes, beside certain ones, that are compared by certain labels left out"""
_LEAST_GAIN = 1.0
"""log-likelihood by which certain labels left out must be likelier for votes to weigh less"""
_ALONE, _VOTED = Span(0.0, 0.6), Span(0.6, 1.0)
"""spans of the training on the certain labels alone, and of the one on all labels"""
_ESTIMATED = ("class_fractions", "estimate", "fractions")
"""fields of the report that are of the model of certain labels alone, since labels by votes are no random sample"""
_LEAST = 1e-12


@dataclass(frozen=True)
class Pooled(Derived):
    """Labels of documents by their votes and certain labels."""

    posteriors: Matrix
    """shape (n_rows, n_classes): classes of documents by votes, certain labels and the classifier, of those that labels
    have"""
    voted: NDArray[np.bool_]
    """shape (n_rows,): documents that are given a class by their votes"""
    held: NDArray[np.bool_]
    """shape (n_rows,): documents that have a label, of whatever weight"""
    alone: TrainingTask | None
    """the task with the certain labels alone, and of classes that have none those by votes, whose model is added; None
    where certain ones are too few"""

    @classmethod
    def of(cls, task: TrainingTask, votes: Votes, run: Run) -> "Pooled":
        """The labels of a task that has votes; raises Stopped, and InvalidDocuments where votes and labels name one
        class alone.
        """
        first = fit = _Fit.of(task, votes)
        run.watch.begin(Phase("votes"))
        rounds = WHOLE.equal(_ROUNDS + 1)
        for span in rounds[:-1]:
            fit = fit.with_classifier(run, span)
        # of voters who err more often than a rare class occurs, the fit may believe none: then most votes decide
        fit = fit if len(fit.named) > 1 else first
        if len(fit.named) < 2:
            raise refused(
                "by their votes all documents are of one class: label some documents of another by hand", "votes"
            )
        return fit.pooled(run, rounds[-1])

    def trained(self, train: Train, context: TrainingContext) -> Training:
        """See Derived: on all labels, with the model of the certain ones alone beside it.

        Who voted chose the documents. Others may be of another kind, so that only certain labels say of them what is
        learned from documents without a label, where both models can be added.
        """
        if self.alone is None:
            return self._by_votes(self.completed(train(self.task, context)))
        alone = self.completed(train(self.alone, replace(context, span=context.span.between(*_ALONE))))
        if alone.status is Status.CANCELLED:
            return alone
        task, span = replace(self.task, supervised=isinstance(alone.model, LinearModel)), context.span.between(*_VOTED)
        voted = train(task, replace(context, span=span))
        if voted.status is Status.CANCELLED:
            return self.completed(voted)
        told = SingleTask.of(self.alone).known_fractions()
        if task.supervised:
            voted = self._at_fractions(
                voted, alone, told, Run.of(replace(context, span=Span(span.stop, span.stop))).watch
            )
        pooled = self._by_votes(
            opinion_pool(self.completed(voted), alone, task.class_indices[self.held].astype(np.intp)), alone
        )
        labels, known = pooled.model.labels_of(pooled.scores, pooled.probabilities), task.class_indices[self.certain]
        lost = one_class_warnings(labels, known, task.classes, told, AutoOptions.one_class_remedy)
        return replace(pooled, warnings=list(dict.fromkeys([*pooled.warnings, *lost])))

    def completed(self, trained: Training) -> Training:
        """See Derived; of all labels that were given, those that are certain are held out."""
        held_out = np.full((np.count_nonzero(self.held), trained.model.n_columns), np.nan)
        if trained.held_out is not None:
            held_out[self.certain[self.held]] = trained.held_out[np.delete(self.certain, trained.unlabeled)]
        return replace(super().completed(trained), held_out=None if trained.held_out is None else held_out)

    def _at_fractions(self, voted: Training, alone: Training, told: Vector | None, watch: Watch) -> Training:
        """The training ``voted`` at the class fractions of all documents without a certain label: those that are
        ``told``, or else of documents with votes what these say, and of the others what ``alone`` does. Raises Stopped.
        """
        estimated = {name: value for name, value in (alone.report or {}).items() if name in _ESTIMATED}
        model, known = voted.model, voted.model.calibration
        if isinstance(known, Calibration) and voted.held_out is not None and alone.probabilities is not None:
            own = np.where(self.voted[alone.unlabeled, None], self.posteriors[alone.unlabeled], alone.probabilities)
            scores = np.concatenate([voted.held_out[~np.delete(self.certain, voted.unlabeled)], voted.scores])
            fractions = own.mean(axis=0) if told is None else told
            model = replace(model, calibration=calibration_at(known.slopes, known.offsets, scores, fractions, watch))
        return replace(
            voted,
            model=model,
            report=(voted.report or {}) | estimated,
            warnings=[*voted.warnings, *fraction_warnings(estimated)],
        )

    def _by_votes(self, trained: Training, alone: Training | None = None) -> Training:
        """The training with documents that were voted on answered by their votes; where a model of certain labels alone
        was added, by the geometric mean of these and of what it says, with the weights of both models. Class fractions
        count them, too, where the training estimated those of the others.
        """
        if trained.probabilities is None:
            return trained
        own, report = self.posteriors[trained.unlabeled], trained.report or {}
        if "certain_labels" in report and alone is not None and alone.probabilities is not None:
            weight = report["certain_labels"]["weight"]
            own = softmax((1.0 - weight) * log(own) + weight * log(np.maximum(alone.probabilities, _LEAST)))
        confidence = trained.confidence
        if confidence is not None and confidence.total > np.count_nonzero(self.certain):
            confidence = confidence._replace(by_votes=True)
            report = {**report, **confidence.report()}
        answers = np.where(self.voted[trained.unlabeled, None], own, trained.probabilities)
        if report.get("estimate"):
            report = {**report, "class_fractions": by_class(answers.mean(axis=0), trained.model.classes)}
        return replace(trained, probabilities=answers, report=report, confidence=confidence)


class _Fit(NamedTuple):
    """The state of a fit."""

    task: TrainingTask
    votes: Votes
    ballots: Ballots
    certain: NDArray[np.bool_]
    """shape (n_rows,)"""
    testifies: NDArray[np.bool_]
    """shape (n_rows,): certain labels that say how right voters are: those that voters did not give themselves"""
    classes: Matrix
    """shape (n_rows, n_classes): certain labels as probabilities of 0 and 1, and zeros elsewhere"""
    weights: Vector
    """shape (n_rows,): weights of certain labels"""
    beliefs: Matrix
    """shape (n_rows, n_classes): classes of documents by votes, labels that testify and the classifier"""
    model: VoterModel

    @classmethod
    def of(cls, task: TrainingTask, votes: Votes) -> "_Fit":
        """The fit before there is a classifier: by the majority of the votes."""
        ballots, n_classes = Ballots.of(votes), len(votes.classes)
        weights = checked_weights(task.weights, task.rows.n_rows)
        certain = (task.class_indices >= 0) & (weights > 0)
        place = {label: number for number, label in enumerate(votes.classes)}
        own = np.array([place[label] for label in task.classes], np.int64)
        classes = np.zeros((task.rows.n_rows, n_classes))
        classes[certain, own[task.class_indices[certain]]] = 1.0
        testifies = certain if task.by_voters is None else certain & ~task.by_voters
        beliefs = ballots.counted() + 1e-9
        beliefs /= beliefs.sum(axis=1, keepdims=True)
        beliefs[testifies] = classes[testifies]
        model = VoterModel.of(ballots, beliefs, testifies, _fractions(beliefs[ballots.voted | certain]))
        return cls(task, votes, ballots, certain, testifies, classes, weights, beliefs, model)

    @property
    def posteriors(self) -> Matrix:
        """shape (n_rows, n_classes): the same by all certain labels."""
        return np.where(self.certain[:, None], self.classes, self.beliefs)

    @property
    def named(self) -> NDArray[np.intp]:
        """The classes of documents whose labels weigh anything, ascending."""
        return np.unique(self.posteriors[self._weights(1.0) > 0].argmax(axis=1))

    def with_classifier(self, run: Run, span: Span) -> "_Fit":
        """The fit by a classifier that knows the present labels of other documents; raises Stopped."""
        log_priors = np.tile(log(self.model.priors), (len(self.beliefs), 1))
        heard, weights = self.ballots.voted | self.certain, self._weights(1.0)
        found = self._classified(run, weights, span)
        if found is not None:
            likely = np.maximum(found, LEAST_PROBABILITY)
            log_priors[weights > 0] = log(likely / likely.sum(axis=1, keepdims=True))
        beliefs, model = self.beliefs, self.model
        for _ in range(_STEPS):
            model = VoterModel.of(self.ballots, beliefs, self.testifies, _fractions(beliefs[heard]))
            beliefs = model.posteriors(log_priors)
            beliefs[self.testifies] = self.classes[self.testifies]
            run.watch()
        return self._replace(beliefs=beliefs, model=model)

    def pooled(self, run: Run, span: Span) -> Pooled:
        """The labels, with the weight that certain labels give to those by votes; raises Stopped."""
        alone = self._alone()
        share = self._share(run, span) if alone is None else _SHARES[0]
        warnings = [
            f"by all votes together no document is of class {self.votes.classes[each]!r}: label some of its documents "
            "by hand"
            for each in np.setdiff1d(self.votes.class_index, self.named)
        ]
        guesses = (
            "no label is certain: nothing but votes says how right the voters are, and what is said of labels left out "
            "is said of labels by votes; label some random documents by hand"
        )
        return Pooled(
            task=self.labeled(share),
            certain=self.certain,
            report={
                "voters": self.model.report(self.votes, self.posteriors),
                "votes": {
                    "documents": int(np.count_nonzero(self.ballots.voted & ~self.certain)),
                    "certain": int(np.count_nonzero(self.certain)),
                    "weight": share,
                },
            },
            warnings=warnings if self.certain.any() else [*warnings, guesses],
            posteriors=softmax(log(self.posteriors[:, self.named] + _LEAST)),
            voted=self.ballots.voted & ~self.certain & (share > 0),
            held=self.task.class_indices >= 0,
            alone=alone,
        )

    def _alone(self) -> TrainingTask | None:
        """The task with the certain labels alone, of which there must be FEWEST, and of two classes, and with those by
        votes of classes that have none. A training that is to end in time has no such task.
        """
        alone, counts = self.labeled(0.0), self.classes.sum(axis=0)
        enough = counts.sum() >= FEWEST and np.count_nonzero(counts) > 1
        asked = alone.algorithm == AUTO.name and alone.options.get("seconds") is None
        return alone if enough and asked else None

    def labeled(self, share: float) -> TrainingTask:
        """The task with these labels, of which those by votes weigh a share of their confidence."""
        task, weights, named = self.task, self._weights(share), self.named
        labels = np.where(weights > 0, np.searchsorted(named, self.posteriors.argmax(axis=1)), -1)
        classes = [self.votes.classes[each] for each in named]
        drawn = np.where(self.certain, checked_drawn(task.drawn, task.rows.n_rows), Draw.FOUND)
        return replace(task, class_indices=labels, classes=classes, weights=weights, drawn=drawn, votes=None)

    def _weights(self, share: float) -> Vector:
        """The weight of each label, shape (n_rows,): of one by votes its confidence, times a share; of a class without
        a certain label all of it, as nothing else says what this class is.
        """
        labels, n_classes = self.posteriors.argmax(axis=1), self.ballots.n_classes
        # 1 of certain ones, 0 where all classes are as likely
        confidence = (n_classes * self.posteriors.max(axis=1) - 1) / max(1, n_classes - 1)
        shares = np.where(self.classes.any(axis=0), share, 1.0)[labels]
        by_votes = np.where(self.ballots.voted & (confidence > _LEAST_CONFIDENCE), shares * confidence, 0.0)
        return np.where(self.certain, self.weights, by_votes)

    def _share(self, run: Run, span: Span) -> float:
        """The share by which certain labels left out are likeliest; the largest, unless another is clearly better.
        Raises Stopped.
        """
        if not self.certain.any():
            return _SHARES[0]
        labels, merits = self.classes[self.certain].argmax(axis=1), list[float]()
        for share, own in zip(_SHARES, span.equal(len(_SHARES)), strict=True):
            weights = self._weights(share)
            found = self._classified(run, weights, own)
            merit = -np.inf
            if found is not None:
                likely = found[self.certain[weights > 0]][np.arange(len(labels)), labels]
                merit = float(log(np.maximum(likely, LEAST_PROBABILITY)).sum()) - _LEAST_GAIN * bool(merits)
            merits.append(merit)
        return _SHARES[int(np.argmax(merits))]

    def _classified(self, run: Run, weights: Vector, span: Span) -> Matrix | None:
        """The probabilities of the documents whose labels weigh anything, shape (n, n_classes), each by a classifier
        that does not know its label; None where all labels are of one class. Raises Stopped.
        """
        rows, space = np.flatnonzero(weights > 0), run.context.engine.space
        present, class_indices = np.unique(self.posteriors[rows].argmax(axis=1), return_inverse=True)
        if len(present) < 2:
            return None
        documents = compacted(self.task, rows, run)
        names, own = [self.votes.classes[each] for each in present], weights[rows] / weights[rows].mean()
        data = SelectionData.of(
            documents.rows,
            class_indices,
            names,
            self.task.seed,
            run.watch,
            space=space,
            bags=documents.terms is not None,
            weights=own,
        )
        with run.scheduler(data.scaled.rows) as scheduler:
            held_out = grid_search(scheduler, data, span, [LAMBDA]).held_out
        known, found = data.left_out, np.zeros((len(rows), self.ballots.n_classes))
        calibration = fit_calibration(held_out, class_indices, held_out[known], None, run.watch)
        found[:, present] = np.bincount(class_indices, own, len(present)) / len(rows)
        found[np.ix_(known, present)] = calibration.probabilities(held_out[known])
        return found


def _fractions(posteriors: Matrix) -> Vector:
    """Class fractions by posteriors, shape (n_classes,), none of which is 0."""
    return np.asarray((posteriors.sum(axis=0) + 1.0) / (posteriors.shape[0] + posteriors.shape[1]))
