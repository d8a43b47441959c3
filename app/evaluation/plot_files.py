"""Each plot of an evaluation on its own, as a file that needs nothing else."""

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
_LARGEST_MATRIX = 30


def _confusion(evaluation: Evaluation) -> Drawing:
    """Of all labels, or of those with the most documents."""
    frequent = sorted(range(len(evaluation.classes)), key=lambda class_index: -evaluation.classes[class_index].documents)
    class_indices = sorted(frequent[:_LARGEST_MATRIX])
    return confusion(
        [evaluation.classes[class_index] for class_index in class_indices],
        [[evaluation.confusion[has][was] for was in class_indices] for has in class_indices],
    )


def with_curves(evaluation: Evaluation) -> list[ClassFigures]:
    """The classes of which curves are shown, most documents first."""
    return sorted((each for each in evaluation.classes if each.curve), key=lambda each: -each.documents)[:CURVES]


def _curves(evaluation: Evaluation) -> Drawing:
    shown = with_curves(evaluation)
    if not shown:
        raise InvalidRequest("plot", "there is no curve: the scores are too many to rank the documents by")
    return curves(shown)


def _reliability(evaluation: Evaluation) -> Drawing:
    if evaluation.calibration is None:
        raise InvalidRequest("plot", "reliability is of probabilities, and the model gives none (auto does, the others by the option probabilities)")
    return reliability(evaluation.calibration)


PLOTS: Mapping[str, Callable[[Evaluation], Drawing]] = {"confusion": _confusion, "precision_recall": _curves, "reliability": _reliability}
"""By name; each raises InvalidRequest where there is nothing to plot."""


def check_plot(name: str | None) -> None:
    """Raises InvalidRequest unless this is the name of a plot."""
    if name not in PLOTS:
        raise InvalidRequest("plot", f"must be one of {', '.join(PLOTS)}")


def plot_of(evaluation: Evaluation, name: str) -> Response:
    """One plot, for a browser that loads nothing for its sake. Raises InvalidRequest where there is nothing to plot."""
    digest = b64encode(hashlib.sha256(style().encode()).digest()).decode()
    headers = {
        "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'",
        "Content-Disposition": f'inline; filename="{file_name(evaluation, name)}"',
        "Cache-Control": "no-store",
    }
    return Response(alone(PLOTS[name](evaluation)), media_type=SVG, headers=headers)


def save_link(evaluation: Evaluation, name: str, drawing: Drawing) -> Markup:
    """A link by which a plot of a page is saved; the plot is in the link."""
    content = b64encode(alone(drawing).encode()).decode()
    return element("a", "save as SVG", class_="save", href=f"data:{SVG};base64,{content}", download=file_name(evaluation, name))


def alone(drawing: Drawing) -> str:
    """A drawing as a file of its own, on white."""
    return drawing.svg(element("style", Markup(style())), element("rect", width="100%", height="100%", fill="#fff"))


def file_name(evaluation: Evaluation, name: str) -> str:
    """Under which a plot is saved."""
    return f"{evaluation.model}-{evaluation.version}-{name}.svg"


@cache
def style() -> str:
    """That of the plots."""
    return files("app.evaluation").joinpath("plots.css").read_text(encoding="utf-8")
