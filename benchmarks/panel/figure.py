"""The figure of the panel: mean errors by draw."""

from pathlib import Path

from benchmarks.panel.analysis import Runs, draws_of, error, of, over_sets
from benchmarks.panel.runs import AS_MANY, AUTO, SVM, TSVM

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
