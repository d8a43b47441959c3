"""Relabeling: the manifest and the labels of a dataset that differs from another in some labels."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from core.errors import MAX_FAULTS, Fault, refuse
from storage.names import new_id
from storage.process.settings import DatasetLimits
from storage.records import Dataset, File, Given, Label, LabelKind, labels_in
from storage.repositories.datasets.documents import Documents, changed, class_counts, of_kind
from storage.repositories.datasets.files.ids import IdIndex, Ids
from storage.repositories.datasets.files.npy import WITHOUT_LABEL, DrawnWriter, NpyWriter, draw_detail
from storage.repositories.datasets.label_files import LabelSetsWriter
from storage.repositories.datasets.labels import LabelLists, labels_detail, list_faults
from storage.repositories.datasets.manifest import class_warnings, content_digest
from storage.store.local_files import sha256_of

_SOUGHT = 1 << 16
"""Ids that are looked up at a time: sorting very many would hold the interpreter."""
_REPLACED = ("labels", "label_sets.", "drawn")
"""beginnings of the names of the files that a relabeled dataset has of its own"""
_ONE = "a document has one label here; label_kind several makes a dataset of several labels of it"
_LIST = "must be a list of labels, or null: a document may have several here"
_LOST = "has not one label alone; give it one label in labels, or null"
_CONTRADICTION = "names a class that labels has, too; give labels without it"


class Changes(NamedTuple):
    """The changes of the labels of a dataset."""

    labels: Mapping[str, Given | None]
    """label, or all of several, by document id, None: not known"""
    drawn: Mapping[str, str]
    """how labels were come by, as words by document id; of those in ``labels`` that are not here the service may know
    it"""
    suggested: Mapping[int, Draw]
    """how documents were suggested to be labeled, by position"""
    excluded: Mapping[str, Sequence[Label]] = MappingProxyType({})
    """labels that a document is known not to have, by document id"""
    label_kind: LabelKind | None = None
    """kind of the labels then; None: as before"""


def relabeled(
    base: Dataset, documents: Documents, changes: Changes, limits: DatasetLimits, folder: Path
) -> tuple[Dataset, dict[str, Path]]:
    """The manifest of the changed dataset, which is not stored yet, and its files by content, in ``folder``. ``base``
    does not change.

    Raises InvalidDocuments, LimitExceeded.
    """
    kind = changes.label_kind or base.label_kind
    positions = _positions(documents.ids, changes)
    _refuse_invalid(changes, kind, limits)
    _refuse_lost(documents, kind, changes, positions)
    after = changed(
        of_kind(documents, kind),
        {positions[id]: given for id, given in changes.labels.items()},
        {positions[id]: given for id, given in changes.excluded.items()},
        limits.classes,
    )
    _refuse_mixture(documents.classes, after.classes, changes)
    _refuse_contradiction(after)
    refuse(Fault(id, "drawn", WITHOUT_LABEL) for id in changes.drawn if not after.labeled[positions[id]])
    id, (paths, counts) = new_id("ds"), _written(folder, after, _drawn(documents, positions, changes))
    files = {content: file for content, file in base.files.items() if not content.startswith(_REPLACED)}
    for content, path in paths.items():
        digest, size = sha256_of(path)
        files[content] = File(key=f"datasets/{id}/{path.name}", sha256=digest, bytes=size)
    classes = class_counts(after)
    warnings = [warning for warning in base.warnings if warning not in class_warnings(base.classes)]
    fields = {
        "id": id,
        "label_kind": kind,
        "n_labeled": int(np.count_nonzero(after.labeled)),
        "classes": classes,
        "drawn": counts,
        "sha256": content_digest(
            base.n_features, base.parts, classes, files, fields=base.fields, voters=[*base.voters], voted=base.voted
        ),
        "created_at": datetime.now(UTC),
        "warnings": [*warnings, *class_warnings(classes)],
        "files": files,
    }
    return base.model_copy(update=fields), paths


def _written(folder: Path, after: Documents, drawn: NDArray[np.int8]) -> tuple[dict[str, Path], dict[str, int]]:
    """The files of labels and draws by content, and the number of labels by draw."""
    with ExitStack() as stack:
        draws = DrawnWriter(folder, stack)
        draws.append(drawn, len(drawn))
        drawn_file = draws.finish()
        paths = {} if drawn_file is None else {"drawn": drawn_file}
        if after.label_sets is None:
            labels = stack.enter_context(NpyWriter(folder / "labels.npy", "<i4"))
            labels.append(after.class_indices)
            return paths | {"labels": labels.finish()}, draws.counts
        sets = LabelSetsWriter(folder, stack)
        sets.add(after.label_sets)
        return paths | sets.finish(np.arange(len(after.classes), dtype=np.int32)), draws.counts


def _refuse_invalid(changes: Changes, kind: LabelKind, limits: DatasetLimits) -> None:
    """Raise InvalidDocuments for labels of another kind than the dataset has, and for those that are not valid."""
    field, wrong = ("label", _ONE) if kind == "single" else ("labels", _LIST)
    several = kind == "several"
    given = {id: each for id, each in changes.labels.items() if each is not None}
    refuse(Fault(id, field, wrong) for id, each in given.items() if isinstance(each, tuple) is not several)
    refuse(Fault(id, "not", _ONE) for id in changes.excluded if not several)
    lists = {field: given, "not": changes.excluded}
    refuse(
        Fault(id, name, detail)
        for name, each in lists.items()
        for id, labels in each.items()
        if (detail := labels_detail(labels_in(labels)))
    )
    if several:
        ids = [*{**changes.labels, **changes.excluded}]
        rows = LabelLists(
            [labels_in(each) if (each := given.get(id)) is not None else None for id in ids],
            [changes.excluded.get(id) for id in ids],
        )
        faults = list_faults(rows, [None] * len(ids), limits.labels)
        refuse(Fault(ids[place], name, detail) for place, name, detail in faults)
    refuse(Fault(id, "drawn", detail) for id, word in changes.drawn.items() if (detail := draw_detail(word)))


def _drawn(documents: Documents, positions: Mapping[str, int], changes: Changes) -> NDArray[np.int8]:
    """How the labels of all documents were come by, shape (n_documents,)."""
    drawn = np.zeros(len(documents.class_indices), np.int8) if documents.drawn is None else np.array(documents.drawn)
    labeled = documents.labeled
    for id, label in changes.labels.items():
        position = positions[id]
        if label is None:
            drawn[position] = Draw.UNKNOWN
        elif not labeled[position]:
            drawn[position] = changes.suggested.get(position, Draw.UNKNOWN)
    for id, word in changes.drawn.items():
        drawn[positions[id]] = Draw.of(word)
    return drawn


def _refuse_lost(documents: Documents, kind: LabelKind, changes: Changes, positions: Mapping[str, int]) -> None:
    """Raise InvalidDocuments naming documents whose labels cannot be one label, where each may have but one now."""
    sets = documents.label_sets
    if kind == "several" or sets is None:
        return
    lost = np.bincount(sets.owners, minlength=sets.n_rows) != sets.complete
    lost |= sets.complete & (sets.single() < 0)
    lost[[positions[id] for id in changes.labels]] = False
    refuse(Fault(id, "labels", _LOST) for id in documents.ids.taken(np.flatnonzero(lost)[:MAX_FAULTS].tolist()))


def _refuse_contradiction(after: Documents) -> None:
    """Raise InvalidDocuments naming documents of which a class is said to apply and not to apply."""
    sets = after.label_sets
    if sets is not None:
        owners = sets.owners
        twice = (sets.indices[1:] == sets.indices[:-1]) & (owners[1:] == owners[:-1])
        odd = np.unique(owners[1:][twice])[:MAX_FAULTS].tolist()
        refuse(Fault(id, "not", _CONTRADICTION) for id in after.ids.taken(odd))


def _refuse_mixture(before: list[Label], after: list[Label], changes: Changes) -> None:
    """Raise InvalidDocuments if strings and integers would be mixed; it names the documents with new labels of the
    other type.
    """
    if len(set(map(type, after))) > 1:
        given = [
            (id, label) for each in (changes.labels, changes.excluded) for id in each for label in labels_in(each[id])
        ]
        first = next(type(label) for label in (*before, *(label for _, label in given)) if label in after)
        odd = dict.fromkeys(id for id, label in given if type(label) is not first)
        refuse(Fault(id, "label", "labels must be all strings or all integers") for id in odd)


def _positions(ids: Ids, changes: Changes) -> dict[str, int]:
    """Positions of the documents that change; raises InvalidDocuments naming ids that are unknown."""
    index, found = IdIndex(ids), dict[str, int]()
    named = chain(changes.labels, (id for id in (*changes.drawn, *changes.excluded) if id not in changes.labels))
    while wanted := list(islice(named, _SOUGHT)):
        found |= index.find(wanted)
        refuse(Fault(id, "id", "there is no such document") for id in wanted if id not in found)
    return found
