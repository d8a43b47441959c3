"""What to say of a model that knows nothing: how few of the labels left out it is right on, and how many labels it would take to know."""

from core.evaluation.labels_needed import labels_needed
from workers.contract import HeldOut


def ignorance(held_out: HeldOut | None) -> str:
    """A sentence about a version whose report says that it knows nothing but what chance would."""
    said = "the model knows no more than chance would, so all of these documents are random ones"
    if held_out is None:
        return said
    labels, right, by_chance = held_out.labels, held_out.right, held_out.by_chance
    said += f": of {labels} labels left out it is right on {right}, and by chance on some {by_chance * labels:.0f}"
    # one that is right by chance so far may learn: halfway to being always right is neither much nor little
    further = right / labels if right > by_chance * labels else (1 + by_chance) / 2
    needed = labels_needed(labels, right, by_chance, further)
    if needed is None or needed <= labels:
        return said
    return f"{said}; if it is right on {further:.0%} of those to come, it takes some {needed} labels in all to know that this is not chance"
