"""The errors for documents that cannot be read: they name the document, by its id where that can be found."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from app.codecs.base import MAX_FAULTS
from app.codecs.json.text import InvalidJson, decode_json
from core.errors import Fault, InvalidDocuments
from storage.errors import LimitExceeded
from storage.records import MAX_TEXT

_FIRST_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*"([^"\\]{1,%d}+)"' % MAX_TEXT)
EXTRA_REMEDY = "?extra=keep keeps what is unknown beside the documents, ?extra=ignore leaves it out"
_TOO_LONG = "send it in parts, or have HALFMOON_MAX_DOCUMENT_BYTES raised"


def invalid_documents(faults: Sequence[Fault]) -> InvalidDocuments:
    """The error for documents with these faults."""
    first = faults[0]
    where = f"document {first.document}" if first.document else "the body"
    return InvalidDocuments(f"{where}: {first.field + ': ' if first.field else ''}{first.detail}", faults[:MAX_FAULTS])


def refuse(faults: Iterable[Fault]) -> None:
    """Raises InvalidDocuments with the first of these faults, if there are some."""
    found = list(islice(faults, MAX_FAULTS))
    if found:
        raise invalid_documents(found)


def refused(detail: str, field: str = "") -> InvalidDocuments:
    """The error for a body that cannot be read as a whole."""
    return invalid_documents([Fault("", field, detail)])


def document_too_long(text: bytes | bytearray, where: str, most: int) -> LimitExceeded:
    """The error for a document of more than ``most`` bytes; ``text`` is its beginning."""
    name = id_in(text)
    return LimitExceeded(
        f"bytes in document {name}, {where}" if name else f"bytes in the document {where}", most, _TOO_LONG
    )


class _Identified(Struct):
    id: Any = None


_identified = msgspec.json.Decoder(_Identified)


def id_in(text: bytes | bytearray) -> str:
    """The id in the JSON of a document; in malformed JSON it is found if it is the first field.

    Empty if there is none.
    """
    try:
        found = decode_json(_identified.decode, text).id
    except InvalidJson:
        first = _FIRST_ID.match(text)
        return first[1].decode(errors="replace") if first else ""
    return str(found)[:MAX_TEXT] if isinstance(found, str | int) and not isinstance(found, bool) else ""
