"""The contract as OpenAPI. ``python -m app.openapi [file]`` writes it; a test compares the file with the live application."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.access import SCHEMES, allowed
from app.documented import DOCUMENT, DOCUMENTS, refusals, v2_refusals
from app.errors import V2
from app.schemas import LabeledDocument, ProblemOut

FILE = Path(__file__).parent.parent / "openapi" / "openapi.yaml"
_ABOUT = (
    "Semi-supervised classification: few labels and many unlabeled documents in, a model that predicts out. "
    "Errors are `application/problem+json` (RFC 9457)."
)


def describe(app: FastAPI) -> None:
    """Let the application describe itself, once, when it is asked to."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes))
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    """With the schemas that no signature mentions, and without FastAPI's own form of a refusal."""
    from app.oip import MODELS  # only now: see app.routes.inference

    schemas = document["components"]["schemas"]
    kinds: list[type[BaseModel]] = [ProblemOut, LabeledDocument, *MODELS]
    _, extra = models_json_schema([(kind, "serialization") for kind in kinds], ref_template="#/components/schemas/{model}")
    schemas |= extra["$defs"] | {"Document": DOCUMENT, "Documents": DOCUMENTS}
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    document["components"] = {"schemas": dict(sorted(schemas.items())), "securitySchemes": SCHEMES}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            _without_fastapis_own(operation)
            _guard(operation, method, v2_refusals if path.startswith(V2) else refusals)
    return document


def _without_fastapis_own(operation: dict[str, Any]) -> None:
    """FastAPI documents a refusal that is never sent for every route with parameters that does not document one of its own."""
    if "HTTPValidationError" in str(operation["responses"].get("422", "")):
        del operation["responses"]["422"]


def _guard(operation: dict[str, Any], method: str, refusals: Callable[..., dict[int | str, dict[str, Any]]]) -> None:
    """Say which keys an operation takes, where keys are needed at all."""
    scopes = allowed(operation["tags"][0], method.upper())
    if scopes is not None:
        operation["security"] = [{name: []} for name in SCHEMES]
        operation["x-scopes"] = sorted(scope.value for scope in scopes)
        answers = operation["responses"] | {str(status): answer for status, answer in refusals(401, 403, 421, 429).items()}
        operation["responses"] = dict(sorted(answers.items()))


def text_of(app: FastAPI) -> str:
    """The description as YAML."""
    import yaml

    return yaml.safe_dump(app.openapi(), sort_keys=False, allow_unicode=True, width=140)


def main(arguments: list[str]) -> None:
    """Write the description of the application as it is."""
    from app.main import create_app
    from app.settings import GatewaySettings

    (Path(arguments[0]) if arguments else FILE).write_text(text_of(create_app(GatewaySettings())), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
