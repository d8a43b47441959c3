"""A recipe of Prodigy: label the suggestions of a model, and send the answers to the dataset of the service.

    prodigy halfmoon.textcat NEWS ds-1f… tickets
    prodigy halfmoon.textcat NEWS ds-1f… tickets@live --label sport,politics --by ann --preselect

``NEWS`` is the dataset of Prodigy, ``ds-1f…`` that of the service. HALFMOON_URL and HALFMOON_API_KEY say where the
service is. Protocol: https://prodi.gy/docs/custom-recipes
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import prodigy

from halfmoon._sync.client import Halfmoon
from halfmoon._sync.datasets import Dataset
from halfmoon._sync.models import Model
from halfmoon.errors import InvalidData
from halfmoon.records import Label, Suggestion
from halfmoon.shown import annotation_of

_BATCH = 10
"""documents that are suggested, and sent back, at a time"""
_MOST = 1000
_CLAIM_SECONDS = 600
_ID = "halfmoon_id"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


@prodigy.recipe(
    "halfmoon.textcat",
    dataset=("Dataset of Prodigy for the answers", "positional", None, str),
    source=("Id of the dataset of the service", "positional", None, str),
    model=("Model that suggests documents: a name, or an alias as in tickets@live", "positional", None, str),
    label=("Labels, separated by commas; by default the classes of the model", "option", "l", _names),
    by=("Name of the person who labels", "option", "b", str),
    preselect=("Show what the model predicts; it is accepted too easily", "flag", "P", bool),
)  # type: ignore[untyped-decorator]
def textcat(
    dataset: str,
    source: str,
    model: str,
    label: Sequence[str] | None = None,
    by: str | None = None,
    preselect: bool = False,
) -> dict[str, Any]:
    """Choose one class for each text that the model suggests, or in a dataset of several labels all that apply."""
    hm = Halfmoon()
    data, suggesting = hm.datasets.get(source), hm.models[model]
    several = data.record.label_kind == "several"
    classes: dict[str, Label] = {str(each): each for each in suggesting.info().classes}
    labels = {name: classes.get(name, name) for name in label or classes}
    waiting: set[str] = set()

    def update(answers: Sequence[Mapping[str, Any]]) -> None:
        data.append([entry_of(answer, labels, by, preselect, several) for answer in answers])
        waiting.difference_update(str(answer[_ID]) for answer in answers)

    return {
        "dataset": dataset,
        "view_id": "choice",
        "stream": (
            task_of(each, labels, _given(each, suggesting, several) if preselect else None)
            for each in _suggested(suggesting, data, by, waiting)
        ),
        "update": update,
        "on_exit": lambda controller: hm.close(),
        "config": {"choice_style": "multiple" if several else "single", "batch_size": _BATCH},
    }


def _suggested(model: Model, data: Dataset, by: str | None, waiting: set[str]) -> Iterator[Suggestion]:
    """Documents, until nothing else is suggested.

    What is answered meanwhile changes what comes next; ``waiting`` are those without an answer.
    """
    more: dict[str, Any] = {} if by is None else {"by": by, "claim": _CLAIM_SECONDS}
    while found := [
        each for each in model.suggest(data, min(_BATCH + len(waiting), _MOST), **more) if each.id not in waiting
    ]:
        if not any(each.text for each in found):
            raise InvalidData(f"the documents of {data.id} have no text to show")
        waiting.update(each.id for each in found)
        yield from (each for each in found if each.text)


def _given(suggestion: Suggestion, model: Model, several: bool) -> list[str]:
    """What the model gives to a suggested document: a suggestion itself has one of several labels."""
    given = model.predict([suggestion.text]).labels[0] if several else suggestion.label
    return [str(each) for each in (given if isinstance(given, list) else [given])]


def task_of(suggestion: Suggestion, labels: Iterable[str], accept: list[str] | None) -> dict[str, Any]:
    """The task of a suggestion, with these labels chosen beforehand; its id comes back with the answer."""
    task = {
        "text": suggestion.text,
        "options": [{"id": label, "text": label} for label in labels],
        "meta": {"document": suggestion.id, "drawn": suggestion.drawn},
        _ID: suggestion.id,
    }
    return task if accept is None else task | {"accept": accept}


def entry_of(
    answer: Mapping[str, Any], labels: Mapping[str, Label], by: str | None, preselect: bool, several: bool
) -> dict[str, Any]:
    """The entry for the log: the label if one was chosen and accepted, or all of several, else a skip."""
    chosen = [labels[each] for each in answer.get("accept") or []]
    label: Label | list[Label] | None = None
    if answer.get("answer") == "accept" and (several or len(chosen) == 1):
        label = chosen if several else chosen[0]
    mode = {"mode": "assisted" if preselect else "blind"}
    return annotation_of(answer[_ID], label, "skip" if label is None else "label", by, mode)
