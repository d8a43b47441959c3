"""The contract as OpenAPI: what the application says of itself, completed. ``python -m app.cli.contract`` writes it to ``openapi/``."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.contract.examples import EXAMPLES
from app.errors import V2
from app.http.access import SCHEMES, scopes_for
from app.http.openapi_fragments import DOCUMENT, DOCUMENTS, DOCUMENTS_BY_KIND, ERROR_RESPONSES, error_responses, v2_error_responses
from app.http.schemas import ProblemOut
from app.inference.schemas import MODELS
from app.predictions.schemas import LabeledDocument

_SCHEMAS = "#/components/schemas/"
_ABOUT = """Semi-supervised classification: few labels and many unlabeled documents in, a model that predicts out.

Post documents (`create_dataset`), train (`create_job`), wait until the job is over (`show_job`, `follow_job`), fetch the labels that it found
(`download_labels`), and ask the model about new documents (`predict_newest`).

Errors are `application/problem+json` (RFC 9457): `detail` says what is wrong, and `errors` in which document and field."""
_TAGS = {
    "datasets": "Documents, some of them labeled. They never change; other labels make another dataset.",
    "jobs": "Training. A job is accepted at once and runs in a worker; it ends as succeeded, failed or cancelled.",
    "models": "What jobs have trained: versions, which never change, and aliases, which name them.",
    "predictions": "Labels, scores and probabilities of documents, and why they are what they are.",
    "evaluations": "How good a model is on documents whose labels are known.",
    "suggestions": "Which documents to label next.",
    "inference": "The Open Inference Protocol (KServe V2), for gateways and clients that speak it.",
    "health": "Whether the process lives and the service can work.",
    "metrics": "What an operator watches.",
}


def describe(app: FastAPI) -> None:
    """Let the application describe itself, once, when it is asked to."""

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
    """With the schemas that no signature mentions, without FastAPI's own form of a refusal, and with a name for every object that is sent."""
    schemas = _schemas(document["components"]["schemas"])
    for path, item in document["paths"].items():
        for method, operation in item.items():
            _without_fastapis_own(operation)
            _guard(operation, method, v2_error_responses if path.startswith(V2) else error_responses)
            _summarise(operation)
            operation |= _name_objects({key: operation[key] for key in operation.keys() & {"requestBody"}}, schemas)
    untitled = {name: _untitled(schema) for name, schema in sorted(schemas.items())}
    used = re.findall(r"'#/components/responses/(\w+)'", str(document["paths"]))
    document["components"] = {"schemas": untitled, "responses": {name: ERROR_RESPONSES[name] for name in sorted({*used})}, "securitySchemes": SCHEMES}
    return _with_examples(_without_suffix(document))


def _schemas(known: dict[str, Any]) -> dict[str, Any]:
    kinds: list[type[BaseModel]] = [ProblemOut, LabeledDocument, *MODELS]
    _, extra = models_json_schema([(kind, "serialization") for kind in kinds], ref_template=f"{_SCHEMAS}{{model}}")
    unmentioned: dict[str, Any] = extra["$defs"] | DOCUMENTS_BY_KIND | {"Document": DOCUMENT, "Documents": DOCUMENTS}
    return {name: schema for name, schema in known.items() if name not in ("HTTPValidationError", "ValidationError")} | unmentioned


def _without_fastapis_own(operation: dict[str, Any]) -> None:
    """FastAPI documents a refusal that is never sent for every route with parameters that does not document one of its own."""
    if "HTTPValidationError" in str(operation["responses"].get("422", "")):
        del operation["responses"]["422"]


def _guard(operation: dict[str, Any], method: str, error_responses: Callable[..., dict[int | str, dict[str, Any]]]) -> None:
    """Say which keys an operation takes, where keys are needed at all."""
    scopes = scopes_for(operation["tags"][0], method.upper())
    if scopes is not None:
        operation["security"] = [{name: []} for name in SCHEMES]
        operation["x-scopes"] = sorted(scope.value for scope in scopes)
        answers = operation["responses"] | {str(status): answer for status, answer in error_responses(401, 403, 421, 429).items()}
        operation["responses"] = dict(sorted(answers.items()))


def _summarise(operation: dict[str, Any]) -> None:
    """Let the first sentence of what an operation says of itself be its summary, in place of its name with spaces."""
    summary, _, rest = operation.pop("description").partition("\n\n")
    operation["summary"] = " ".join(summary.split()).removesuffix(".")
    operation |= {"description": rest} if rest else {}


def _name_objects(part: Any, schemas: dict[str, Any]) -> Any:
    """The same with a reference for each object that has a title, which becomes its name among the schemas.

    Generators of clients make a type of a named schema, and of a nameless one an odd type or none.
    """
    if isinstance(part, list):
        return [_name_objects(each, schemas) for each in part]
    if not isinstance(part, dict):
        return part
    named = {key: _name_objects(each, schemas) for key, each in part.items()}
    if not {"title", "properties"} <= named.keys():
        return named
    schemas[named["title"]] = named
    return {"$ref": _SCHEMAS + named["title"]}


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the titles that pydantic makes of the names of fields: they say nothing, and generators would name types by them."""
    fields = schema.get("properties", {}).items()
    return schema | {"properties": {name: {key: each[key] for key in each if key != "title"} for name, each in fields}} if fields else schema


def _without_suffix(document: dict[str, Any]) -> dict[str, Any]:
    """Schemas are called what they are, JobOut is Job."""
    text = re.sub(rb'"(#/components/schemas/)?(\w+)Out"', rb'"\1\2"', msgspec.json.encode(document))
    renamed: dict[str, Any] = msgspec.json.decode(text)
    return renamed


def _with_examples(document: dict[str, Any]) -> dict[str, Any]:
    for name, example in EXAMPLES.items():
        document["components"]["schemas"][name]["examples"] = [example]
    return document


def text_of(app: FastAPI) -> str:
    """The description as YAML."""
    import yaml

    return yaml.safe_dump(app.openapi(), sort_keys=False, allow_unicode=True, width=140)
