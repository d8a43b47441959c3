"""The tasks of the panel: a set, a way to obtain labels, a seed; and the labels of each."""

from collections.abc import Iterator
from typing import NamedTuple

from app.predictions.schemas import Strategy
from benchmarks.panel import draws
from benchmarks.panel.draws import Labels
from benchmarks.panel.sets import LABELS, LARGE, Documents, documents

RATIOS = (2, 3, 5)
ROUNDS, A_ROUND = 3, 20
"""rounds of labels after the even ones, and labels of each"""
STRATEGIES: tuple[Strategy, ...] = ("diverse", "uncertain", "random")
"""strategies of the service by which labels of a round are suggested"""

_MANY = 6
"""classes from which on other numbers of labels are tried"""
_STRIDE = 4
"""draws between those of neighbouring sets, so that these are of different kinds"""
_LARGE_EVERY = 4
_SKEWED = {
    f"{direction}-{ratio}": (place, ratio) for ratio in RATIOS for direction, place in (("largest", 0), ("smallest", 1))
}
_MORE = {f"more-{word}": place for place, word in enumerate(("largest", "smallest", "middle"))}
_TIMES = {f"{draw}-{word}": factor for draw in ("even", "random") for word, factor in (("half", 0.5), ("twice", 2.0))}
_SUGGESTED = {f"suggest-{strategy}": strategy for strategy in STRATEGIES}

DRAWS = {
    "even": "as many labels of every class",
    "random": "as many in all, a random sample with at least one of each class",
    **{
        name: f"as many in all, {ratio} to 1 in favour of the {name.split('-')[0]} class"
        for name, (_, ratio) in _SKEWED.items()
    },
    **{name: f"even, and {draws.MORE} more of the {name.split('-')[1]} class" for name in _MORE},
    **{name: f"as `{name.split('-')[0]}`, {name.split('-')[1]} as many (six classes and more)" for name in _TIMES},
    "found": f"even, but only documents that hold one of {draws.N_WORDS} words of their class (texts)",
    "wrong": f"even, and {100 * draws.WRONG:.0f} % of the labels changed",
    **{
        name: f"even, and after each training {A_ROUND} more that `suggest` asks for, {ROUNDS} times, strategy "
        f"`{strategy}`"
        for name, strategy in _SUGGESTED.items()
    },
}
"""ways to obtain labels, each in words"""


class Task(NamedTuple):
    """A set with some of its labels."""

    name: str
    draw: str
    seed: int

    @property
    def strategy(self) -> str | None:
        """Strategy by which rounds of labels follow; None without rounds."""
        return _SUGGESTED.get(self.draw)


def tasks(names: list[str], chosen: list[str], seeds: int) -> Iterator[Task]:
    """Every set with every draw that applies to it and every seed, in an order with sets and draws as even as can be in
    each beginning.

    A large set, which takes as long as ten others, comes in every fourth pass over the sets; its other draws come when
    the seed is done.
    """
    for seed in range(seeds):
        late = []
        for step in range(len(chosen)):
            for place, name in enumerate(names):
                draw = chosen[(_STRIDE * place + step) % len(chosen)]
                if not applies(draw, documents(name)):
                    continue
                if name in LARGE and step % _LARGE_EVERY:
                    late.append(Task(name, draw, seed))
                else:
                    yield Task(name, draw, seed)
        yield from late


def applies(draw: str, data: Documents) -> bool:
    """Whether there are such labels of a set: words, or a third class to favour."""
    if draw == "found":
        return data.has_words
    if draw in _TIMES:
        return len(data.classes) >= _MANY
    return draw not in _MORE or _MORE[draw] < len(draws.favoured_classes(data.class_indices))


def labels_of(task: Task) -> Labels:
    """The labels of a task; for rounds the labels at the beginning."""
    data, per_class = documents(task.name), round(LABELS[task.name] * _TIMES.get(task.draw, 1))
    truth, favoured = data.class_indices, draws.favoured_classes(data.class_indices)
    if task.draw in _SKEWED:
        place, ratio = _SKEWED[task.draw]
        return draws.skewed(truth, per_class, favoured[place], ratio, task.seed)
    if task.draw in _MORE:
        return draws.more(truth, per_class, favoured[_MORE[task.draw]], task.seed)
    match task.draw.split("-")[0]:
        case "random":
            return draws.random(truth, per_class * len(data.classes), task.seed)
        case "found":
            return draws.found(truth, data.X, per_class, task.seed)
        case "wrong":
            return draws.wrong(truth, per_class, task.seed)
    return draws.even(truth, per_class, task.seed)
