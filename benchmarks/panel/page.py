"""The panel as a page."""

from collections import Counter
from pathlib import Path

from benchmarks.base import machine, table
from benchmarks.panel.analysis import Gap, Runs, draws_of, error, gap, mean, names_of, of, over_sets, peers_of, worst
from benchmarks.panel.bounds import PLAIN, bounds
from benchmarks.panel.runs import AS_MANY, AUTO, SURPLUS, SVM, TSVM
from benchmarks.panel.sets import LABELS
from benchmarks.panel.tasks import DRAWS

FIGURE = "few-labels.png"
_NOTES = Path(__file__).with_name("notes.md")
_WORST = 12
_LETTERS = {"svm": "s", "tsvm": "t", "graph": "g", "mixture": "m", "ridge": "r"}


def page(runs: Runs, planned: int, seeds: int) -> str:
    """All of ``docs/few-labels.md``; ``planned`` runs were to be made."""
    made = f"{len(runs)} runs" if len(runs) == planned else f"{len(runs)} of {planned} runs, in an order that covers sets and draws evenly"
    head = (
        "# Few labels in the wild\n\n"
        f"`auto` without any option, on {len(names_of(runs))} sets with 20 to 100 labels, obtained in {len(draws_of(runs))} ways.\n"
        f"Made by `python -m benchmarks.panel` on:\n{machine()}.\n"
        f"{made}; {seeds} {'seed' if seeds == 1 else 'seeds'}.\n"
        "All errors are on the documents without a label. Every set counts the same in a mean.\n\n"
        f"![Mean error by the way in which labels were obtained]({FIGURE})\n"
    )
    return "\n".join([head, _draws(runs), _bounds(runs), _sets(runs), _worst(runs), _details(runs), _NOTES.read_text()])


def _draws(runs: Runs) -> str:
    rows = [[f"`{draw}`", DRAWS[draw], len(of(runs, draws=[draw]))] for draw in draws_of(runs)]
    note = "Where not all runs were made, the draws have different sets: compare the marks of one line of the figure.\n\n"
    return f"## Ways to obtain labels\n\n{note}{table(['draw', 'labels', 'runs'], rows)}"


def _bounds(runs: Runs) -> str:
    note = (
        "The better of two is the supervised SVM, tuned by cross-validation of the same labels, or `auto` itself on labels made even by throwing "
        "surplus away.\n\n"
    )
    heads = ["over the panel, `auto`, no option given", "", "to reach", ""]
    return f"## What was to be reached\n\n{note}{table(heads, [figure.row()[:4] for figure in bounds(runs)])}"


def _sets(runs: Runs) -> str:
    note = (
        "Means over the runs of a set. SVM and TSVM: the supervised one, tuned, and the transductive one told the true fractions.\n"
        "Worst draw: by how much `auto` errs more than the better of two. Peer: the best of self-training, label spreading and logistic "
        "regression, each tuned; on even and random labels alone, beside `auto` on the same. TV: total variation of the class fractions. "
        "ECE: expected calibration error.\n"
        "Chosen: how often s(vm), t(svm), g(raph: label spreading), r(idge: over a kernel) and m(ixture: naive Bayes).\n"
    )
    heads = ["set (even labels a class)", "auto", "SVM", "TSVM", "worst draw", "auto / best peer", "TV", "ECE", "chosen"]
    return f"## Set by set\n\n{note}\n{table(heads, [_set_row(of(runs, name), name) for name in names_of(runs)])}"


def _set_row(runs: Runs, name: str) -> list[str]:
    errors = [_short(mean(map(error(method), runs))) for method in (AUTO, SVM, TSVM)]
    at = worst(Gap(gap(of(runs, draws=[draw])), draw) for draw in draws_of(runs))
    plain = [run for run in of(runs, draws=PLAIN) if peers_of(run)]
    peer = "–"
    if plain:
        best = min(peers_of(plain[0]), key=lambda each: mean(map(error(each), plain)))
        peer = f"{_short(mean(map(error(AUTO), plain)))} / {_short(mean(map(error(best), plain)))} {best}"
    autos = [run.scores[AUTO] for run in runs]
    measures = [_short(mean(each.variation for each in autos)), _short(mean(each.calibration for each in autos))]
    return [f"{name} ({LABELS[name]})", *errors, f"{at.where} {at.value:+.3f}", peer, *measures, _chosen(runs)]


def _worst(runs: Runs) -> str:
    heads = ["set", "draw", "seed", "labels of each class", "auto", "SVM", "surplus away", "TSVM", "chosen"]
    rows = []
    for run in sorted(runs, key=lambda each: -gap([each]))[:_WORST]:
        errors = [_short(run.scores[method].error) for method in (AUTO, SVM, SURPLUS, TSVM)]
        rows.append([run.task.name, run.task.draw, run.task.seed, " ".join(map(str, run.counts)), *errors, _chosen([run])])
    return f"## Worst runs\n\nBeyond the better of two.\n\n{table(heads, rows)}"


def _details(runs: Runs) -> str:
    note = (
        "Surplus away: `auto` on the labels made even by throwing surplus away. As many even: `auto` on even labels, as many of them. "
        "Chosen: as above; ? says how often the model said that it knows nothing. Rounds: the errors before and after each round.\n"
    )
    parts = []
    for draw in draws_of(runs):
        own = of(runs, draws=[draw])
        rows = [_detail_row(of(own, name), name) for name in names_of(own)]
        heads = ["set", "auto", "SVM", "TSVM", "surplus away", "as many even", "TV", "ECE", "chosen", *(["rounds"] if own[0].rounds else [])]
        everywhere = [_short(over_sets(own, error(method))) for method in (AUTO, SVM, TSVM, SURPLUS, AS_MANY)]
        parts.append(f"### {draw}\n\n{DRAWS[draw].capitalize()}.\n\n" + table(heads, [*rows, ["mean", *everywhere, *[""] * (len(heads) - 6)]]))
    return f"## Draw by draw\n\n{note}\n" + "\n".join(parts)


def _detail_row(runs: Runs, name: str) -> list[str]:
    errors = [_short(mean(map(error(method), runs))) for method in (AUTO, SVM, TSVM, SURPLUS, AS_MANY)]
    autos = [run.scores[AUTO] for run in runs]
    measures = [_short(mean(each.variation for each in autos)), _short(mean(each.calibration for each in autos))]
    rounds = []
    if runs[0].rounds:
        rounds = [" ".join(_short(mean(run.rounds[place] for run in runs)) for place in range(len(runs[0].rounds)))]
    return [name, *errors, *measures, _chosen(runs), *rounds]


def _chosen(runs: Runs) -> str:
    """Methods by their letters with how often each was chosen, then how often the model said that it knows nothing."""
    autos = [run.scores[AUTO] for run in runs]
    letters = Counter(_LETTERS[each.chosen] for each in autos)
    ignorant = sum(each.confidence == "none" for each in autos)
    return " ".join([f"{letter}{count}" for letter, count in letters.most_common()] + ([f"?{ignorant}"] if ignorant else []))


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
