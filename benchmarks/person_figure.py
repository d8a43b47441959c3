"""The figures of ``benchmarks.person``: SVG as text, one for light and one for dark pages."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple

from benchmarks.base import DOCS

_WIDTH, _HEIGHT = 360, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 16, 34, 36
_COLUMNS = 2
_LEGEND = 30
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2)
_MOST_TICKS = 5


class _Colours(NamedTuple):
    ink: str
    quiet: str
    line: str
    page: str
    random: str


_THEMES = {
    "light": _Colours("#1b1c22", "#5d606d", "#dcdde3", "#4338ca", "#8a5a00"),
    "dark": _Colours("#ececf1", "#a3a6b4", "#33353f", "#a5a0ff", "#e0b04c"),
}


def draw(errors: Mapping[str, tuple[Sequence[float], ...]], steps: Sequence[int]) -> None:
    """Write ``docs/person-light.svg`` and ``docs/person-dark.svg``: a panel a set, its errors at the page and with
    random documents.
    """
    for theme, colours in _THEMES.items():
        panels = [_panel(name, found, steps, colours, place) for place, (name, found) in enumerate(errors.items())]
        rows = -(-len(panels) // _COLUMNS)
        width, height = _COLUMNS * _WIDTH, rows * _HEIGHT + _LEGEND
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            'font-family="system-ui, sans-serif" font-size="12">'
        )
        title = "<title>Error by number of answers, at the page and with random documents</title>"
        body = "\n".join([title, *panels, _legend(rows * _HEIGHT + 18, colours)])
        (DOCS / f"person-{theme}.svg").write_text(f"{head}\n{body}\n</svg>\n")


def _panel(name: str, found: tuple[Sequence[float], ...], steps: Sequence[int], colours: _Colours, place: int) -> str:
    most, parts_of_scale = _scale(max(max(line) for line in found))
    inner_width, inner_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    across = [_LEFT + inner_width * k / (len(steps) - 1) for k in range(len(steps))]

    def up(value: float) -> float:
        return _TOP + inner_height * (1 - value / most)

    parts = [f'<g transform="translate({place % _COLUMNS * _WIDTH} {place // _COLUMNS * _HEIGHT})">']
    parts.append(f'<text x="{_LEFT}" y="20" fill="{colours.ink}" font-weight="600">{name}</text>')
    for k in range(parts_of_scale + 1):
        value = most * k / parts_of_scale
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{up(value):.1f}" y2="{up(value):.1f}" '
            f'stroke="{colours.line}"/>'
        )
        parts.append(
            f'<text x="{_LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end" fill="{colours.quiet}">{value:.0%}</text>'
        )
    for x, step in zip(across, steps, strict=True):
        parts.append(
            f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle" fill="{colours.quiet}">{step}</text>'
        )
    for line, colour, dash in zip(found, (colours.page, colours.random), ("", ' stroke-dasharray="5 4"'), strict=True):
        points = " ".join(f"{x:.1f},{up(value):.1f}" for x, value in zip(across, line, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{up(value):.1f}" r="3" fill="{colour}"/>'
            for x, value in zip(across, line, strict=True)
        ]
    return "\n".join([*parts, "</g>"])


def _scale(most: float) -> tuple[float, int]:
    """The end of a scale that has a value, and its parts: the nearest end by the smallest number of round ticks."""
    ends = [(step * ceil(most / step), ceil(most / step)) for step in _TICKS]
    return min(end for end in ends if end[1] <= _MOST_TICKS)


def _legend(y: float, colours: _Colours) -> str:
    named = ((colours.page, "", "at the page"), (colours.random, ' stroke-dasharray="5 4"', "random documents"))
    parts = []
    for k, (colour, dash, text) in enumerate(named):
        x = _LEFT + 140 * k
        parts.append(
            f'<line x1="{x}" x2="{x + 24}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="2"{dash}/>'
        )
        parts.append(f'<text x="{x + 30}" y="{y}" fill="{colours.ink}">{text}</text>')
    parts.append(f'<text x="{_LEFT + 320}" y="{y}" fill="{colours.quiet}">error by number of answers</text>')
    return "\n".join(parts)
