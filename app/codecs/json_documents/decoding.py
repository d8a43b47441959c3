"""Decoding of documents: which fields hold text, label and id, and what becomes of fields that are unknown."""

from functools import lru_cache
from typing import Any, cast

import msgspec

from app.codecs.base import COLUMNS, Column, Reading
from app.codecs.json.text import InvalidJson, JsonText, decode_json
from app.codecs.json_documents.document import Document, json_fault
from app.errors import InvalidRequest
from core.errors import Fault

Other = dict[str, Any]


class DocumentDecoder:
    """Decodes documents alone, in lines and in arrays. Each method raises InvalidJson.

    Raises InvalidRequest where two fields would have one name.
    """

    def __init__(self, reading: Reading) -> None:
        extra = reading.extra
        kind = _document(tuple(reading.columns.items()), extra in (None, "refuse"))
        self._names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
        self._one, self._array = msgspec.json.Decoder(kind), msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        self._others = (msgspec.json.Decoder(Other), msgspec.json.Decoder(list[Other])) if extra == "keep" else None

    def one(self, text: JsonText) -> Document:
        """The document of a text."""
        found = [decode_json(self._one.decode, text)]
        if self._others:
            self._keep(found, [decode_json(self._others[0].decode, text)])
        return found[0]

    def lines(self, text: JsonText) -> list[Document]:
        """The documents of lines; a line without anything has none."""
        found = decode_json(self._one.decode_lines, text)
        if self._others:
            self._keep(found, decode_json(self._others[0].decode_lines, text))
        return found

    def array(self, text: JsonText) -> list[Document]:
        """The documents of an array."""
        found = decode_json(self._array.decode, text)
        if self._others:
            self._keep(found, decode_json(self._others[1].decode, text))
        return found

    def fault(self, error: InvalidJson, text: bytes | bytearray, position: int | None = None) -> Fault:
        """What is wrong with a document, whose text this is."""
        return json_fault(error, text, self._names, position)

    def _keep(self, documents: list[Document], others: list[Other]) -> None:
        """Add the unknown fields to the extra ones.

        A name that both have is of the extra field, which says so itself.
        """
        for document, fields in zip(documents, others, strict=False):
            unknown = {name: value for name, value in fields.items() if name not in self._names}
            if unknown:
                document.fields = unknown | (document.fields or {})


@lru_cache(maxsize=64)
def _document(columns: tuple[tuple[Column, str], ...], strict: bool) -> type[Document]:
    """What documents are decoded as: text, label and id are the fields that the request names, by default these.

    ``strict`` refuses unknown ones.
    """
    if not columns and strict:
        return Document
    # an empty name says that no field holds it, so it gets one that none has
    rename: dict[str, str] = {column: name or f"\uffff{column}" for column, name in columns}
    names = [rename.get(name, name) for name in Document.__struct_fields__]
    twice = next((column for column in COLUMNS if column in rename and names.count(rename[column]) > 1), None)
    if twice:
        raise InvalidRequest(
            twice, f"the field {rename[twice]!r} has a meaning of its own in a document; it cannot be the {twice}"
        )
    fields = [(each.name, each.type, each.default) for each in msgspec.structs.fields(Document)]
    # names of inherited fields stay as they are, so all fields come anew
    try:
        kind = msgspec.defstruct(
            "Document", fields, bases=(Document,), rename=rename, forbid_unknown_fields=strict, gc=False
        )
    except ValueError:
        raise InvalidRequest(
            columns[0][0], "the name of a field has no quotes, backslashes or control characters here"
        ) from None
    return cast(type[Document], kind)
