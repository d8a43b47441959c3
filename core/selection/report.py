"""The report of a selection, as JSON: candidates, how they did on labels left out, the choice, and its reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np

from core.progress import TOGETHER
from core.selection.candidates import Candidate, SelectionBlock
from core.selection.class_fractions import by_class
from core.selection.stack import Choice

Offered = tuple[SelectionBlock, Candidate]


_SUPERVISED = "labels by votes are no random sample: only the model of the certain labels learns from other documents"


class Alone(StrEnum):
    """Reason for which the first of several chosen candidates is the model alone, as the beginning of a sentence."""

    TIME_OVER = "the time was over"
    STOPPED = "the training was stopped"


def report_of(
    offered: Sequence[Offered],
    choice: Choice,
    classes: Sequence[str | int],
    agreement: float | None,
    alone: Alone | None = None,
    *,
    supervised: bool = False,
) -> dict[str, Any]:
    """The report of a selection among these candidates; ``agreement`` is the share of unlabeled documents on which two
    kinds of them agree.

    ``alone`` is given where only the first of the chosen candidates is left in ``choice``, ``supervised`` where
    unlabeled documents were to be left out.
    """
    chosen = [(*offered[place], weight) for place, weight in choice.places]
    data, several = offered[0][0].data, bool(offered[0][0].name)
    why, tried, held_out = _SUPERVISED if supervised else _why(offered, choice, alone), [], None
    if agreement is not None:
        why += f"; naive Bayes and an SVM give {agreement:.0%} of the unlabeled documents the same class"
    for block, candidate in offered:
        part = {"part": block.name} if several else {}
        tried.append({**part, "algorithm": candidate.algorithm, **candidate.tried})
    if len(offered) > 1:
        n_known, chance = int(np.count_nonzero(data.left_out)), offered[0][1].judgement.chance
        held_out = {"labels": n_known, "folds": data.n_folds, "log_likelihood_of_chance": chance} | {
            _key(*each): {"log_likelihood": each[1].judgement.log_likelihood, "right": each[1].judgement.right}
            for each in offered
        }
    return {
        "chosen": {
            "algorithm": chosen[0][1].algorithm,
            "lambda": chosen[0][1].lambda_,
            "why": why,
            "weights": {_key(block, candidate): weight for block, candidate, weight in chosen},
            "agreement": agreement,
        },
        "tried": tried,
        "held_out": held_out,
        **({"parts": _parts(offered, choice)} if several else {"features": _scaling(offered[0][0])}),
        **_estimate(offered, choice, classes),
    }


def _key(block: SelectionBlock, candidate: Candidate) -> str:
    return f"{block.name}/{candidate.algorithm}" if block.name else candidate.algorithm


def _title(block: SelectionBlock, candidate: Candidate) -> str:
    where = {"": "", TOGETHER: " on all parts side by side"}.get(block.name, f" on {block.name}")
    return candidate.title + where


def _scaling(block: SelectionBlock) -> str:
    scaled = block.data.scaled
    scales = "each divided by its root mean square" if scaled.equalised else "all by one scale"
    if not scaled.equalised and len(scaled.scales) and np.ptp(scaled.scales) > 0:
        scales = "terms by one scale, numbers brought to the largest of them"
    return f"centred, {scales}" if scaled.centre.any() else scales


def _parts(offered: Sequence[Offered], choice: Choice) -> dict[str, dict[str, float]]:
    """The weight of each part in the model, over all its candidates."""
    found = {block.name: {"weight": 0.0} for block, _ in offered}
    for place, weight in choice.places:
        found[offered[place][0].name]["weight"] += weight
    return found


def _estimate(offered: Sequence[Offered], choice: Choice, classes: Sequence[str | int]) -> dict[str, Any]:
    """The class fractions, and the grounds of the transductive SVM's estimate; of several parts, of all side by side.

    Without a transductive SVM, for which there was no time, the fractions are those that were given.
    """
    if choice.fractions is None:
        return {}
    found = [
        candidate.found for _, candidate in offered if candidate.found is not None and candidate.algorithm == "tsvm"
    ]
    if not found:
        return {"class_fractions": by_class(choice.fractions, classes), "estimate": None}
    return replace(found[-1], fractions=choice.fractions).report(classes)


def _why(offered: Sequence[Offered], choice: Choice, alone: Alone | None) -> str:
    """The reasons of the choice, in words."""
    data, first = offered[0][0].data, _title(*offered[choice.places[0][0]])
    if len(offered) == 1:
        if data.problems[0].n_unlabeled:
            return "there was no time to try other methods"
        return "there are no unlabeled documents"
    known = data.class_indices[data.left_out]
    shares = ", ".join(f"{_title(*offered[place])} {weight:.0%}" for place, weight in choice.places)
    compared = len(np.unique(known)) > 1
    if alone is not None:
        verdict = f"{alone} before scores could be added: {first}, which weighs most, is taken alone"
    elif len(choice.places) == 1 and compared:
        verdict = f"counting how sure each prediction is, none does better than {first}, which is taken alone"
    elif len(choice.places) == 1:
        verdict = f"the default is {shares}"
    elif compared:
        verdict = f"scores are added, each weighing by how well it does, and how surely: {shares}"
    else:
        verdict = f"scores are added by default: {shares}"
    if not compared:
        return f"too few labels to compare methods: {len(known)} can be left out, and not of two classes; {verdict}"
    right = ", ".join(f"{_title(*each)} is right on {each[1].judgement.right}" for each in offered)
    return f"{len(known)} labels were left out and predicted: {right}; {verdict}"


def time_report(seconds: float | None, *, tried: bool = True, solved: bool = True) -> dict[str, Any]:
    """What a budget of seconds sufficed for: whether all methods were tried, and the model was solved; empty without a
    budget.
    """
    return {} if seconds is None else {"time": {"seconds": seconds, "all_methods_tried": tried, "solved": solved}}


def time_warnings(report: Mapping[str, Any]) -> list[str]:
    """Warnings about a budget of seconds that did not suffice, by the report of a training."""
    time = report.get("time")
    if time is None or (time["all_methods_tried"] and time["solved"]):
        return []
    missed = "the model was solved to its tolerance" if time["all_methods_tried"] else "all methods were tried"
    return [
        f"{time['seconds']:g} seconds were over before {missed}: with more seconds, or without a bound, the "
        "model may err less"
    ]
