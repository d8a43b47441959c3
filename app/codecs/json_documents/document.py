"""The JSON form of a document: its fields, their names in a request, and its faults."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from app.codecs.base import COLUMNS, EXTRA_REMEDY, VECTOR_NAME, Column, Reading
from app.codecs.json.text import InvalidJson, JsonText, decode_json, decode_or_none, id_in, known_fields
from app.errors import InvalidRequest
from core.documents.drawn import Draw
from core.documents.kinds import DENSE
from core.documents.rows import MAX_FEATURES
from core.errors import Fault
from storage.records import MAX_TEXT

Index = Annotated[int, Meta(ge=0, lt=MAX_FEATURES)]
ShortText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
PartName = Annotated[str, Meta(pattern=VECTOR_NAME.pattern)]
"""Name of one of several vectors of a document."""
DrawWord = Literal["unknown", "random", "chosen", "found"]
"""How the label of a document was come by: the words of core.documents.drawn.Draw."""
PARTS = ("text", "features", "indices", DENSE, "vectors")
"""Fields of a document that hold its parts, in the order in which parts are stored."""

_EMPTY, _UNLABELED = "must have at least 1 character", "; an unlabeled document has none, or null"
_BEGINNING = 200
_WORDS = re.compile(rb"(?!true|false|null|NaN|Infinity)[^\W\d]|[+<#]|\d+ \d+:")
_SECOND = re.compile(rb'"[^"\\]*"\s*:[^{}]*\}\s*\{\s*"')
_DRAWS = f"; it is one of {', '.join(draw.word for draw in Draw)}"
_PART_NAMES = "; the name of a vector has 1 to 64 letters, digits, _ or -"
Other = dict[str, Any]


class Document(Struct, forbid_unknown_fields=True, gc=False, rename={"excluded": "not"}):
    """One document of a JSON or NDJSON body.

    It has at least one of ``text``, ``features``, ``indices``, ``vector`` and ``vectors``: its parts.
    """

    indices: list[Index] | None = None
    values: list[float] | None = None
    features: msgspec.Raw = msgspec.Raw()
    """JSON object that ``app.codecs.json_documents.batches`` parses, for a whole batch at once."""
    text: str | None = None
    vector: list[float] | None = None
    vectors: dict[PartName, list[float] | None] | None = None
    label: ShortText | Integer | float | None = None
    """A number with a fraction is refused later; 3.0 is 3, as tables of numbers write it that have gaps."""
    id: ShortText | Integer | None = None
    labels: list[ShortText | Integer] | None = None
    """All labels that apply, of a document that may have several."""
    excluded: list[ShortText | Integer] | None = None
    """Labels that do not apply."""
    votes: dict[str, ShortText | Integer | dict[str, float] | None] | None = None
    """Votes by voter: a class, or probabilities by class; null of one who abstains."""
    weight: float | None = None
    drawn: DrawWord | None = None
    fields: dict[ShortText, Any] | None = None
    """Extra fields by name, which are kept beside the document and not learned from."""


def shape_detail(text: bytes | bytearray) -> str:
    """Fault of a line that is no object, by its beginning and end; empty if it may be one."""
    line = bytes(text[:_BEGINNING]).strip()
    if line.startswith(b"["):
        return (
            'an array is not a document; send {"documents": [...]} as application/json, or each document in a '
            "line of its own"
        )
    if line.startswith(b'"'):
        return 'a text alone is not a document; write {"text": "..."}'
    if line in (b"{", b"}") or (line.startswith(b'"') and line.endswith((b",", b'"'))):
        return 'a document is a line here; write each in one line, or send {"documents": [...]} as application/json'
    if line.startswith(b"{'"):
        return "names and texts stand in double quotes in JSON, as json.dumps of Python writes them"
    if _SECOND.search(bytes(text)):
        return (
            "a line has one document, and here a second one follows; curl keeps line ends with --data-binary, "
            "and not with -d"
        )
    if bytes(text).rstrip().endswith(b"},"):
        return "the comma after the document is too much: a document ends with its line"
    if _WORDS.match(line):
        return "this is not JSON; a table is sent as text/csv, lines of label index:value as text/x-svmlight"
    return ""


def _advice(given: str, detail: str, names: Mapping[str, str]) -> str:
    field = names.get(given, given)
    if field == "label" and detail == _EMPTY:
        return _UNLABELED
    if field == "label" and detail.endswith("not an array"):
        return "; a document has one label here; several are labels"
    if field == "labels" and detail.startswith("must be an array"):
        return "; one label goes in label, or alone in an array"
    if field in ("label", "id") and detail.startswith("must "):
        return f"; {'a label' if field == 'label' else 'an id'} is a text or an integer"
    if field == "vectors" and "characters" in detail:
        return _PART_NAMES
    unknown = known_fields(detail, names)
    return _DRAWS if field == "drawn" else unknown and f"{unknown}; {EXTRA_REMEDY}"


class DocumentDecoder:
    """Decodes documents alone, in lines and in arrays; of many at once it says no more than that one is not valid.

    Raises InvalidRequest where two fields would have one name.
    """

    def __init__(self, reading: Reading) -> None:
        extra = reading.extra
        self._names, self._one, self._array = _decoders(tuple(reading.columns.items()), extra in (None, "refuse"))
        self._others = (msgspec.json.Decoder(Other), msgspec.json.Decoder(list[Other])) if extra == "keep" else None

    def one(self, text: JsonText) -> Document:
        """The document of a text; raises InvalidJson."""
        found = [decode_json(self._one.decode, text)]
        if self._others:
            self._keep(found, [decode_json(self._others[0].decode, text)])
        return found[0]

    def lines(self, text: JsonText) -> list[Document]:
        """The documents of lines, none if one is not valid; a line without anything has none."""
        return self._many(self._one.decode_lines, self._others and self._others[0].decode_lines, text)

    def array(self, text: JsonText) -> list[Document]:
        """The documents of an array, none if one is not valid."""
        return self._many(self._array.decode, self._others and self._others[1].decode, text)

    def fault(self, error: InvalidJson, text: bytes | bytearray, position: int | None = None) -> Fault:
        """Fault of the document of this text, which has its id where that can be read, else its position, if known."""
        field = re.split(r"[.\[]", error.field[:MAX_TEXT])[0]
        detail = error.detail if field else shape_detail(text) or error.detail
        return Fault(
            id_in(text) or ("" if position is None else position),
            field,
            detail + _advice(field, error.detail, self._names),
        )

    def _many(
        self,
        decode: Callable[[JsonText], list[Document]],
        decode_others: Callable[[JsonText], list[Other]] | None,
        text: JsonText,
    ) -> list[Document]:
        found = decode_or_none(decode, text) or []
        if decode_others and found:
            others = decode_or_none(decode_others, text)
            if others is None:
                return []
            self._keep(found, others)
        return found

    def _keep(self, documents: list[Document], others: list[Other]) -> None:
        """Add the unknown fields to the extra ones.

        A name that both have is of the extra field, which says so itself.
        """
        for document, fields in zip(documents, others, strict=False):
            unknown = {name: value for name, value in fields.items() if name not in self._names}
            if unknown:
                document.fields = unknown | (document.fields or {})


@lru_cache(maxsize=64)
def _decoders(
    columns: tuple[tuple[Column, str], ...], strict: bool
) -> tuple[Mapping[str, str], msgspec.json.Decoder[Document], msgspec.json.Decoder[list[Document]]]:
    """The fields of a document by their names in the request, and the decoders of one document and of an array.

    Text, label, id and so on are the fields that the request names, by default these. ``strict`` refuses unknown ones.
    To make the decoders takes longer than to decode a document.
    """
    # an empty name says that no field holds it, so it gets one that none has
    given: dict[str, str] = {column: name or f"\uffff{column}" for column, name in columns}
    fields = zip(Document.__struct_fields__, Document.__struct_encode_fields__, strict=True)
    rename = {field: given.get(name, name) for field, name in fields}
    names = list(rename.values())
    twice = next((column for column in COLUMNS if column in given and names.count(given[column]) > 1), None)
    if twice:
        raise InvalidRequest(
            twice, f"the field {given[twice]!r} has a meaning of its own in a document; it cannot be the {twice}"
        )
    typed = [(each.name, each.type, each.default) for each in msgspec.structs.fields(Document)]
    # names of inherited fields stay as they are, so all fields come anew
    try:
        kind: Any = msgspec.defstruct(
            "Document", typed, bases=(Document,), rename=rename, forbid_unknown_fields=strict, gc=False
        )
    except ValueError:
        raise InvalidRequest(
            columns[0][0], "the name of a field has no quotes, backslashes or control characters here"
        ) from None
    return dict(zip(names, rename, strict=True)), msgspec.json.Decoder(kind), msgspec.json.Decoder(list[kind])
