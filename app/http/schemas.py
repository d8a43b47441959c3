"""What all domains have in the contract: the base class of schemas, and those that every domain sends; lists, their
pages and the damaged records that they leave out; and fragments of OpenAPI beside the signatures of routes.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, get_args

import msgspec
from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from app.codecs.base import MAX_SEPARATOR, Column, Extra
from app.codecs.dispatch import FORMATS
from app.codecs.json_documents.document import PARTS
from app.errors import PROBLEM
from core.documents.drawn import Draw
from core.documents.kinds import FIELDS, PartKind
from core.errors import MAX_FAULTS
from storage import names
from storage.records import MAX_TEXT
from storage.store.keys import Damage


class Schema(BaseModel):
    """Base class of the objects in the contract. The suffix Out of a name is dropped there: JobOut is Job."""

    # a gateway starts sooner where the first who needs a validator builds it
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, ser_json_inf_nan="null", defer_build=True)


class RecordSchema(Schema):
    """Base class of the answers that have the fields of a record. All of them are sent, whatever the record lacks."""

    model_config = ConfigDict(extra="ignore", json_schema_serialization_defaults_required=True)


class OfVersion(Schema):
    """Base class of what one version of a model says, or what is said of it."""

    model: str
    version: int


class Page(Schema):
    """A page of a list."""

    next_cursor: str | None
    """Value of ``cursor`` for the next page; null on the last page."""
    warnings: list[str] = Field(
        examples=[
            ["1 damaged record is left out: datasets/ds-06h0/manifest.json; `halfmoon doctor` says what is wrong"]
        ]
    )
    """What the list leaves out, because it is damaged."""


class FaultOut(Schema):
    """A fault of one document or field."""

    document: str
    """Id of the document, or its position from 0; empty if the fault is not of one document."""
    field: str
    detail: str
    place: str = ""
    """The document in words, as a person counts: `document number 2`, or `document 'd2'` by its id."""


class ProblemOut(Schema):
    """A problem (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FaultOut] = Field(default=[], max_length=MAX_FAULTS)


PageSize = Annotated[int, Query(ge=1, le=500, description="Most entries of a page.")]
Cursor = Annotated[str | None, Query(pattern=f"^{names.NAME}$", description="`next_cursor` of the page before.")]
"""Cursor of a list: the id or name that ends the page before."""
Position = Annotated[str | None, Query(pattern="^(0|[1-9][0-9]{0,9})$", description="`next` of the page before.")]
"""Cursor of documents: the position that ends the page before."""
Separator = Annotated[
    str, Query(min_length=1, max_length=MAX_SEPARATOR, description="In CSV: text between several labels.")
]
_MOST_NAMED = 10


def left_out(damage: Damage, pattern: str) -> list[str]:
    """A warning about damaged records with keys of this pattern, as far as this process knows them; none if all can be
    read.
    """
    keys = sorted(key for key in damage.found if re.fullmatch(pattern, key))
    if not keys:
        return []
    count = "1 damaged record is" if len(keys) == 1 else f"{len(keys)} damaged records are"
    more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
    return [f"{count} left out: {', '.join(keys[:_MOST_NAMED])}{more}; `halfmoon doctor` says what is wrong"]


_ERRORS = {
    401: ("Unauthenticated", "No key was sent, or no valid one"),
    403: ("Forbidden", "The key is not for this; without keys, a page of another site asks"),
    404: ("NotFound", "There is no such thing"),
    406: ("NotAcceptable", "The answer is not available in a media type of Accept"),
    408: ("TooSlow", "The body did not come in time"),
    409: ("Conflict", "The current state does not allow it"),
    413: ("TooLarge", "More than this installation accepts"),
    415: ("UnsupportedMediaType", "The media type or the encoding of the body is not supported"),
    421: ("Misdirected", "The Host is not a name of this gateway, where no key is required"),
    422: ("Invalid", "The request or its documents are not valid"),
    429: ("TooMany", "Too much at a time; try again after Retry-After"),
    503: ("Unavailable", "A part of the service does not answer; try again"),
    507: ("StoreFull", "The store has no room left"),
}
_V2_INVALID = 400
"""The status of the Open Inference Protocol in place of 422."""
_TRY_AGAIN = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}

NAME: dict[str, Any] = {"type": "string", "pattern": f"^{names.NAME}$"}
LABEL: dict[str, Any] = {
    "anyOf": [{"type": "string", "minLength": 1, "maxLength": MAX_TEXT}, {"type": "integer"}, {"type": "null"}]
}
_SOME_LABELS: dict[str, Any] = {
    "type": "array",
    "uniqueItems": True,
    "items": {"anyOf": LABEL["anyOf"][:2]},
}
LABELS: dict[str, Any] = {
    "type": "object",
    "description": "By document id, of several a list; null removes a label. Required, unless not or label_kind is "
    "given.",
    "additionalProperties": {"anyOf": [*LABEL["anyOf"], _SOME_LABELS]},
}
EXCLUDED: dict[str, Any] = {
    "type": "object",
    "description": "Lists of labels that do not apply, by document id.",
    "additionalProperties": _SOME_LABELS,
}
DRAW: dict[str, Any] = {"type": "string", "enum": [draw.word for draw in Draw]}
DRAWS: dict[str, Any] = {
    "description": "How labels were come by, by document id. A new label of a document that the service has "
    "suggested is chosen or random by itself.",
    "anyOf": [{"type": "object", "additionalProperties": DRAW}, {"type": "null"}],
    "default": None,
}
_COMMON_FIELDS = {
    "id": {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_TEXT,
        "description": "By default the position, as a string.",
    },
    "label": {"description": "Absent or null: unlabeled.", **LABEL},
    "labels": {
        "description": "In place of label, all labels that apply, where documents may have several; an empty list: "
        "none does. Absent or null: not known.",
        "anyOf": [_SOME_LABELS, {"type": "null"}],
    },
    "not": {"description": "Labels that are known not to apply.", "anyOf": [_SOME_LABELS, {"type": "null"}]},
    "votes": {
        "description": "Votes of rules, models and people, by voter: a class, or probabilities by class. A voter who "
        "is absent, or null, abstains.",
        "anyOf": [
            {
                "type": "object",
                "propertyNames": {"minLength": 1, "maxLength": MAX_TEXT},
                "additionalProperties": {
                    "anyOf": [
                        *LABEL["anyOf"],
                        {
                            "type": "object",
                            "minProperties": 1,
                            "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
                        },
                    ]
                },
            },
            {"type": "null"},
        ],
    },
    "weight": {
        "description": "Weight of its label, by default 1.",
        "anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}],
    },
    "drawn": {
        "description": "How the label was come by, only beside one: random (from all documents), chosen (as by a "
        "model), found (as by words of its "
        "class). Absent or null: unknown.",
        "anyOf": [DRAW, {"type": "null"}],
    },
    "fields": {
        "description": "Extra fields by name.",
        "anyOf": [{"$ref": "#/components/schemas/ExtraFields"}, {"type": "null"}],
    },
}
_NUMBERS = {"type": "array", "minItems": 1, "items": {"type": "number"}}
_CONTENT_FIELDS: dict[PartKind, dict[str, Any]] = {
    "text": {"text": {"type": "string", "description": "Any text; the options of a job say how it becomes terms."}},
    "features": {
        "features": {
            "type": "object",
            "propertyNames": {"minLength": 1, "maxLength": MAX_TEXT},
            "additionalProperties": {"type": "number"},
            "description": "Values by name, each once.",
        }
    },
    "vectors": {
        "indices": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
            "description": "0-based, each once.",
        },
        "values": {"type": "array", "items": {"type": "number"}, "description": "As many as indices; left out: all 1."},
    },
}
_DENSE_FIELDS: dict[str, Any] = {
    "vector": {**_NUMBERS, "description": "A dense vector, as of an encoder; of all documents equally long."},
    "vectors": {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": "^[A-Za-z0-9_-]{1,64}$"},
        "additionalProperties": _NUMBERS,
        "description": "Several dense vectors by name, as of the title and of the body.",
    },
}
_NAMES: dict[PartKind, str] = {"text": "TextDocument", "features": "NamedFeaturesDocument", "vectors": "VectorDocument"}
_PARTS = "PartsDocument"
EXTRA_FIELDS: dict[str, Any] = {
    "type": "object",
    "description": "Fields that are kept beside a document and shown with it, and not learned from, by name.",
    "propertyNames": {"minLength": 1, "maxLength": MAX_TEXT},
    "additionalProperties": True,
}
DOCUMENTS_BY_KIND: dict[str, dict[str, Any]] = {
    name: {
        "type": "object",
        "additionalProperties": False,
        "required": [FIELDS[kind]],
        "properties": _COMMON_FIELDS | _CONTENT_FIELDS[kind],
    }
    for kind, name in _NAMES.items()
} | {
    _PARTS: {
        "type": "object",
        "description": "A document of several parts: any of these fields together. A document may lack parts that "
        "others have. A single dense "
        "vector is a document, too.",
        "additionalProperties": False,
        "anyOf": [{"required": [field]} for field in PARTS],
        "dependentRequired": {"values": ["indices"]},
        "properties": dict(
            field for fields in (_COMMON_FIELDS, *_CONTENT_FIELDS.values(), _DENSE_FIELDS) for field in fields.items()
        ),
    }
}
"""Schema of a document of each kind, by the name of the schema."""
DOCUMENT: dict[str, Any] = {
    "description": "A document of one of three kinds, or of several parts. A document shares a part with those "
    "before it; for a prediction all of "
    "its parts are among those of the model.",
    "anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in DOCUMENTS_BY_KIND],
}
DOCUMENTS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["documents"],
    "properties": {"documents": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Document"}}},
}

ENCODING: dict[str, Any] = {
    "name": "Content-Encoding",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "enum": ["gzip", "identity"]},
}
_HELD: dict[Column, str] = {
    "text": "the text",
    "label": "the label",
    "id": "the id",
    "labels": "all labels, in place of label,",
    "not": "labels that do not apply,",
    "weight": "the weight of the label",
}
_BESIDE: dict[Column, str] = {
    "labels": " Names of several columns, with the separator between them: each is for the label of its name. There 1, "
    "true or yes says that the label applies, 0, false or no that it does not, an empty cell that it is not known."
}
_COLUMNS: list[dict[str, Any]] = [
    {
        "name": column,
        "in": "query",
        "required": False,
        "description": f"Name of the column of a table, or field of JSON, with {held} of each document, by "
        f"default {column}." + ("" if column == "text" else " Empty: none has it.") + _BESIDE.get(column, ""),
        "schema": {"type": "string", "minLength": 1} if column == "text" else {"type": "string"},
    }
    for column, held in _HELD.items()
]
SEPARATOR: dict[str, Any] = {
    "name": "separator",
    "in": "query",
    "required": False,
    "description": "Text between several labels in a cell of a table, and between several columns that labels names; a "
    "cell [] says that none applies.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_SEPARATOR, "default": ";"},
}
EXTRA: dict[str, Any] = {
    "name": "extra",
    "in": "query",
    "required": False,
    "description": "What becomes of columns of a table and fields of a document that are unknown here: keep, beside "
    "the documents and not learned "
    "from; ignore; refuse. By default those of tables are kept and others refused.",
    "schema": {"type": "string", "enum": list(get_args(Extra))},
}
DOCUMENT_BODY: dict[str, Any] = {
    "parameters": [*_COLUMNS, SEPARATOR, EXTRA, ENCODING],
    "requestBody": {
        "required": True,
        "content": {media_type: format.openapi for media_type, format in FORMATS.items()},
    },
}


def _error_response(status: int, form: str, schema: str) -> dict[str, Any]:
    headers = {"headers": _TRY_AGAIN} if status in (429, 503) else {}
    return {
        "description": _ERRORS[status][1],
        **headers,
        "content": {form: {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
    }


ERROR_RESPONSES: dict[str, Any] = {
    name: _error_response(status, PROBLEM, "ProblemOut") for status, (name, _) in _ERRORS.items()
} | {
    f"V2{name}": _error_response(status, "application/json", "InferenceError") for status, (name, _) in _ERRORS.items()
}
"""Error responses by name: in the form of the service, and with the prefix V2 in that of the Open Inference
Protocol."""


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """References to the error responses of a route, by status."""
    return {status: _reference(_ERRORS[status]) for status in statuses}


def v2_error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The same in the form of the Open Inference Protocol, which has 400 in place of 422."""
    return {status: _reference(_ERRORS[422 if status == _V2_INVALID else status], "V2") for status in statuses}


def _reference(refusal: tuple[str, str], form: str = "") -> dict[str, Any]:
    name, meaning = refusal
    return {"$ref": f"#/components/responses/{form}{name}", "description": meaning}


def json_body(kind: type[msgspec.Struct], example: dict[str, Any], **replaced: Any) -> dict[str, Any]:
    """The description of a JSON body that msgspec parses; ``replaced`` are properties with another description."""
    _, components = msgspec.json.schema_components([kind])

    def inlined(part: dict[str, Any]) -> Any:
        """The struct in place of a reference to it."""
        return rewritten(components[part["$ref"].rpartition("/")[2]], inlined) if "$ref" in part else part

    schema = rewritten(components[kind.__name__], inlined)
    schema["properties"] |= replaced
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}}


def rewritten(part: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    """A part of a document with what ``change`` makes of each object, the inner ones first."""
    if isinstance(part, list):
        return [rewritten(each, change) for each in part]
    return change({key: rewritten(each, change) for key, each in part.items()}) if isinstance(part, dict) else part


def path_parameter(name: str, description: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    """The description of a path parameter, for a route that reads it from the request."""
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": schema or {"type": "string"},
    }
