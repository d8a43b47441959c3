"""An evaluation as one self-contained HTML page, and its plots as SVG files; its templates are in a folder.

Neither loads or runs anything. Colours are set by CSS class, in plots.css.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, Response

from app.errors import InvalidRequest
from app.evaluation.schemas import Evaluation

if TYPE_CHECKING:
    from jinja2 import Environment

SVG = "image/svg+xml"
CURVES = 8
"""Number of curves that can be distinguished."""
_LARGEST_MATRIX = 30
"""Labels up to which the whole confusion matrix is shown."""
_MOST_CONFUSED = 30
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML does not allow, not even escaped."""


def _confusion(evaluation: Evaluation) -> dict[str, Any]:
    """Confusion of all labels, or of the most frequent ones.

    Rows are labels that documents have, columns labels that they were given, of those that the model knows.
    """
    classes = evaluation.classes
    frequent = sorted(range(len(classes)), key=lambda class_index: -classes[class_index].documents)
    shown = sorted(frequent[:_LARGEST_MATRIX])
    given = [class_index for class_index in shown if classes[class_index].known]
    rows = [(classes[has], [evaluation.confusion[has][was] for was in given]) for has in shown]
    return {"rows": rows, "given": [classes[was] for was in given]}


def _precision_recall(evaluation: Evaluation) -> dict[str, Any]:
    """Curves of the classes with the most documents."""
    with_curve = sorted((each for each in evaluation.classes if each.curve), key=lambda each: -each.documents)
    if not with_curve:
        raise InvalidRequest("plot", "there is no curve: there are too many scores to rank documents")
    return {"classes": with_curve[:CURVES]}


def _reliability(evaluation: Evaluation) -> dict[str, Any]:
    """The bins that have documents."""
    if evaluation.calibration is None:
        raise InvalidRequest(
            "plot",
            "reliability needs probabilities, and the model is not calibrated (auto calibrates, other algorithms "
            "by the option probabilities)",
        )
    return {"bins": [each for each in evaluation.calibration.bins if each.documents]}


PLOTS: Mapping[str, Callable[[Evaluation], dict[str, Any]]] = {
    "confusion": _confusion,
    "precision_recall": _precision_recall,
    "reliability": _reliability,
}
"""What each plot shows, by its name; each raises InvalidRequest if there is nothing to plot."""


def plot_of(evaluation: Evaluation, name: str) -> Response:
    """The answer with one plot; raises InvalidRequest if there is nothing to plot."""
    if evaluation.several is not None:
        raise InvalidRequest("plot", "is for models of one label a document; without it the answer has all figures")
    style = _style("plots.css")
    content = _rendered(f"{name}.svg", style=style, **PLOTS[name](evaluation))
    policy = f"default-src 'none'; {_allowed(style)}; frame-ancestors 'none'"
    return Response(content, media_type=SVG, headers=_headers(evaluation, f"{name}.svg", policy))


def page_of(evaluation: Evaluation) -> HTMLResponse:
    """The page; each plot has a link that saves it, which contains its file."""
    style = _style("plots.css", "page.css")
    # a saved page keeps the policy
    policy = f"default-src 'none'; {_allowed(style)}; base-uri 'none'; form-action 'none'"
    confused = None
    if len(evaluation.classes) > _LARGEST_MATRIX and evaluation.several is None:
        # the pairs of labels that are confused most often, in place of a matrix with too many labels
        pairs = [
            (count, has, was)
            for has, counts in zip(evaluation.classes, evaluation.confusion, strict=True)
            for was, count in zip(evaluation.classes, counts, strict=True)
            if count and has is not was
        ]
        confused = sorted(pairs, key=lambda pair: -pair[0])[:_MOST_CONFUSED]
    plots = {}
    for name, shown_by in PLOTS.items() if evaluation.several is None else ():
        with suppress(InvalidRequest):  # there is nothing to plot
            shown = shown_by(evaluation)
            drawing = _rendered(f"{name}.svg", style=None, **shown)
            file = b64encode(_rendered(f"{name}.svg", style=_style("plots.css"), **shown).encode()).decode()
            plots[name] = {**shown, "drawing": drawing, "file": file}
    content = _rendered("page.html", about=evaluation, plots=plots, confused=confused, style=style, policy=policy)
    headers = _headers(evaluation, "evaluation.html", f"{policy}; frame-ancestors 'self'")
    return HTMLResponse(content, headers=headers)


def _headers(evaluation: Evaluation, name: str, policy: str) -> dict[str, str]:
    return {
        "Content-Security-Policy": policy,
        "Content-Disposition": f'inline; filename="{evaluation.model}-{evaluation.version}-{name}"',
        "Cache-Control": "no-store",
    }


def _allowed(style: str) -> str:
    """The directive that allows a style, by its digest."""
    return f"style-src 'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"


@cache
def _style(*names: str) -> str:
    return "".join(map(_file, names))


def _rendered(name: str, **content: Any) -> str:
    return _templates().get_template(name).render(**content)


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # the first page loads it

    # no line ends between elements: they would be text of the page
    loader = FunctionLoader(lambda name: "".join(map(str.strip, _file(name).splitlines())))
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, finalize=_text)
    templates.filters["figure"] = lambda value: "–" if value is None else f"{value:.3f}"
    return templates


def _text(value: Any) -> Any:
    """A value as it stands in a template: floats with six digits, texts with the characters that XML allows."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", value) if type(value) is str else value


def _file(name: str) -> str:
    return files("app.evaluation").joinpath("templates", name).read_text(encoding="utf-8")
