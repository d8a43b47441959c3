"""Drawings of curves, side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator


class Panel(NamedTuple):
    """Curves by name, each its x and y values."""

    title: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    across: str
    up: str
    logarithmic: bool = False
    names: Sequence[str] = ()
    """what is printed beside the points of the first curve"""


def draw(panels: Sequence[Panel], target: Path) -> None:
    """The panels as one PNG, two beside each other."""
    height = -(-len(panels) // 2)
    figure, axes = plt.subplots(
        height, min(2, len(panels)), figsize=(5.5 * min(2, len(panels)), 4 * height), squeeze=False
    )
    for panel, axis in zip(panels, axes.flat, strict=False):
        _fill(axis, panel)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    figure.tight_layout()
    figure.savefig(target, dpi=110)
    plt.close(figure)


def _fill(axis: Any, panel: Panel) -> None:
    for k, (name, (x, y)) in enumerate(panel.curves.items()):
        axis.plot(x, y, marker="o", markersize=4, label=name)
        for text, at in zip(panel.names if k == 0 else (), zip(x, y, strict=True), strict=False):
            axis.annotate(text, at, fontsize=7, xytext=(3, 3), textcoords="offset points")
    if panel.logarithmic:
        axis.set_xscale("log")
        axis.set_yscale("log")
    else:
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.ticklabel_format(axis="y", useOffset=False)
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(panel.across)
    axis.set_ylabel(panel.up)
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3, which="both")
