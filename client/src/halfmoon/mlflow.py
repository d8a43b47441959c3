"""Versions of models in MLflow: a pyfunc that gives the same labels, scores and probabilities as the service, and needs
no service.

import mlflow
from halfmoon.mlflow import log_model

with mlflow.start_run():
    log_model(hm.models["tickets@live"], name="tickets", registered_model_name="tickets")
mlflow.pyfunc.load_model("models:/tickets/1").predict(["The visitors came late."])
"""

import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlflow.pyfunc
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema
from mlflow.types.schema import Array

from halfmoon import halfmoon_pyfunc
from halfmoon._sync.models import Model

_NEEDS = ["numpy>=2", "pandas>=2"]


def log_model(
    model: Model | str | Path, name: str = "model", *, registered_model_name: str | None = None, **more: Any
) -> Any:
    """Log a version to the active run of MLflow, and register it if it is given a name for that; returns MLflow's
    ``ModelInfo``.

    ``model``: a model of the service, or the archive that ``model.export()`` wrote. ``more``: other arguments of
    ``mlflow.pyfunc.log_model``.
    """
    with _arguments(model) as arguments:
        return mlflow.pyfunc.log_model(name=name, registered_model_name=registered_model_name, **(arguments | more))


def save_model(model: Model | str | Path, path: str | Path, **more: Any) -> None:
    """Save a version as a folder in MLflow's format; see ``log_model``."""
    with _arguments(model) as arguments:
        mlflow.pyfunc.save_model(path=str(path), **(arguments | more))


@contextmanager
def _arguments(model: Model | str | Path) -> Iterator[dict[str, Any]]:
    """The arguments for MLflow, as long as it stores."""
    with tempfile.TemporaryDirectory() as scratch:
        archive = model.export(Path(scratch, "export.zip")) if isinstance(model, Model) else Path(model)
        folder = Path(scratch, "halfmoon")
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder)
        meta = json.loads((folder / "model.json").read_text("utf-8"))
        yield {
            "loader_module": "halfmoon_pyfunc",
            "data_path": str(folder),
            "code_paths": [halfmoon_pyfunc.__file__],
            "signature": _signature(meta),
            "pip_requirements": _NEEDS,
            "metadata": {"halfmoon": {key: meta[key] for key in ("name", "version", "algorithm", "created_at")}},
        }


def _signature(meta: Mapping[str, Any]) -> ModelSignature:
    """Outputs of any model, and the input of texts. Other documents come in several forms, which no signature has."""
    numbers = Array(DataType.double)
    label = DataType.string if isinstance(meta["classes"][0], str) else DataType.long
    several = "thresholds" in meta.get("calibration", {})
    outputs = [ColSpec(Array(label) if several else label, "label"), ColSpec(numbers, "scores")]
    if "calibration" in meta:
        outputs.append(ColSpec(numbers, "probabilities"))
    is_text = meta["vocabulary"].get("kind") == "text"
    return ModelSignature(Schema([ColSpec(DataType.string)]) if is_text else None, Schema(outputs))
