"""What to say of a model that knows too little to choose documents: it cannot be told from chance, or it has few labels of each class."""

from core.evaluation.active_learning import LABELS_A_CLASS, has_few_labels
from core.evaluation.labels_needed import labels_needed
from workers.contract import HeldOut, Version


def ignorance(version: Version) -> str | None:
    """A sentence about a version that knows too little, so that all that is suggested is random; None of one that may choose."""
    held_out, n_classes = version.held_out, len(version.classes)
    if version.confidence == "none":
        return _by_chance(held_out)
    if held_out is None or not has_few_labels(held_out.labels, n_classes):
        return None
    return (
        f"{held_out.labels} labels left out say too little of {n_classes} classes, so all of these documents are random ones: from some "
        f"{LABELS_A_CLASS} of each class on the model chooses documents, too"
    )


def _by_chance(held_out: HeldOut | None) -> str:
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
