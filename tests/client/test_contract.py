"""Every operation of the contract has a method and every field has its place in a record, and no other has."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import halfmoon._sync
import msgspec
import pytest
from halfmoon import records


def marked() -> Iterator[str]:
    """The operations that the methods of all classes say they call."""
    for info in pkgutil.iter_modules(halfmoon._sync.__path__):
        module = importlib.import_module(f"halfmoon._sync.{info.name}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__:
                for _, function in inspect.getmembers(kind, inspect.isfunction):
                    yield from getattr(function, "operations", ())


def test_every_operation_has_a_method(contract: dict[str, Any]) -> None:
    methods = ("get", "post", "put", "delete", "patch")
    operations = [
        operation for path in contract["paths"].values() for name, operation in path.items() if name in methods
    ]
    # Label Studio calls its backend; nobody else does
    there = {
        operation["operationId"] for operation in operations if not operation["tags"][0].startswith("label-studio")
    }
    assert there - set(marked()) == set()
    assert set(marked()) - there == set()


RECORDS: dict[str, type[msgspec.Struct]] = {
    "Dataset": records.DatasetRecord,
    "Job": records.JobRecord,
    "Version": records.Version,
    "Model": records.ModelRecord,
    "ModelSummary": records.ModelSummary,
    "Annotation": records.Annotation,
    "Progress": records.Progress,
    "Suggestion": records.Suggestion,
    "Prediction": records.Prediction,
    "Evaluation": records.Evaluation,
    "Trace": records.Trace,
    "Webhook": records.Webhook,
}


@pytest.mark.parametrize("schema", RECORDS)
def test_every_field_of_an_answer_has_its_place(schema: str, contract: dict[str, Any]) -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(RECORDS[schema])}
    assert set(contract["components"]["schemas"][schema]["properties"]) - fields == set()
