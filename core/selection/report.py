"""What a selection tells of itself, as JSON: what was tried, what labels left out showed, what was chosen, and why."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from core.selection.blocks import TOGETHER, Block
from core.selection.candidates import Candidate
from core.selection.choice import Choice
from core.selection.class_fractions import by_class

Offered = tuple[Block, Candidate]


def report_of(
    offered: Sequence[Offered], choice: Choice, classes: Sequence[str | int], agreement: float | None, cut_short: str = ""
) -> dict[str, Any]:
    """The report of a selection among these candidates; ``agreement`` is the share of unlabeled documents on which two kinds of them agree.

    ``cut_short`` is why the first of those that were chosen is alone in ``choice``, as the beginning of a sentence; empty if none is missing.
    """
    chosen = [(*offered[place], weight) for place, weight in choice.places]
    data, several = offered[0][0].data, bool(offered[0][0].name)
    known = data.class_indices[data.left_out]
    figures = {"labels": len(known), "folds": data.n_folds, "log_likelihood_of_chance": offered[0][1].judgement.chance}
    weights = {_key(block, candidate): weight for block, candidate, weight in chosen}
    return {
        "chosen": {
            "algorithm": chosen[0][1].algorithm,
            "lambda": chosen[0][1].lambda_,
            "why": _why(offered, choice, cut_short) + _agreed(agreement),
            "weights": weights,
            "agreement": agreement,
        },
        "tried": [{**({"part": block.name} if several else {}), **_tried(candidate, data.positives, classes)} for block, candidate in offered],
        "held_out": figures | {_key(*each): _judged(each[1]) for each in offered} if len(offered) > 1 else None,
        **({"parts": _parts(offered, choice)} if several else {"features": _scaling(offered[0][0])}),
        **_estimate(offered, choice, classes),
    }


def _key(block: Block, candidate: Candidate) -> str:
    return f"{block.name}/{candidate.algorithm}" if block.name else candidate.algorithm


def _title(block: Block, candidate: Candidate) -> str:
    where = {"": "", TOGETHER: " on all parts side by side"}.get(block.name, f" on {block.name}")
    return candidate.title + where


def _judged(candidate: Candidate) -> dict[str, float]:
    return {"log_likelihood": candidate.judgement.log_likelihood, "right": candidate.judgement.right}


def _tried(candidate: Candidate, positives: Sequence[int], classes: Sequence[str | int]) -> dict[str, Any]:
    own = {"algorithm": candidate.algorithm, **candidate.tried}
    if candidate.found is None:
        return own
    return own | {"fractions": {str(classes[positive]): tried for positive, tried in zip(positives, candidate.found.tried, strict=True)}}


def _scaling(block: Block) -> str:
    scaled = block.data.scaled
    scales = "each divided by its root mean square" if scaled.equalised else "all by one scale"
    return f"centred, {scales}" if scaled.centre.any() else scales


def _parts(offered: Sequence[Offered], choice: Choice) -> dict[str, dict[str, float]]:
    """The weight of each part in the model, those of all its candidates together."""
    found = {block.name: {"weight": 0.0} for block, _ in offered}
    for place, weight in choice.places:
        found[offered[place][0].name]["weight"] += weight
    return found


def _estimate(offered: Sequence[Offered], choice: Choice, classes: Sequence[str | int]) -> dict[str, Any]:
    """The class fractions, and the grounds of the transductive SVM's estimate of them: of several parts, that of all side by side.

    Without a transductive SVM, for which there was no time, the fractions are those that were given.
    """
    if choice.fractions is None:
        return {}
    found = [candidate.found for _, candidate in offered if candidate.found is not None and candidate.algorithm == "tsvm"]
    if not found:
        return {"class_fractions": by_class(choice.fractions, classes), "estimate": None}
    return replace(found[-1], fractions=choice.fractions).report(classes)


def _why(offered: Sequence[Offered], choice: Choice, cut_short: str) -> str:
    """Why this was chosen, in words."""
    data = offered[0][0].data
    if len(offered) == 1:
        return "there was no time to try other methods" if data.problems[0].n_unlabeled else "there are no unlabeled documents"
    known = data.class_indices[data.left_out]
    shares = ", ".join(f"{_title(*offered[place])} {weight:.0%}" for place, weight in choice.places)
    if len(np.unique(known)) < 2:
        few = f"too few labels to compare methods: {len(known)} can be left out, and not of two classes"
        if cut_short:
            return f"{few}; {_alone(offered, choice, cut_short)}"
        return f"{few}; the default is {shares}" if len(choice.places) == 1 else f"{few}; scores are added by default: {shares}"
    right = ", ".join(f"{_title(*each)} is right on {each[1].judgement.right}" for each in offered)
    verdict = f"scores are added, each weighing by how well it does, and how surely: {shares}"
    if cut_short:
        verdict = _alone(offered, choice, cut_short)
    elif len(choice.places) == 1:
        verdict = f"counting how sure each prediction is, none does better than {_title(*offered[choice.places[0][0]])}, which is taken alone"
    return f"{len(known)} labels were left out and predicted: {right}; {verdict}"


def _alone(offered: Sequence[Offered], choice: Choice, cut_short: str) -> str:
    """Why the first of several candidates is taken alone, in words."""
    return f"{cut_short} before scores could be added: {_title(*offered[choice.places[0][0]])}, which weighs most, is taken alone"


def _agreed(agreement: float | None) -> str:
    """What models of different kinds agree on, in words."""
    return "" if agreement is None else f"; naive Bayes and an SVM give {agreement:.0%} of the unlabeled documents the same class"
