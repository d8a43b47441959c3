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
from core.models.model import LinearModel
from core.numerics.elementary import Matrix, Vector, exp, log
from core.problem import Status
from core.progress import WHOLE, Phase, Span
from core.registry import AUTO
from core.selection.candidates import grid_search
from core.selection.class_fractions import LAMBDA, by_class, fraction_warnings
from core.selection.data import SelectionData
from core.training import Run, Training, TrainingContext, TrainingTask, compacted
from core.validation.calibration import fit_calibration
from core.weak_supervision.derived import Derived, Train
from core.weak_supervision.opinion_pool import FEWEST, opinion_pool
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
_LEAST_PROBABILITY = 0.01
"""least probability that the classifier gives a class"""


_GUESSES = (
    "no label is certain: nothing but votes says how right the voters are, and what is said of labels left out is said "
    "of labels by votes; label some random documents by hand"
)


@dataclass(frozen=True)
class Pooled(Derived):
    """Labels of documents by their votes and certain labels."""

    posteriors: Matrix
    """shape (n_rows, n_classes): classes of documents by votes, certain labels and the classifier"""
    voted: NDArray[np.bool_]
    """shape (n_rows,): documents that are given a class by their votes"""
    held: NDArray[np.bool_]
    """shape (n_rows,): documents that have a label, of whatever weight"""
    alone: TrainingTask | None
    """the task with the certain labels alone, whose model is added; None where these are too few"""

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
            return super().trained(train, context)
        alone = train(self.alone, replace(context, span=context.span.between(*_ALONE)))
        if alone.status is Status.CANCELLED:
            return replace(alone, held_out=None)  # of certain labels, which are not all
        task = replace(self.task, supervised=isinstance(alone.model, LinearModel))
        voted = train(task, replace(context, span=context.span.between(*_VOTED)))
        if voted.status is Status.CANCELLED:
            return voted
        if task.supervised:
            estimated = {name: value for name, value in (alone.report or {}).items() if name in _ESTIMATED}
            voted = replace(
                voted,
                report=(voted.report or {}) | estimated,
                warnings=[*voted.warnings, *fraction_warnings(estimated)],
            )
        places = np.array([self.task.classes.index(label) for label in voted.model.classes])
        truth = np.searchsorted(places, self.task.class_indices[self.certain])
        return opinion_pool(voted, alone, self.certain[self.task.class_indices >= 0], truth)

    def probabilities(self, trained: Training, scores: Matrix, positions: NDArray[np.int64]) -> Matrix | None:
        """See Derived: documents that were voted on have their posteriors; where a model of certain labels alone was
        added, the geometric mean of these and of what the model says, in which votes weigh half of what their model
        weighs in the sum.
        """
        found = super().probabilities(trained, scores, positions)
        if found is None:
            return None
        columns = np.array([self.task.classes.index(label) for label in trained.model.classes])
        own = np.maximum(self.posteriors[np.ix_(positions, columns)], _LEAST)
        added = (trained.report or {}).get("certain_labels")
        if added is not None:
            share = (1.0 - added["weight"]) / 2
            own = exp(share * log(own) + (1.0 - share) * log(np.maximum(found, _LEAST)))
        return np.where(self.voted[positions, None], own / own.sum(axis=1, keepdims=True), found)

    def answered(self, trained: Training) -> Training:
        """See Derived: certain labels alone are held out, and class fractions count documents that were voted on, too,
        where the training estimated those of the others.
        """
        report = trained.report or {}
        if report.get("estimate") and trained.probabilities is not None:
            fractions = by_class(trained.probabilities.mean(axis=0), trained.model.classes)
            trained = replace(trained, report={**report, "class_fractions": fractions})
        if trained.held_out is None:
            return trained
        taken = np.flatnonzero(self.task.class_indices >= 0)
        held_out = np.full((np.count_nonzero(self.held), trained.held_out.shape[1]), np.nan)
        held_out[self.certain[self.held]] = trained.held_out[np.isin(taken, np.flatnonzero(self.certain))]
        return replace(trained, held_out=held_out)


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
            likely = np.maximum(found, _LEAST_PROBABILITY)
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
        report = {
            "voters": self.model.report(self.votes, self.posteriors),
            "votes": {
                "documents": int(np.count_nonzero(self.ballots.voted & ~self.certain)),
                "certain": int(np.count_nonzero(self.certain)),
                "weight": share,
            },
        }
        voted = self.ballots.voted & ~self.certain & (share > 0)
        return Pooled(
            task=self.labeled(share),
            certain=self.certain,
            report=report,
            warnings=[] if self.certain.any() else [_GUESSES],
            posteriors=self.posteriors,
            voted=voted,
            held=self.task.class_indices >= 0,
            alone=alone,
        )

    def _alone(self) -> TrainingTask | None:
        """The task with the certain labels alone, of which there must be one of every class that all labels have, and
        FEWEST in all. A training that is to end in time has none.
        """
        alone = self.labeled(0.0)
        counts = np.bincount(alone.class_indices[self.certain], minlength=len(self.votes.classes))
        enough = counts.sum() >= FEWEST and int(counts[self.named].min()) > 0
        asked = alone.algorithm == AUTO.name and alone.options.get("seconds") is None
        return alone if enough and asked else None

    def labeled(self, share: float) -> TrainingTask:
        """The task with these labels, of which those by votes weigh a share of their confidence."""
        task, weights = self.task, self._weights(share)
        labels = np.where(weights > 0, self.posteriors.argmax(axis=1), -1)
        drawn = np.where(self.certain, checked_drawn(task.drawn, task.rows.n_rows), Draw.FOUND)
        return replace(task, class_indices=labels, classes=self.votes.classes, weights=weights, drawn=drawn, votes=None)

    def _weights(self, share: float) -> Vector:
        """The weight of each label, shape (n_rows,): of one by votes its confidence, times a share."""
        confidence = _confidence(self.posteriors)
        by_votes = np.where(self.ballots.voted & (confidence > _LEAST_CONFIDENCE), share * confidence, 0.0)
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
                merit = float(log(np.maximum(likely, _LEAST_PROBABILITY)).sum()) - _LEAST_GAIN * bool(merits)
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


def _confidence(posteriors: Matrix) -> Vector:
    """How sure posteriors are of their likeliest class, shape (n,): 1 of certain ones, 0 where all are as likely."""
    n_classes = posteriors.shape[1]
    if n_classes < 2:
        return np.ones(len(posteriors))
    return np.asarray((n_classes * posteriors.max(axis=1) - 1) / (n_classes - 1))
