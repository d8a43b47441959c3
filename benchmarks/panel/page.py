"""The panel as a page with its figure, mean errors by draw, and its means by set and draw as a file of data."""

import csv
from collections import Counter
from pathlib import Path

from benchmarks.base import machine, table
from benchmarks.panel.analysis import Runs, draws_of, error, mean, names_of, of, over_sets, peers_of
from benchmarks.panel.bounds import PLAIN, bounds
from benchmarks.panel.runs import AS_MANY, AUTO, SURPLUS, SVM, TSVM
from benchmarks.panel.sets import LABELS
from benchmarks.panel.tasks import DRAWS

FIGURE = "few-labels.png"
MEANS = "data/few-labels.csv"
_NOTES = Path(__file__).with_name("notes.md")
_HEADS = ("auto", "SVM", "TSVM")
_METHODS = {"auto": AUTO, "svm": SVM, "tsvm": TSVM, "surplus_away": SURPLUS, "as_many_even": AS_MANY}
_COLUMNS = ("draw", "set", *_METHODS, "fractions_total_variation", "calibration_error", "chosen", "rounds")


def page(runs: Runs, planned: int, seeds: int, told: str = "") -> str:
    """All of ``docs/few-labels.md``; ``planned`` runs were to be made. ``told`` is the section of runs that are told
    the fractions.
    """
    made = (
        f"{len(runs)} runs"
        if len(runs) == planned
        else f"{len(runs)} of {planned} runs, in an order that covers sets and draws evenly"
    )
    head = (
        "# Few labels in the wild\n\n"
        f"`auto` without any option, on {len(names_of(runs))} sets with 20 to 100 labels, obtained in "
        f"{len(draws_of(runs))} ways.\n"
        f"Made by `python -m benchmarks.panel` on:\n{machine()}.\n"
        f"{made}; {seeds} {'seed' if seeds == 1 else 'seeds'}.\n"
        "All errors are on the documents without a label. Every set counts the same in a mean.\n"
        f"[{MEANS}]({MEANS}) has the means of each set and draw; [below](#columns-of-the-data) are its columns.\n\n"
        f"![Mean error by the way in which labels were obtained]({FIGURE})\n"
    )
    return "\n".join([head, _draws(runs), _sets(runs), _bounds(runs), told, _NOTES.read_text()])


def write_means(runs: Runs, file: Path) -> None:
    """Write the means over the runs of each set and draw as CSV."""
    file.parent.mkdir(exist_ok=True)
    with file.open("w", newline="") as opened:
        lines = csv.writer(opened, lineterminator="\n")
        lines.writerow(_COLUMNS)
        for draw in draws_of(runs):
            own = of(runs, draws=[draw])
            lines.writerows([draw, name, *_means(of(own, name))] for name in names_of(own))


def _draws(runs: Runs) -> str:
    rows = []
    for draw in draws_of(runs):
        own = of(runs, draws=[draw])
        errors = [_short(over_sets(own, error(method))) for method in (AUTO, SVM, TSVM)]
        rows.append([f"`{draw}`", DRAWS[draw], len(own), *errors])
    note = (
        "SVM and TSVM: the supervised one, tuned by cross-validation of the same labels, and the transductive one told "
        "the true fractions. Some draws do not suit all sets, so compare within a line.\n\n"
    )
    return f"## By the way labels were obtained\n\n{note}{table(['draw', 'labels', 'runs', *_HEADS], rows)}"


def _bounds(runs: Runs) -> str:
    note = (
        "The better of two is the supervised SVM, tuned by cross-validation of the same labels, or `auto` "
        "itself on labels made even by throwing "
        "surplus away.\n\n"
    )
    heads = ["over the panel, `auto`, no option given", "", "to reach", ""]
    return f"## Bounds\n\n{note}{table(heads, [figure.row()[:4] for figure in bounds(runs)])}"


def _sets(runs: Runs) -> str:
    note = (
        "Means over all draws. Peer: the best of self-training, label spreading and logistic regression, each tuned, "
        "on even and random labels alone, beside `auto` on the same.\n"
    )
    heads = ["set (even labels a class)", *_HEADS, "auto / best peer"]
    return f"## By set\n\n{note}\n{table(heads, [_set_row(of(runs, name), name) for name in names_of(runs)])}"


def _set_row(runs: Runs, name: str) -> list[str]:
    errors = [_short(mean(map(error(method), runs))) for method in (AUTO, SVM, TSVM)]
    plain = [run for run in of(runs, draws=PLAIN) if peers_of(run)]
    peer = "–"
    if plain:
        best = min(peers_of(plain[0]), key=lambda each: mean(map(error(each), plain)))
        peer = f"{_short(mean(map(error(AUTO), plain)))} / {_short(mean(map(error(best), plain)))} {best}"
    return [f"{name} ({LABELS[name]})", *errors, peer]


def _means(runs: Runs) -> list[str]:
    """The line of a set and draw, from the errors on."""
    autos = [run.scores[AUTO] for run in runs]
    rounds = [_short(mean(errors)) for errors in zip(*(run.rounds for run in runs), strict=True)]
    return [
        *(_short(mean(map(error(method), runs))) for method in _METHODS.values()),
        _short(mean(each.variation for each in autos)),
        _short(mean(each.calibration for each in autos)),
        _chosen(runs),
        " ".join(rounds),
    ]


def _chosen(runs: Runs) -> str:
    """Methods with how often each was chosen, then how often the model said that it knows nothing."""
    autos = [run.scores[AUTO] for run in runs]
    chosen = Counter(each.chosen for each in autos)
    ignorant = sum(each.confidence == "none" for each in autos)
    return " ".join(
        [f"{name}:{count}" for name, count in chosen.most_common()] + ([f"?:{ignorant}"] if ignorant else [])
    )


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


_SERIES = {
    SVM: ("supervised SVM, tuned", "o", "#b0b0b0"),
    TSVM: ("TSVM told the true fractions", "D", "#4c72b0"),
    AS_MANY: ("auto on as many even labels", "|", "#dd8452"),
    AUTO: ("auto", "o", "#c44e52"),
}
"""label, marker and colour of each method"""


def draw_figure(runs: Runs, file: Path) -> None:
    """A line a draw, from the first at the top; every set counts the same."""
    from matplotlib.figure import Figure

    names = draws_of(runs)
    page = Figure(figsize=(7, 0.9 + 0.27 * len(names)), layout="constrained")
    axes = page.subplots()
    for method, (label, marker, colour) in _SERIES.items():
        means = [over_sets(of(runs, draws=[name]), error(method)) for name in names]
        size = 12 if marker == "|" else 6
        axes.plot(
            means,
            range(len(names)),
            marker,
            color=colour,
            label=label,
            markersize=size,
            markeredgewidth=2 if marker == "|" else 1,
        )
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("mean error on the unlabeled documents")
    axes.grid(True, alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    page.legend(loc="outside upper center", ncols=2, frameon=False, fontsize="small")
    page.savefig(file, dpi=110)
