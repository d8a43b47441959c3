"""The plots of an evaluation as SVG. Colours are those of the page: no plot has a style of its own."""

from collections.abc import Sequence
from typing import NamedTuple

from app.evaluation.markup import Markup, element, joined
from app.evaluation.schemas import CalibrationFigures, ClassFigures, ReliabilityBin

_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_SIDE, _LEFT, _TOP, _BELOW = 300, 48, 12, 44
_COUNTS = 70
"""height of the bars that tell how many documents there are"""
CURVES = 8
"""lines that can be told apart"""


class _Square(NamedTuple):
    """A plane on which both axes go from 0 to 1, its upper left corner at (left, top)."""

    left: float = _LEFT
    top: float = _TOP
    side: float = _SIDE

    def x(self, value: float) -> float:
        return self.left + value * self.side

    def y(self, value: float) -> float:
        return self.top + (1 - value) * self.side

    def path(self, points: Sequence[tuple[float, float]], name: str) -> Markup:
        """A line through points."""
        return element("polyline", points=" ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points), class_=name)

    def bar(self, start: float, end: float, height: float, told: str) -> Markup:
        """A bar from the bottom."""
        width = (end - start) * self.side - 1
        rectangle = {"x": self.x(start) + 0.5, "y": self.y(height), "width": width, "height": height * self.side}
        return element("rect", element("title", told), class_="bar", **rectangle)

    def axes(self, across: str, up: str) -> Markup:
        """Lines, numbers and names."""
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


def reliability(figures: CalibrationFigures) -> Markup:
    """Accuracy by confidence, as bars beside the diagonal where they should end, and below how many documents each stands for."""
    plane = _Square()
    filled = [each for each in figures.bins if each.documents]
    bars = [plane.bar(each.start, each.end, each.accuracy or 0.0, _told(each)) for each in filled]
    marks = [element("circle", cx=plane.x(each.confidence or 0.0), cy=plane.y(each.accuracy or 0.0), r=3, class_="mark") for each in filled]
    most = max(each.documents for each in filled)
    base = _TOP + _SIDE + _BELOW + _COUNTS
    counts = []
    for each in filled:
        height = max(1.0, each.documents / most * (_COUNTS - 16))
        told = element("title", f"{each.documents} documents")
        shape = {"x": plane.x(each.start) + 0.5, "width": (each.end - each.start) * _SIDE - 1, "y": base - height, "height": height}
        counts.append(element("rect", told, class_="count", **shape))
    counts.append(element("text", f"documents by confidence; the highest bar is {most}", x=plane.x(0.5), y=base + 16, text_anchor="middle"))
    parts = [plane.axes("confidence", "accuracy"), *bars, plane.path([(0, 0), (1, 1)], "ideal"), *marks, *counts]
    return _drawing("Reliability: accuracy by confidence", base + 24, *parts)


def curves(classes: Sequence[ClassFigures]) -> Markup:
    """Precision by recall of at most CURVES classes, whose names are left to a legend beside the plot."""
    plane = _Square()
    lines = []
    for place, each in enumerate(classes[:CURVES]):
        points = each.curve or []
        lines.append(plane.path([(0.0, points[0][1]), *points] if points else [], f"curve curve{place}"))
    return _drawing("Precision by recall", _TOP + _SIDE + _BELOW, plane.axes("recall", "precision"), plane.path([(0, 0), (1, 1)], "ideal"), *lines)


def _told(each: ReliabilityBin) -> str:
    return f"{each.documents} documents: confidence {each.confidence:.3f}, accuracy {each.accuracy:.3f}"


def _drawing(title: str, height: float, *parts: Markup) -> Markup:
    width = _LEFT + _SIDE + 16
    return element("svg", element("title", title), *parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height:g}", role="img")
