"""Decoding of documents, with what becomes of fields that are unknown."""

from typing import Any

import msgspec

from app.codecs.base import Extra
from app.codecs.json.text import JsonText, decode_json
from app.codecs.json_documents.document import Document

Other = dict[str, Any]
_KNOWN = frozenset(Document.__struct_fields__)


class _AnyDocument(Document, forbid_unknown_fields=False, gc=False):
    """A document with other fields, which are skipped."""


class DocumentDecoder:
    """Decodes documents alone, in lines and in arrays. Each method raises InvalidJson."""

    def __init__(self, extra: Extra | None) -> None:
        kind = Document if extra in (None, "refuse") else _AnyDocument
        self._one, self._array = msgspec.json.Decoder(kind), msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        self._others = (msgspec.json.Decoder(Other), msgspec.json.Decoder(list[Other])) if extra == "keep" else None

    def one(self, text: JsonText) -> Document:
        """The document of a text."""
        found = decode_json(self._one.decode, text)
        if self._others:
            _keep(found, decode_json(self._others[0].decode, text))
        return found

    def lines(self, text: JsonText) -> list[Document]:
        """The documents of lines; a line without anything has none."""
        return self._kept(decode_json(self._one.decode_lines, text), self._others and decode_json(self._others[0].decode_lines, text))

    def array(self, text: JsonText) -> list[Document]:
        """The documents of an array."""
        return self._kept(decode_json(self._array.decode, text), self._others and decode_json(self._others[1].decode, text))

    def _kept(self, documents: list[Document], others: list[Other] | None) -> list[Document]:
        for document, other in zip(documents, others or (), strict=False):
            _keep(document, other)
        return documents


def _keep(document: Document, fields: Other) -> None:
    """Add the unknown fields to the extra ones. A name that both have is of the extra field, which says so itself."""
    unknown = {name: value for name, value in fields.items() if name not in _KNOWN}
    if unknown:
        document.fields = unknown | (document.fields or {})
