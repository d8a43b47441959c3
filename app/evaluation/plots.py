"""The plots of an evaluation as SVG: inside a page, or as files of their own.

Colours are set by CSS class, in plots.css. Text that is not markup is escaped.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import NamedTuple

from starlette.responses import Response

from app.errors import InvalidRequest
from app.evaluation.schemas import CalibrationFigures, ClassFigures, Evaluation

_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_SIDE, _LEFT, _TOP, _BELOW = 300, 48, 12, 44
_COUNTS = 70
"""Height of the bars that show numbers of documents."""
CURVES = 8
"""Number of curves that can be distinguished."""
_FONT, _LINE = 11, 18
"""Font size, and height of a line of the legend."""
_MAX_LABEL = 24
"""Characters of a label that are shown."""
_NAMES, _CELLS, _LARGEST_CELL = 150, 560, 44
"""Width of the labels beside a matrix, largest side of the matrix, largest side of a cell."""
_SMALLEST_COUNTED = 22
"""Side of a cell from which on it shows a number."""
SVG = "image/svg+xml"
LARGEST_MATRIX = 30
"""Labels up to which the whole confusion matrix is shown."""
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML does not allow, not even escaped."""


class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: str | float) -> Markup:
    """An element with its end tag.

    ``class_`` is the attribute class, ``stroke_width`` is stroke-width; content that is no Markup is escaped.
    """
    named = "".join(
        f' {key.strip("_").replace("_", "-")}="{_text(value if isinstance(value, str) else f"{value:.6g}")}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{named}>{joined(*content)}</{name}>")


def joined(*content: str) -> Markup:
    """The parts in a row; those that are no Markup are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else _text(part) for part in content))


def _text(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))


class Drawing(NamedTuple):
    """A plot: its title, its size and its content."""

    title: str
    width: float
    height: float
    content: Markup

    def svg(self, *before: Markup) -> Markup:
        """The SVG element; ``before`` comes before the content."""
        box = f"0 0 {self.width:g} {self.height:g}"
        named: dict[str, str | float] = {
            "xmlns": "http://www.w3.org/2000/svg",
            "role": "img",
            "viewBox": box,
            "font_size": _FONT,
        }
        return element(
            "svg", element("title", self.title), *before, self.content, width=self.width, height=self.height, **named
        )


class _UnitSquare(NamedTuple):
    """Coordinates in which both axes go from 0 to 1, with the upper left corner at (left, top)."""

    left: float = _LEFT
    top: float = _TOP
    side: float = _SIDE

    def x(self, value: float) -> float:
        return self.left + value * self.side

    def y(self, value: float) -> float:
        return self.top + (1 - value) * self.side

    def path(self, points: Sequence[tuple[float, float]], name: str) -> Markup:
        """A polyline through points."""
        return element("polyline", points=" ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points), class_=name)

    def bar(self, start: float, end: float, height: float, title: str) -> Markup:
        """A bar from the bottom, with a title."""
        width = (end - start) * self.side - 1
        rectangle = {"x": self.x(start) + 0.5, "y": self.y(height), "width": width, "height": height * self.side}
        return element("rect", element("title", title), class_="bar", **rectangle)

    def axes(self, across: str, up: str) -> Markup:
        """Grid, ticks and names of the axes."""
        parts = []
        for tick in _TICKS:
            x, y = self.x(tick), self.y(tick)
            parts += [
                element("line", x1=self.left, x2=self.x(1), y1=y, y2=y, class_="grid"),
                element("line", x1=x, x2=x, y1=self.top, y2=self.y(0), class_="grid"),
                element("text", f"{tick:g}", x=self.left - 6, y=y + 4, text_anchor="end"),
                element("text", f"{tick:g}", x=x, y=self.y(0) + 16, text_anchor="middle"),
            ]
        middle = self.top + self.side / 2
        parts += [
            element("text", across, x=self.x(0.5), y=self.y(0) + 34, text_anchor="middle"),
            element("text", up, x=12, y=middle, text_anchor="middle", transform=f"rotate(-90 12 {middle:g})"),
        ]
        return joined(*parts)


def reliability(figures: CalibrationFigures) -> Drawing:
    """Reliability diagram: accuracy by confidence as bars that should end at the diagonal; below, numbers of
    documents."""
    plane = _UnitSquare()
    filled = [each for each in figures.bins if each.documents]
    bars = [
        plane.bar(
            each.start,
            each.end,
            each.accuracy or 0.0,
            f"{each.documents} documents: confidence {each.confidence:.3f}, accuracy {each.accuracy:.3f}",
        )
        for each in filled
    ]
    marks = [
        element("circle", cx=plane.x(each.confidence or 0.0), cy=plane.y(each.accuracy or 0.0), r=3, class_="mark")
        for each in filled
    ]
    most = max(each.documents for each in filled)
    base = _TOP + _SIDE + _BELOW + _COUNTS
    counts = []
    for each in filled:
        height = max(1.0, each.documents / most * (_COUNTS - 16))
        title = element("title", f"{each.documents} documents")
        shape = {
            "x": plane.x(each.start) + 0.5,
            "width": (each.end - each.start) * _SIDE - 1,
            "y": base - height,
            "height": height,
        }
        counts.append(element("rect", title, class_="count", **shape))
    counts.append(
        element(
            "text",
            f"documents by confidence; the highest bar is {most}",
            x=plane.x(0.5),
            y=base + 16,
            text_anchor="middle",
        )
    )
    parts = [plane.axes("confidence", "accuracy"), *bars, plane.path([(0, 0), (1, 1)], "ideal"), *marks, *counts]
    return _under_axes("Reliability: accuracy by confidence", base + 24, *parts)


def curves(classes: Sequence[ClassFigures]) -> Drawing:
    """Precision-recall curves of at most CURVES classes, with a legend."""
    plane = _UnitSquare()
    lines, base = [], _TOP + _SIDE + _BELOW
    for index, each in enumerate(classes[:CURVES]):
        points = each.curve or []
        y = base + index * _LINE + 10
        lines += [
            plane.path([(0.0, points[0][1]), *points] if points else [], f"curve curve{index}"),
            element("line", x1=_LEFT, x2=_LEFT + 20, y1=y - 4, y2=y - 4, class_=f"key curve{index}"),
            _label(each, x=_LEFT + 28, y=y),
        ]
    height = base + len(classes[:CURVES]) * _LINE
    return _under_axes(
        "Precision by recall", height, plane.axes("recall", "precision"), plane.path([(0, 0), (1, 1)], "ideal"), *lines
    )


def confusion(classes: Sequence[ClassFigures], counts: Sequence[Sequence[int]]) -> Drawing:
    """Confusion matrix: rows are labels that documents have, columns labels that they were given, of those that the
    model knows.

    ``counts`` has all pairs of these classes. The stronger the colour, the larger the fraction of the row.
    """
    given = [class_index for class_index, each in enumerate(classes) if each.known]
    cell = min(_LARGEST_CELL, _CELLS / len(classes))
    left, top = _NAMES + 24.0, _NAMES + 24.0
    width, height = cell * len(given), cell * len(classes)
    parts = [
        element("text", "was given", x=left + width / 2, y=14, text_anchor="middle"),
        element(
            "text",
            "has",
            x=14,
            y=top + height / 2,
            text_anchor="middle",
            transform=f"rotate(-90 14 {top + height / 2:g})",
        ),
    ]
    for column, class_index in enumerate(given):
        x = left + (column + 0.5) * cell + 4
        parts.append(_label(classes[class_index], x=x, y=top - 6, transform=f"rotate(-90 {x:g} {top - 6:g})"))
    for row, each in enumerate(classes):
        y = top + row * cell
        parts.append(_label(each, x=left - 6, y=y + cell / 2 + 4, text_anchor="end"))
        parts += [
            _cell(left + column * cell, y, cell, counts[row][class_index], each.documents)
            for column, class_index in enumerate(given)
        ]
    return Drawing(
        "Confusion: documents by the label that they have and the one that they were given",
        left + width + 16,
        top + height + 12,
        joined(*parts),
    )


def _cell(x: float, y: float, side: float, count: int, whole: int) -> Markup:
    box = element(
        "rect", element("title", f"{count} of {whole} documents"), x=x, y=y, width=side, height=side, class_="box"
    )
    if not count:
        return box
    heat = element("rect", x=x, y=y, width=side, height=side, class_="shade", fill_opacity=0.06 + 0.6 * count / whole)
    if side < _SMALLEST_COUNTED:
        return joined(heat, box)
    size = min(12.0, 1.6 * side / len(f"{count:,}"))
    number = element(
        "text", f"{count:,}", x=x + side / 2, y=y + side / 2 + 4, text_anchor="middle", class_="counted", font_size=size
    )
    return joined(heat, box, number)


def _label(each: ClassFigures, **attributes: str | float) -> Markup:
    """The name of a class, shortened if it is long."""
    name = str(each.label)
    shown = name if len(name) <= _MAX_LABEL else f"{name[: _MAX_LABEL - 1]}…"
    return element("text", element("title", name), shown, **attributes)


def _under_axes(title: str, height: float, *parts: Markup) -> Drawing:
    """A drawing of the width of a square with its axes."""
    return Drawing(title, _LEFT + _SIDE + 16, height, joined(*parts))


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
