"""Pages of documents: which documents a query means, in its order, from its cursor on; documents as rows of a table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.codecs.json.text import InvalidJson, decode_json
from app.codecs.tables.cells import VOTE, check_separator, joined
from app.datasets.documents import stored_documents
from app.datasets.shares import Part, claim, mixed, part_of
from app.documents.schemas import MAX_PAGE, DocumentQuery
from app.documents.search import search
from app.errors import InvalidRequest
from app.http.answers import Column, Row, columns_beside
from app.predictions.scoring import DatasetScores, scores_at, scores_of_dataset
from app.predictions.service import Loaded
from app.services.wiring import Services
from core.documents.drawn import Draw
from core.documents.kinds import field_of
from core.documents.label_sets import APPLIES, LabelSets
from storage.records import Dataset, Label, Version
from storage.repositories.datasets import Answer, Documents, StoredFields

_MOST_BYTES = 8 << 20
"""Bytes of the documents of a page, or nonzeros; a single document may have more."""

_NOTHING = Answer(None, Draw.UNKNOWN, frozenset(), {}, {}, flagged=False)
"""The answer about a document of which nobody said anything."""

Positions = NDArray[np.int64]
Page = dict[str, Any]


class _Opened(NamedTuple):
    """A dataset with the answers of people and the predictions of a model."""

    id: str
    documents: Documents
    extra: StoredFields
    part: Part
    """What the person whose share it is has to label; without one all documents and answers."""
    loaded: Loaded | None
    scores: DatasetScores | None
    """Predictions of all documents, if the query needs them."""


def check(query: DocumentQuery) -> None:
    """Raises InvalidRequest for parts of a query that do not fit together."""
    if query.needs_scores and query.model is None:
        raise InvalidRequest(
            "model",
            "is needed: predicted, mistaken, at_least, at_most and these orders are about what a model predicts",
        )
    if query.at_least > query.at_most:
        raise InvalidRequest("at_least", "is more than at_most")
    if query.ids is not None and (query.cursor or query.contains or query.order != "position" or query.claim):
        raise InvalidRequest("ids", "name the documents: they go with neither cursor, contains, order nor claim")
    if query.claim is not None and query.by is None:
        raise InvalidRequest("by", "is needed: a claim is that of a person")


def pages(
    services: Services, dataset: str, query: DocumentQuery, loaded: Loaded | None, separator: str | None
) -> Iterator[Page]:
    """The page of a query and the following ones, each read when it is asked for; several labels are to be written with
    the separator between them, if one is given.

    Raises InvalidRequest, InvalidDocuments, NotFound.
    """
    part = part_of(services, dataset, query.share, query.by if query.claim is not None else None)
    documents = services.datasets.open_annotated(dataset, part.answers)
    scores = None
    if loaded is not None and query.needs_scores:
        scores = scores_of_dataset(services, loaded.version, loaded.model, dataset, documents)
        if scores.probabilities is None and query.bounded:
            raise InvalidRequest("at_least", "is a probability, and the model is not calibrated: auto calibrates")
    opened = _Opened(dataset, documents, services.datasets.fields(dataset), part, loaded, scores)
    if separator is not None:
        told = [] if loaded is None or not loaded.model.several else loaded.version.classes
        check_separator([*(documents.classes if documents.label_sets is not None else []), *told], separator)
    if query.ids is not None:
        named = _named(services, dataset, query.ids)
        yield _page(opened, named, None, len(named))
        return
    keys = _sort_keys(opened, query)
    candidates = _candidates(opened, query)
    cursor = None if query.cursor is None else int(query.cursor)
    if cursor is not None and cursor >= len(opened.documents.class_indices):
        raise InvalidRequest("cursor", "must be the next of an earlier page")
    # how an unlabeled document was drawn decides whether its later label is evidence of the class fractions; the order
    # of the documents says nothing about their labels
    draw = Draw.RANDOM if query.order == "random" and query.label is None else None
    if query.order == "least_certain" or query.at_most < 1:
        draw = Draw.CHOSEN
    if query.contains or query.predicted is not None or query.order == "likeliest" or query.at_least > 0:
        draw = Draw.FOUND
    while True:
        found, cursor, total = _next(opened, query, candidates, keys, cursor)
        lost = claim(services, dataset, opened.part, found.tolist(), query.by, query.claim or 0)
        found = found[~np.isin(found, [*lost])]
        unlabeled = found[~opened.documents.labeled[found]]
        if draw is not None and len(unlabeled):
            services.datasets.record_suggested(opened.id, dict.fromkeys(unlabeled.tolist(), draw))
        yield _page(opened, found, cursor, total)
        if cursor is None:
            return


def _where(opened: _Opened, wanted: Callable[[Answer], bool]) -> NDArray[np.bool_]:
    """Which documents people say something of that is wanted, shape (n_documents,)."""
    found = np.zeros(len(opened.documents.class_indices), bool)
    found[[position for position, answer in opened.part.answers.items() if wanted(answer)]] = True
    return found


def _candidates(opened: _Opened, query: DocumentQuery) -> Positions:
    """Ascending positions of the documents that have the label, the state and the prediction of a query."""
    documents, scores = opened.documents, opened.scores
    labeled = documents.labeled
    wanted = ~opened.part.of_others
    if query.state is not None:
        left_out = ~labeled & _where(opened, lambda answer: answer.skipped)
        states = {"labeled": labeled, "unlabeled": ~labeled, "skipped": left_out, "open": ~labeled & ~left_out}
        wanted &= states[query.state]
    if query.label is not None:
        wanted &= documents.has(_class_index("label", query.label, documents.classes))
    if query.by is not None and query.claim is None:
        by = query.by
        wanted &= _where(opened, lambda answer: by in answer.votes)
    if query.disagreement:
        wanted &= _where(opened, lambda answer: answer.disputed)
    if query.flagged:
        wanted &= _where(opened, lambda answer: answer.flagged)
    if scores is not None and opened.loaded is not None:
        if query.predicted is not None:
            place = _class_index("predicted", query.predicted, opened.loaded.version.classes)
            wanted &= np.bincount(scores.owners[scores.given == place], minlength=len(wanted)) > 0
        if query.mistaken:
            wanted &= labeled & _differing(documents, scores, opened.loaded.version.classes)
        if scores.probabilities is not None:
            wanted &= (scores.probabilities >= query.at_least) & (scores.probabilities <= query.at_most)
    return np.flatnonzero(wanted)


def _differing(documents: Documents, scores: DatasetScores, classes: Sequence[Label]) -> NDArray[np.bool_]:
    """Which documents have other labels than these of the classes of a model, shape (n_documents,)."""
    known = (documents.label_sets or LabelSets.of_single(documents.class_indices, documents.classes)).among(classes)
    applies, found = known.values == APPLIES, np.zeros(known.n_rows, bool)
    # a label that the model does not know has the place 0, behind which the classes follow
    width = len(classes) + 1
    told = known.owners[applies] * width + known.indices[applies] + 1
    found[np.setxor1d(told, scores.owners * width + scores.given + 1) // width] = True
    return found


def _class_index(field: str, label: str, classes: Any) -> int:
    names = [str(each) for each in classes]
    if label not in names:
        raise InvalidRequest(field, f"there is no such label; there are {', '.join(names[:20]) or 'none'}")
    return names.index(label)


def _sort_keys(opened: _Opened, query: DocumentQuery) -> NDArray[np.uint64] | None:
    """Sort keys of documents, all different, shape (n_documents,); None for the order of positions."""
    positions = np.arange(len(opened.documents.class_indices), dtype=np.uint64)
    match query.order:
        case "position":
            return None
        case "random":
            keys = mixed(positions + np.uint64(query.seed << 32)) >> np.uint64(33) << np.uint64(32)
            keys |= positions + np.uint64(1 << 63)
            # all get what everybody answers first, in one order
            keys[opened.part.overlap] = positions[: len(opened.part.overlap)]
            return keys
        case _:
            assert opened.scores is not None
            # bits of numbers that are not negative ascend with them
            bits = np.ascontiguousarray(opened.scores.certainty, np.float32).view(np.uint32).astype(np.uint64)
            if query.order == "likeliest":
                bits = np.uint64(0xFFFFFFFF) - bits
            return (bits << np.uint64(32)) | positions


def _next(
    opened: _Opened, query: DocumentQuery, candidates: Positions, keys: NDArray[np.uint64] | None, cursor: int | None
) -> tuple[Positions, int | None, int | None]:
    """The documents after the cursor; the next cursor, which is the last document that was looked at, or None if no
    candidate is left; and how many there are on all pages, None where that is not known: after the first page, and of a
    search that has not read all documents.
    """
    if keys is None:
        left = candidates if cursor is None else candidates[np.searchsorted(candidates, cursor, "right") :]
    else:
        left = candidates if cursor is None else candidates[keys[candidates] > keys[cursor]]
        if not query.contains and query.limit + 1 < len(left):
            # a page and one document behind it: the others need no order
            left = left[np.argpartition(keys[left], query.limit)[: query.limit + 1]]
        left = left[np.argsort(keys[left], kind="stable")]
    found, passed, total = left[: query.limit], min(query.limit, len(left)), len(candidates) if cursor is None else None
    if query.contains:
        hits = search(opened.documents.rows, left, query.contains, len(left) if cursor is None else query.limit)
        found, passed = hits.positions[: query.limit], hits.passed
        total = len(hits.positions) if cursor is None and passed == len(left) else None
        if len(hits.positions) > len(found):
            passed = int(np.flatnonzero(left == found[-1])[0]) + 1
    # as many as a page has room for, at least one
    indptr = opened.documents.rows.indptr
    sizes = np.cumsum(indptr[found + 1] - indptr[found] + opened.extra.lengths(found))
    short = max(int(np.searchsorted(sizes, _MOST_BYTES, "right")), min(1, len(found)))
    if short < len(found):
        return found[:short], int(found[short - 1]), total
    return found, int(left[passed - 1]) if passed < len(left) else None, total


def _named(services: Services, dataset: str, ids: str) -> Positions:
    """Positions of the documents with these ids, which are a list of JSON, or separated by commas."""
    names = ids.split(",")
    if ids.startswith('["'):
        try:
            names = decode_json(msgspec.json.Decoder(list[str]).decode, ids.encode())
        except InvalidJson as error:
            raise InvalidRequest("ids", error.detail) from None
    if len(names) > MAX_PAGE:
        raise InvalidRequest("ids", f"are more than {MAX_PAGE}")
    found = services.datasets.positions(dataset, set(names))
    missing = [name for name in names if name not in found]
    if missing:
        raise InvalidRequest("ids", f"there is no document {missing[0]!r} in the dataset")
    return np.array([found[name] for name in dict.fromkeys(names)], np.int64)


def _page(opened: _Opened, found: Positions, cursor: int | None, total: int | None) -> Page:
    documents = stored_documents(opened.documents, found, opened.extra)
    for position, fields in documents.items():
        labels = fields.get("labels")
        label = fields["label"] if labels is None else tuple(labels)
        answer = opened.part.answers.get(position, _NOTHING)
        givers = [person for person, vote in answer.votes.items() if vote == label]
        fields |= {
            "skipped": answer.skipped and label is None,
            "by": ", ".join(givers) if givers else None,
            "people": answer.votes,
            "notes": answer.notes,
            "flagged": answer.flagged,
        }
    version = None if opened.loaded is None else opened.loaded.version
    if opened.loaded is not None:
        ascending, scores, classes = np.sort(found), opened.scores, opened.loaded.version.classes
        if scores is None:
            scores, places = scores_at(opened.loaded.model, opened.documents, ascending), range(len(ascending))
        else:
            places = ascending.tolist()
        for place, position, given in zip(places, ascending.tolist(), scores.sets(places), strict=True):
            documents[position] |= {
                "predicted": classes[int(scores.predicted[place])],
                "probability": None if scores.probabilities is None else float(scores.probabilities[place]),
                "score": float(scores.scores[place]),
            }
            if opened.loaded.model.several:
                documents[position]["predicted_labels"] = [classes[label] for label in given]
    return {
        "documents": list(documents.values()),
        "next": None if cursor is None else str(cursor),
        "total": total,
        "model": version and version.name,
        "version": version and version.number,
    }


_CONTENTS = {"text": ["text"], "features": ["features"], "vectors": ["indices", "values"]}
"""Fields of the documents of one kind; numbers stand in them as JSON."""


def document_columns(dataset: Dataset, version: Version | None) -> list[Column]:
    """The columns; a version adds the columns of its prediction."""
    fields = {
        name: None
        for part in dataset.parts
        for name in (_CONTENTS["vectors"] if part.name == "indices" else [field_of(part.name)])
    }
    contents = [Column(name, "text") for name in (fields or _CONTENTS[dataset.kind])]
    kind = _kind([label for label, _ in dataset.classes])
    labels = [Column("label", kind)]
    if dataset.label_kind == "several":
        labels = [_lists(name, kind) for name in ("labels", "not")]
    weight = [Column("weight", "number")] if "weights" in dataset.files else []
    own = [
        Column("id", "text"),
        *contents,
        *labels,
        *weight,
        *(Column(f"{VOTE}{voter}", "text") for voter in dataset.voters),
        Column("by", "text"),
        Column("drawn", "text"),
        Column("skipped", "truth"),
        Column("people", "text"),
        Column("notes", "text"),
        Column("flagged", "truth"),
    ]
    if version is not None:
        kind = _kind(version.classes)
        own += [Column("predicted", kind), Column("probability", "number"), Column("score", "number")]
        own += [_lists("predicted_labels", kind)] * (version.label_kind == "several")
    return columns_beside(own, dataset.fields)


def document_rows(
    dataset: Dataset, columns: Sequence[Column], pages: Iterable[Page], separator: str | None
) -> Iterator[Row]:
    """The rows of all pages; lists of labels are texts with the separator between them, if one is given."""
    own = [column.name for column in columns[: len(columns) - len(dataset.fields)]]
    for page in pages:
        for document in page["documents"]:
            # a class that begins like an object of JSON is written as one
            votes = {
                f"{VOTE}{voter}": {vote: 1.0} if isinstance(vote, str) and vote.startswith("{") else vote
                for voter, vote in document.get("votes", {}).items()
            }
            cells = {**document, **votes, "people": document["people"] or None, "notes": document["notes"] or None}
            if separator is not None:
                lists = {name: document.get(name) for name in ("labels", "predicted_labels")}
                cells |= {name: joined(labels, separator) for name, labels in lists.items() if labels is not None}
                cells["not"] = separator.join(map(str, document.get("not", []))) or None
            yield (
                *(cells.get(name) for name in own),
                *(document.get("fields", {}).get(name) for name in dataset.fields),
            )


def _lists(name: str, kind: Literal["integer", "text"]) -> Column:
    return Column(name, "integers" if kind == "integer" else "texts")


def _kind(labels: Sequence[Label]) -> Literal["integer", "text"]:
    return "integer" if labels and isinstance(labels[0], int) else "text"
