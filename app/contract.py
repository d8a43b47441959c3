"""The contract as an OpenAPI document: FastAPI's, completed, with examples of answers from one session: six texts, a
model of two classes, a prediction. ``app.cli.contract`` writes it to ``openapi/``.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.errors import V2
from app.http.access import SCHEMES, scopes_for
from app.http.schemas import (
    DOCUMENT,
    DOCUMENTS,
    DOCUMENTS_BY_KIND,
    ERROR_RESPONSES,
    EXTRA_FIELDS,
    ProblemOut,
    error_responses,
    rewritten,
    v2_error_responses,
)
from app.inference.schemas import MODELS
from app.predictions.schemas import DocumentLabels, LabeledDocument

_ABOUT = """Semi-supervised classification: few labels and many unlabeled documents in, a model that predicts out.

Post documents (`create_dataset`), train (`create_job`), wait until the job is over (`show_job`, `follow_job`), fetch
the labels that it has given (`download_labels`), and predict new documents (`predict_newest`).

Errors are `application/problem+json` (RFC 9457): `detail` says what is wrong, and `errors` in which document and
field."""
_TAGS = {
    "datasets": "Documents, some of them labeled. They never change; other labels make another dataset.",
    "jobs": "Training. A job is accepted at once and runs in a worker; it ends as succeeded, failed or cancelled.",
    "models": "What jobs have trained: versions, which never change, and aliases, which name them.",
    "predictions": "Labels, scores and probabilities of documents, and explanations of them.",
    "evaluations": "How good a model is on documents whose labels are known.",
    "suggestions": "Which documents to label next.",
    "inference": "The Open Inference Protocol (KServe V2), for gateways and clients that speak it.",
    "label-studio": "The machine learning backend of Label Studio: predictions. A key is sent as the password of "
    "Basic authentication, too.",
    "label-studio-training": "The same: training on its projects.",
    "webhooks": "Addresses that are told when a job ends or a version is published.",
    "keys": "Keys of colleagues, who may label and remove nothing.",
    "health": "Liveness of the process and readiness of the service.",
    "metrics": "Metrics for Prometheus.",
}
SCHEMAS = "#/components/schemas/"


def describe(app: FastAPI) -> None:
    """Let the application make its OpenAPI document at the first request for it."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(
                get_openapi(
                    title=app.title,
                    version=app.version,
                    description=_ABOUT,
                    license_info={"name": "MIT", "identifier": "MIT"},
                    tags=[{"name": name, "description": meaning} for name, meaning in _TAGS.items()],
                    routes=app.routes,
                )
            )
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with all schemas, a name for every object, and error responses in the form of the service."""
    kinds: list[type[BaseModel]] = [ProblemOut, LabeledDocument, DocumentLabels, *MODELS]
    _, extra = models_json_schema([(kind, "serialization") for kind in kinds], ref_template=f"{SCHEMAS}{{model}}")
    unmentioned = {"Document": DOCUMENT, "Documents": DOCUMENTS, "ExtraFields": EXTRA_FIELDS}
    schemas: dict[str, Any] = document["components"]["schemas"] | extra["$defs"] | DOCUMENTS_BY_KIND | unmentioned
    for path, item in document["paths"].items():
        for method, operation in item.items():
            # FastAPI adds this answer to every route with parameters: it is never sent
            if "HTTPValidationError" in str(operation["responses"].get("422", "")):
                del operation["responses"]["422"]
            _document_keys(operation, method, v2_error_responses if path.startswith(V2) else error_responses)
            # the first sentence is the summary, in place of FastAPI's, which is the name of the function
            summary, _, rest = operation.pop("description").partition("\n\n")
            operation["summary"] = " ".join(summary.split()).removesuffix(".")
            operation |= {"description": rest} if rest else {}
            body = {key: operation[key] for key in operation.keys() & {"requestBody"}}
            operation |= rewritten(body, partial(_named_object, schemas))
    untitled = {name: _untitled(schema) for name, schema in sorted(schemas.items())}
    used = re.findall(r"'#/components/responses/(\w+)'", str(document["paths"]))
    document["components"] = {
        "schemas": named_choices(untitled),
        "responses": {name: ERROR_RESPONSES[name] for name in sorted({*used})},
        "securitySchemes": SCHEMES,
    }
    # without the suffix Out of names: JobOut is Job
    text = re.sub(rb'"(#/components/schemas/)?(\w+)Out"', rb'"\1\2"', msgspec.json.encode(document))
    renamed: dict[str, Any] = msgspec.json.decode(text)
    for name, example in EXAMPLES.items():
        renamed["components"]["schemas"][name]["examples"] = [example]
    described: dict[str, Any] = rewritten(renamed, _unwrapped)
    return described


def _document_keys(
    operation: dict[str, Any], method: str, error_responses: Callable[..., dict[int | str, dict[str, Any]]]
) -> None:
    """Document the scopes of keys that allow an operation."""
    scopes = scopes_for(operation["tags"][0], method.upper())
    if scopes is not None:
        operation["security"] = [{name: []} for name in SCHEMES]
        operation["x-scopes"] = sorted(scope.value for scope in scopes)
        answers = operation["responses"] | {
            str(status): answer for status, answer in error_responses(401, 403, 421, 429).items()
        }
        operation["responses"] = dict(sorted(answers.items()))


def _named_object(schemas: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """A reference in place of an object that has a title, which becomes the name of its schema.

    Client generators need named schemas to make well-named types.
    """
    if not {"title", "properties"} <= part.keys():
        return part
    name = part["title"]
    if schemas.setdefault(name, part) != part:
        raise ValueError(f"two bodies of the contract have the name {name}")
    return {"$ref": SCHEMAS + name}


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the titles that pydantic derives from field names, since client generators would name types by
    them, and without the defaults of fields that are always there.
    """
    if "properties" not in schema:
        return schema
    required = schema.get("required", ())
    fields = {
        name: {key: each[key] for key in each if key != "title" and not (key == "default" and name in required)}
        for name, each in schema["properties"].items()
    }
    return schema | {"properties": fields}


def _unwrapped(part: dict[str, Any]) -> dict[str, Any]:
    """The part with each paragraph of its description in one line, however the source is wrapped."""
    text = part.get("description")
    return part | {"description": re.sub(r"(?<!\n)\n(?!\n| *[-*|])", " ", text)} if isinstance(text, str) else part


def text_of(app: FastAPI) -> str:
    """The OpenAPI document as YAML."""
    import yaml

    return yaml.safe_dump(app.openapi(), sort_keys=False, allow_unicode=True, width=140)


def named_choices(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas with a name for each object and each list of words that a field may be beside something else, such as
    null.

    The name is that of the schema and of the field, so that no other schema changes it.
    """
    found = dict(schemas)
    for parent, schema in schemas.items():
        for field, value in schema.get("properties", {}).items():
            if "anyOf" in value:
                name = parent.removesuffix("Out") + "".join(word.capitalize() for word in field.split("_"))
                options = [_named(option, name, found) for option in value["anyOf"]]
                found[parent] = found[parent] | {
                    "properties": found[parent]["properties"] | {field: value | {"anyOf": options}}
                }
    return dict(sorted(found.items()))


def _named(option: dict[str, Any], name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema, which is added by its name, if it needs one; else the schema itself."""
    if option.get("type") != "object" and not option.keys() & {"enum", "const"}:
        return option
    free = name if name not in schemas else f"{name}Word"
    if free in schemas:
        raise ValueError(f"{free} is the name of another schema")
    schemas[free] = option
    return {"$ref": SCHEMAS + free}


_DATASET, _JOB, _SHA256 = (
    "ds-06gvsvslg1f8f87i3baha1fh",
    "job-06gvsvslj3fmcein24cnlbca",
    "188333f6f0c245f6391aeff2d012c924f228e714e0be5b389a080b59b8e8e8a1",
)
_OPTIONS = {"positive_fraction": "estimate", "class_fractions": None, "labels_drawn": "unknown", "tolerance": 1e-6}
_TEXT = {"min_documents": 2, "ngrams": 2, "max_terms": 500000}
_POSTED, _STARTED, _ENDED = "2026-11-21T14:25:36.664449Z", "2026-11-21T14:25:36.697226Z", "2026-11-21T14:25:36.846876Z"

_COMPARISON = {
    "takes_over": True,
    "why": "the new version takes over without a comparison: the model has no other",
    "against": None,
    "labels": 0,
    "gained": 0,
    "lost": 0,
    "p_value": None,
}

EXAMPLES: dict[str, dict[str, Any]] = {
    "Dataset": {
        "id": _DATASET,
        "name": "news",
        "n_documents": 6,
        "n_labeled": 2,
        "label_kind": "single",
        "kind": "text",
        "n_features": None,
        "n_nonzeros": None,
        "parts": [],
        "classes": {"politics": 1, "sport": 1},
        "voters": {},
        "drawn": {"random": 2},
        "fields": [],
        "sha256": _SHA256,
        "created_at": "2026-11-21T14:25:36.648476Z",
        "warnings": ["class 'politics' has one labeled document", "class 'sport' has one labeled document"],
        "archived": False,
        "guidelines": "",
        "shares": {},
        "overlap": 0.0,
        "clusters": {},
    },
    "Job": {
        "id": _JOB,
        "state": "succeeded",
        "algorithm": "auto",
        "options": _OPTIONS,
        "seed": 0,
        "text": _TEXT,
        "dataset": _DATASET,
        "start_from": None,
        "encoder": None,
        "nested": False,
        "other": None,
        "annotations": None,
        "publish": "if_better",
        "model": {"name": "news", "version": 1},
        "model_name": "news",
        "progress": {"fraction": 1.0, "phase": "tsvm, stage 18 of 18", "iteration": 1, "objective": 0.0019},
        "attempt": 1,
        "created_at": _POSTED,
        "started_at": _STARTED,
        "finished_at": _ENDED,
        "status": "converged",
        "objective": 0.0019,
        "warnings": [],
        "report": {
            "chosen": {"algorithm": "tsvm", "lambda": 0.001, "why": "…"},
            "class_fractions": {"politics": 0.497, "sport": 0.503},
            "engine": "memory",
        },
        "comparison": _COMPARISON,
        "error": None,
    },
    "Version": {
        "name": "news",
        "label_kind": "single",
        "version": 1,
        "job": _JOB,
        "dataset": _DATASET,
        "algorithm": "auto",
        "options": _OPTIONS,
        "classes": ["politics", "sport"],
        "kind": "text",
        "text": _TEXT,
        "n_features": 21,
        "facts": {"family": "linear", "n_seen_features": 21, "bytes": 596, "n_terms": 21, "n_words": 13},
        "objective": 0.0019,
        "status": "converged",
        "takes_over": True,
        "comparison": _COMPARISON,
        "held_out": None,
        "annotations": None,
        "confidence": "low",
        "created_at": _ENDED,
    },
    "Prediction": {
        "model": "news",
        "version": 1,
        "classes": ["politics", "sport"],
        "ids": ["d5", "d6"],
        "labels": ["sport", "politics"],
        "scores": [[0.465], [-0.514]],
        "probabilities": [[0.288, 0.712], [0.741, 0.259]],
        "warnings": ["1 of 7 words are new to the model; they count as zero"],
    },
    "DocumentLabels": {"id": "d4", "labels": ["grain", "wheat"], "probabilities": {"grain": 0.91, "wheat": 0.74}},
    "LabeledDocument": {"id": "d3", "label": "sport", "score": 1.102, "probability": 0.899},
    "Problem": {
        "type": "/problems/invalid-documents",
        "title": "The documents cannot be used",
        "status": 422,
        "detail": "document 'd2': label: line 2: must be a number or a text, not true or false; a label is a text or "
        "an integer",
        "errors": [
            {
                "document": "d2",
                "field": "label",
                "detail": "line 2: must be a number or a text, not true or false",
                "place": "document 'd2'",
            }
        ],
    },
}
"""Examples by the name of their schema."""
