"""What is said of a model that knows nothing."""

import pytest

from app.predictions.ignorance import ignorance
from workers.contract import HeldOut

SAID = "the model knows no more than chance would, so all of these documents are random ones"


def test_where_nothing_was_left_out() -> None:
    assert ignorance(None) == SAID


@pytest.mark.parametrize(
    ("labels", "right", "by_chance", "rest"),
    [
        (20, 9, 0.5, "by chance on some 10; if it is right on 75% of those to come, it takes some 49 labels in all to know that this is not chance"),
        (20, 13, 0.5, "by chance on some 10; if it is right on 65% of those to come, it takes some 35 labels in all to know that this is not chance"),
        (6, 1, 0.2, "by chance on some 1; if it is right on 60% of those to come, it takes some 14 labels in all to know that this is not chance"),
        (20, 16, 0.5, "by chance on some 10"),
        (12, 12, 1.0, "by chance on some 12"),
    ],
)
def test_how_many_labels_it_would_take(labels: int, right: int, by_chance: float, rest: str) -> None:
    found = ignorance(HeldOut(labels=labels, right=right, by_chance=by_chance))
    assert found == f"{SAID}: of {labels} labels left out it is right on {right}, and {rest}"
