"""Clusters of documents, for a first look without labels, and a model that tells the clusters apart."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import gathered
from core.documents.rows import SparseRows
from core.engine.requests import Adjoint, Procedure, Report, Scores, Steps, Yield
from core.errors import InvalidDocuments
from core.models.model import Model
from core.numerics.elementary import Matrix, Vector, standard_normal
from core.numerics.k_means import Places, assign, k_means
from core.numerics.vectors import add_scaled, dot
from core.one_vs_rest import n_problems, own_scores
from core.options.clusters import COORDINATES, ClustersOptions
from core.problem import NO_RESULT, Status
from core.progress import Phase, Span
from core.selection.data import SelectionData, scale_features
from core.selection.naive_bayes_em import SMOOTHING, Moments, NaiveBayesEM
from core.task import Run, Training, TrainingTask, compacted
from core.weak_supervision.derived import Derived

_SAMPLE = 10_000
"""documents among which centres are looked for, at most"""
_ROUNDS = 6
"""rounds of orthogonal iteration: neither the last coordinates nor their last digits matter"""
_STARTING, _MIXING = Span(0.0, 0.4), Span(0.4, 1.0)
_SLICE = 1 << 21
_TERMS, _NAMED, _DOCUMENTS = 10, 3, 5
"""terms and example documents of a cluster in the report, and terms of its name"""
_LEAST = 1e-12


@dataclass(frozen=True)
class Clusters(Derived):
    """Documents whose labels are the numbers of their clusters, the largest first."""

    @classmethod
    def of(cls, task: TrainingTask, run: Run) -> "Clusters":
        """The clusters of the documents of a task, whatever labels they have. Raises Stopped, InvalidOption, and
        InvalidDocuments where all documents are alike.

        A mixture of naive Bayes densities is fitted by expectation maximisation (Nigam et al. 2000). It begins with the
        clusters of k-means in the leading singular vectors of the documents, rows of length 1 (Ng, Jordan & Weiss, On
        spectral clustering, 2001), and each cluster keeps the document that is nearest to its centre. To each cluster
        of bags of terms as many average documents are added as a cluster has: what few documents have in common makes
        no cluster then.
        """
        options = ClustersOptions.parse(task.options)
        options.check(task.rows.n_rows, ())
        run.watch.begin(Phase("clusters"))
        start, nearest = _start(task, options.n_clusters, run)
        order = np.concatenate([nearest, np.setdiff1d(np.arange(task.rows.n_rows), nearest)])
        space, n_clusters = run.context.engine.space, len(nearest)
        documents = compacted(task, order, run)
        rows, bags = documents.rows, documents.terms is not None
        places = np.arange(n_clusters)
        data = SelectionData.of(rows, places, range(n_clusters), task.seed, run.watch, space=space, bags=bags)
        begun = (start[order[n_clusters:]] == places[:, None]).astype(np.float64)
        moments = Moments(data, run.watch, SMOOTHING if data.dense else rows.n_rows / n_clusters)
        mixture = NaiveBayesEM(data, moments, 0, 1.0, begun)
        with run.scheduler(data.scaled.rows) as scheduler:
            scheduler.run({Phase(): mixture.steps}, _MIXING)
        found = np.empty_like(mixture.responsibilities)
        found[:, order] = mixture.responsibilities
        found = found[np.argsort(-found.sum(axis=1), kind="stable")]
        run.watch()
        learned = replace(
            task,
            class_indices=found.argmax(axis=0),
            classes=list(range(n_clusters)),
            algorithm="svm",
            options={"probabilities": True},
            weighs_terms=True,
            weights=np.maximum(_LEAST, (n_clusters * found.max(axis=0) - 1) / (n_clusters - 1)),
            start=None,
            drawn=None,
            label_sets=None,
            votes=None,
        )
        fewer = f"the documents are too much alike for {options.n_clusters} clusters: there are {n_clusters}"
        return cls(learned, np.zeros(rows.n_rows, bool), {}, [fewer] if n_clusters < options.n_clusters else [])

    def answered(self, trained: Training) -> Training:
        """See Derived: the report says what the clusters are; no label was left out, since none was given."""
        if trained.status is Status.CANCELLED:
            return trained
        places = trained.model.labels_of(trained.scores, trained.probabilities)
        described = sorted(
            _described(self.task, trained.model, places, own_scores(trained.scores, places)),
            key=lambda each: -each["size"],
        )
        n_found = np.count_nonzero([each["size"] for each in described])
        about = f"{n_found} clusters, the largest: {'; '.join(each['name'] for each in described[:_NAMED])}"
        empty = f"of {len(described)} clusters only {n_found} have a document in the end: ask for {n_found} or fewer"
        return replace(
            trained,
            held_out=None,
            confidence=None,
            warnings=[*self.warnings, *([empty] if n_found < len(described) else [])],
            report={name: value for name, value in (trained.report or {}).items() if name != "confidence"}
            | {"summary": [about], "clusters": described},
        )


def _start(task: TrainingTask, n_clusters: int, run: Run) -> tuple[Places, Places]:
    """The cluster of each document by k-means, and the document nearest to the centre of each, shapes (n_rows,) and
    (n_clusters,); raises Stopped, and InvalidDocuments where all documents are alike.
    """
    rows = compacted(task, np.arange(task.rows.n_rows), run).rows
    rows = scale_features(rows, run.watch, run.context.engine.space).rows
    drawn = np.random.default_rng(task.seed).permutation(rows.n_rows)[:_SAMPLE]
    sample = gathered(rows, np.sort(drawn), run.watch)
    leading = _Leading(sample, task.seed)
    halves = _STARTING.equal(2)
    with run.scheduler(sample) as scheduler:
        scheduler.run({Phase(): leading.steps}, halves[0])
    projection = _Projection(rows, leading.directions)
    with run.scheduler(rows) as scheduler:
        scheduler.run({Phase(): projection.steps}, halves[1])
    points = projection.points
    centres = k_means(points[np.sort(drawn)], n_clusters, task.seed, run.watch)
    places = np.zeros(len(points), np.int64)
    assign(points, centres, places)
    present, places = np.unique(places, return_inverse=True)
    if len(present) < 2:
        raise InvalidDocuments("the documents are all alike, so there is but one cluster: add other documents")
    by_distance = np.argsort(((points - centres[present[places]]) ** 2).sum(axis=1), kind="stable")
    _, first = np.unique(places[by_distance], return_index=True)
    return places, by_distance[first]


class _Leading:
    """The directions in which rows differ most from 0: their leading right singular vectors, by orthogonal iteration
    over products with the rows (Golub & Van Loan, Matrix computations, 2013, 7.3.2)."""

    def __init__(self, rows: SparseRows, seed: int) -> None:
        count = min(COORDINATES, rows.n_rows, rows.n_features)
        drawn = standard_normal(np.random.default_rng(seed), count * rows.n_rows)
        self._images: Matrix = drawn.reshape(count, rows.n_rows)
        self.directions: Matrix = np.zeros((count, rows.n_features + 1))
        """shape (n_directions, n_features + 1), of length 1; the last column is the bias, 0"""

    def steps(self) -> Steps:
        """Rounds of products with the transposed rows and with the rows."""
        nothing = np.zeros(self._images.shape[1])
        for number in range(_ROUNDS):
            self.directions[:] = 0.0
            for image, direction in zip(self._images, self.directions, strict=True):
                yield Adjoint(image, direction)
                direction[-1] = 0.0
            yield from _orthonormalise(self.directions)
            for image, direction in zip(self._images, self.directions, strict=True):
                yield Scores(direction, nothing, image)
            yield Report(Phase("clusters"), number, 0.0, 0.0, (number + 1) / _ROUNDS)
        return NO_RESULT


class _Projection:
    """The coordinates of rows in some directions."""

    def __init__(self, rows: SparseRows, directions: Matrix) -> None:
        self._directions, self._found = directions, np.zeros((len(directions), rows.n_rows))

    def steps(self) -> Steps:
        """A product with the rows for each direction."""
        nothing, count = np.zeros(self._found.shape[1]), len(self._found)
        for number, (direction, column) in enumerate(zip(self._directions, self._found, strict=True)):
            yield Scores(direction, nothing, column)
            yield Report(Phase("clusters"), number, 0.0, 0.0, (number + 1) / count)
        return NO_RESULT

    @property
    def points(self) -> Matrix:
        """shape (n_rows, n_directions): the coordinates of each row, scaled to length 1 if it has any."""
        lengths = np.sqrt(sum((column * column for column in self._found), np.zeros(self._found.shape[1])))
        return np.ascontiguousarray((self._found / np.maximum(lengths, _LEAST)).T)


def _orthonormalise(vectors: Matrix) -> Procedure[None]:
    """Make the vectors of length 1 and orthogonal to those before, in place; those that are none without the others
    become 0 (modified Gram-Schmidt).
    """
    for number, vector in enumerate(vectors):
        length = np.sqrt(dot(vector, vector))
        for before in vectors[:number]:
            add_scaled(vector, -dot(before, vector), before)
            yield Yield()
        left = np.sqrt(dot(vector, vector))
        vector *= 1.0 / left if left > 1e-9 * length else 0.0


def _described(task: TrainingTask, model: Model, places: NDArray[np.intp], fit: Vector) -> Iterator[dict[str, Any]]:
    """For each cluster its label, name, size, the terms that tell most of its documents apart, and those that fit it
    best.
    """
    sums = _sums(task.rows, places, len(model.classes))
    for cluster, label in enumerate(model.classes):
        own = np.flatnonzero(places == cluster)
        weights = model.weights_of(cluster if n_problems(len(model.classes)) > 1 else 0)
        told = weights.weights * sums[cluster, weights.items]
        if n_problems(len(model.classes)) == 1 and cluster == 0:
            told = -told
        best = np.argsort(-told, kind="stable")[:_TERMS]
        terms = [str(task.names.feature(int(weights.items[each]))) for each in best if told[each] > 0]
        fitting = own[np.argsort(-fit[own], kind="stable")[:_DOCUMENTS]]
        yield {
            "label": label,
            "name": ", ".join(_apart(terms)) or str(label),
            "size": len(own),
            "terms": terms,
            "documents": [task.names.document(int(position)) for position in fitting],
        }


def _apart(terms: list[str]) -> list[str]:
    """The first few terms that share no word with one before."""
    chosen = list[str]()
    for term in terms:
        if len(chosen) < _NAMED and not any({*term.split()} & {*other.split()} for other in chosen):
            chosen.append(term)
    return chosen


def _sums(rows: SparseRows, places: NDArray[np.intp], n_clusters: int) -> Matrix:
    """The sums of the rows of each cluster, shape (n_clusters, n_features)."""
    sums = np.zeros(n_clusters * rows.n_features)
    for start, stop in rows.slices(_SLICE):
        part = rows.between(start, stop).trimmed
        cells = places[start:stop][part.owners] * rows.n_features + part.columns(0, part.n_nonzeros)
        sums += np.bincount(cells, part.values, len(sums))
    return sums.reshape(n_clusters, rows.n_features)
