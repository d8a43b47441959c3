"""The plots of an evaluation as self-contained SVG files."""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from starlette.responses import Response

from app.errors import InvalidRequest
from app.evaluation.markup import Markup, element
from app.evaluation.plots import CURVES, Drawing, confusion, curves, reliability
from app.evaluation.schemas import ClassFigures, Evaluation

SVG = "image/svg+xml"
LARGEST_MATRIX = 30
"""Labels up to which the whole confusion matrix is shown."""


def _confusion(evaluation: Evaluation) -> Drawing:
    """Confusion of all labels, or of those with the most documents."""
    frequent = sorted(
        range(len(evaluation.classes)), key=lambda class_index: -evaluation.classes[class_index].documents
    )
    class_indices = sorted(frequent[:LARGEST_MATRIX])
    return confusion(
        [evaluation.classes[class_index] for class_index in class_indices],
        [[evaluation.confusion[has][was] for was in class_indices] for has in class_indices],
    )


def with_curves(evaluation: Evaluation) -> list[ClassFigures]:
    """The classes whose curves are shown, those with the most documents first."""
    return sorted((each for each in evaluation.classes if each.curve), key=lambda each: -each.documents)[:CURVES]


def _curves(evaluation: Evaluation) -> Drawing:
    shown = with_curves(evaluation)
    if not shown:
        raise InvalidRequest("plot", "there is no curve: there are too many scores to rank documents")
    return curves(shown)


def _reliability(evaluation: Evaluation) -> Drawing:
    if evaluation.calibration is None:
        raise InvalidRequest(
            "plot",
            "reliability needs probabilities, and the model is not calibrated (auto calibrates, other algorithms "
            "by the option probabilities)",
        )
    return reliability(evaluation.calibration)


PLOTS: Mapping[str, Callable[[Evaluation], Drawing]] = {
    "confusion": _confusion,
    "precision_recall": _curves,
    "reliability": _reliability,
}
"""Plots by name; each raises InvalidRequest if there is nothing to plot."""


def check_plot(name: str | None) -> None:
    """Raises InvalidRequest if there is no plot of this name."""
    if name not in PLOTS:
        raise InvalidRequest("plot", f"must be one of {', '.join(PLOTS)}")


def plot_of(evaluation: Evaluation, name: str) -> Response:
    """The answer with one plot, with a Content-Security-Policy that loads nothing.

    Raises InvalidRequest if there is nothing to plot.
    """
    digest = b64encode(hashlib.sha256(style().encode()).digest()).decode()
    headers = {
        "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'",
        "Content-Disposition": f'inline; filename="{file_name(evaluation, name)}"',
        "Cache-Control": "no-store",
    }
    return Response(svg_file(PLOTS[name](evaluation)), media_type=SVG, headers=headers)


def save_link(evaluation: Evaluation, name: str, drawing: Drawing) -> Markup:
    """A link that saves a plot of a page; it contains the plot."""
    content = b64encode(svg_file(drawing).encode()).decode()
    return element(
        "a", "save as SVG", class_="save", href=f"data:{SVG};base64,{content}", download=file_name(evaluation, name)
    )


def svg_file(drawing: Drawing) -> str:
    """The drawing as an SVG file, on white."""
    return drawing.svg(element("style", Markup(style())), element("rect", width="100%", height="100%", fill="#fff"))


def file_name(evaluation: Evaluation, name: str) -> str:
    """Name of the file of a plot."""
    return f"{evaluation.model}-{evaluation.version}-{name}.svg"


@cache
def style() -> str:
    """The style of the plots, as CSS."""
    return files("app.evaluation").joinpath("plots.css").read_text(encoding="utf-8")
