"""The tree of labels that have steps, such as ``sport/football``: probabilities add up along it, and an answer goes as
deep as it is sure. Loads with NumPy alone.

A class above others, as ``sport``, is a label that was left short: some kind of sport.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidOption

STEP = "/"
SURE = 0.8
"""least probability of an answer below the first level"""


def check_tree(classes: Sequence[str | int], *, several: bool) -> None:
    """Raise InvalidOption where labels make no tree."""
    if several:
        above = "give each document the labels above its own, too: sport beside sport/football"
        raise InvalidOption("nested", f"is for documents of one label each; leave it out, and {above}")
    empty = next((label for label in classes if "" in str(label).split(STEP)), None)
    if empty is not None:
        raise InvalidOption("nested", f"the label {empty!r} has an empty step; name a step before and after each /")
    if not any(STEP in str(label) for label in classes):
        raise InvalidOption("nested", "no label has steps, as sport/football has; leave it out")


class LabelTree:
    """The nodes above and at the labels of a model, which are its classes."""

    def __init__(self, classes: Sequence[str | int]) -> None:
        paths = [str(label).split(STEP) for label in classes]
        self.nodes = sorted({STEP.join(path[: depth + 1]) for path in paths for depth in range(len(path))})
        """names, each after those above it"""
        places = {node: place for place, node in enumerate(self.nodes)}
        self._paths = [[places[STEP.join(path[: depth + 1])] for depth in range(len(path))] for path in paths]
        self._columns: list[list[int]] = [[] for _ in self.nodes]
        """of each node, the classes at and below it"""
        for column, path in enumerate(self._paths):
            for place in path:
                self._columns[place].append(column)
        self.depths = np.array([node.count(STEP) + 1 for node in self.nodes])
        """shape (n_nodes,), from 1"""
        own = [path[-1] for path in self._paths]
        self._short = {place: column for column, place in enumerate(own) if len(self._columns[place]) > 1}
        """the class at each node that is one and has others below"""
        self._leaves = np.array([place for place in own if place not in self._short])
        self._below = {
            place: [under for under, node in enumerate(self.nodes) if node.startswith(self.nodes[place] + STEP)]
            for place in sorted(self._short, reverse=True)
        }
        """the nodes below each of these, a node after those below it"""

    def path(self, place: int) -> list[int]:
        """Places of the nodes from the first level down to this one."""
        return self._paths[self._columns[place][0]][: int(self.depths[place])]

    def probabilities(self, of_classes: NDArray[np.float64]) -> NDArray[np.float64]:
        """shape (n_rows, n_nodes): sums over the classes at and below each node, by those of classes.

        What a label that was left short has goes to the classes below it, too, in proportion to theirs, as if chance
        had left it short.
        """
        found = np.zeros((len(of_classes), len(self.nodes)))
        for place, columns in enumerate(self._columns):
            found[:, place] = _sum(of_classes, columns)
        for place, nodes in self._below.items():
            below = _sum(of_classes, [column for column in self._columns[place] if column != self._short[place]])
            factors = np.divide(found[:, place], below, out=np.ones(len(below)), where=below > 0)
            for under in nodes:
                found[:, under] = np.minimum(found[:, under] * factors, found[:, place])
        return found

    def answers(self, of_nodes: NDArray[np.float64], sure: float = SURE) -> NDArray[np.intp]:
        """The node that each row is given, shape (n_rows,): the likeliest of the first level, then the likeliest below
        as long as it has at least the probability ``sure``.
        """
        found = np.full(len(of_nodes), -1, np.intp)
        for depth in range(1, int(self.depths.max()) + 1):
            level = np.flatnonzero(self.depths == depth)
            parents = np.array([self.path(place)[-2] if depth > 1 else -1 for place in level.tolist()])
            below = np.where(parents == found[:, None], of_nodes[:, level], -1.0)
            likeliest = below.argmax(axis=1)
            deeper = below[np.arange(len(below)), likeliest] >= (sure if depth > 1 else 0.0)
            found = np.where(deeper, level[likeliest], found)
        return found

    def told(self, of_classes: NDArray[np.float64]) -> list[tuple[str, dict[str, float]]]:
        """The label of each row, and the probabilities along its path."""
        of_nodes = self.probabilities(of_classes)
        return [
            (self.nodes[place], {self.nodes[each]: float(row[each]) for each in self.path(place)})
            for place, row in zip(self.answers(of_nodes).tolist(), of_nodes, strict=True)
        ]

    def report(self, of_classes: NDArray[np.float64], truth: NDArray[np.integer[Any]]) -> dict[str, Any]:
        """Hierarchical precision, recall and F1 of the answers to rows of these classes, the error of the likeliest
        leaves, and by how sure an answer must be: how deep it goes, and how often it is right, as JSON.

        A row's nodes are those of its class and above it. Where its label was left short, answers count down to there,
        since nobody knows more. Source: Kiritchenko et al., Learning and evaluation in the
        presence of class hierarchies, 2006; names and values are those of hiclass.
        """
        of_nodes = self.probabilities(of_classes)
        own = [self._paths[place] for place in truth.tolist()]
        known = np.array([path[-1] not in self._short for path in own], bool)
        likeliest = self._leaves[of_nodes[:, self._leaves].argmax(axis=1)]
        leaf_errors = likeliest[known] != np.array([path[-1] for path in own], np.int64)[known]
        curve = []
        for sure in (0.5, 0.6, 0.7, SURE, 0.9, 0.95, 0.99):
            answers = self.answers(of_nodes, sure).tolist()
            ends = [self._comparable(place, path)[-1] for place, path in zip(answers, own, strict=True)]
            right = [place in path for place, path in zip(ends, own, strict=True)]
            whole = [place == path[-1] for place, path in zip(ends, own, strict=True)]
            depth = float(self.depths[answers].mean()) if answers else 0.0
            n = max(1, len(own))
            curve.append({"sure": sure, "right": sum(right) / n, "depth": depth, "whole": sum(whole) / n})
        answers = self.answers(of_nodes).tolist()
        paths = [self._comparable(place, path) for place, path in zip(answers, own, strict=True)]
        both = sum(len({*given} & {*path}) for given, path in zip(paths, own, strict=True))
        n_given, n_own = sum(map(len, paths)), sum(map(len, own))
        return {
            "precision": both / max(1, n_given),
            "recall": both / max(1, n_own),
            "f1": 2 * both / max(1, n_given + n_own),
            "leaf_error": float(leaf_errors.mean()) if len(leaf_errors) else None,
            "curve": curve,
        }

    def _comparable(self, place: int, own: Sequence[int]) -> list[int]:
        """The path of an answer, as far as the path of a row is known."""
        path = self.path(place)
        return path[: len(own)] if own[-1] in self._short else path


def _sum(of_classes: NDArray[np.float64], columns: Sequence[int]) -> NDArray[np.float64]:
    """The sum of some columns, shape (n_rows,), one by one: the same bits for one row as for many."""
    total = np.zeros(len(of_classes))
    for column in columns:
        total += of_classes[:, column]
    return total
