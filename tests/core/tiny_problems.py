"""Problems of a few rows, drawn by Hypothesis."""

from typing import Any, NamedTuple

from hypothesis import strategies as st

ENTRY = st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0, 1e-3, 100.0]) | st.floats(-10, 10, width=32)


class Tiny(NamedTuple):
    dense: list[list[float]]
    class_indices: list[int]
    algorithm: str
    options: dict[str, Any]


@st.composite
def tiny(draw: st.DrawFn, options: dict[str, st.SearchStrategy[dict[str, Any]]]) -> Tiny:
    n, d = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    dense = draw(st.lists(st.lists(ENTRY, min_size=d, max_size=d), min_size=n, max_size=n))
    algorithm = draw(st.sampled_from(sorted(options)))
    return Tiny(dense, draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)), algorithm, draw(options[algorithm]))
