"""Loader of Halfmoon models for MLflow.

It is copied beside the model, and needs NumPy and pandas alone: neither Halfmoon nor its client.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

_PARTS = ("text", "features", "indices", "values", "vector", "vectors")


def _load_pyfunc(path: str) -> "PyfuncModel":
    """The model in a folder with an unpacked export; the name is MLflow's."""
    return PyfuncModel(Path(path))


class PyfuncModel:
    """A version of a model, as MLflow calls it."""

    def __init__(self, folder: Path) -> None:
        self._classifier = _module(folder / "predict.py").load(folder)
        vocabulary: Mapping[str, Any] = self._classifier.meta["vocabulary"]
        self._kind = vocabulary.get("kind", "vectors")

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """A row a document: ``label``, ``scores`` and, if the model is calibrated, ``probabilities``, as the service
        gives them.

        Documents are a DataFrame or what the model takes by itself: a list of texts or dicts, a matrix. The columns of
        a DataFrame are those of ``documents_of``.
        """
        is_frame = isinstance(model_input, pd.DataFrame)
        documents = documents_of(model_input, self._kind) if is_frame else model_input
        if self._kind == "text" and isinstance(documents, (pd.Series, np.ndarray)):
            documents = documents.tolist()
        labels, scores, probabilities = self._classifier.predict_all(documents)
        columns = {"label": labels, "scores": scores.tolist()}
        if probabilities is not None:
            columns["probabilities"] = probabilities.tolist()
        return pd.DataFrame(columns, index=model_input.index if is_frame else None)


def documents_of(frame: pd.DataFrame, kind: str) -> Any:
    """The documents in a frame, a row each, for a model of documents of this kind.

    Of texts the column ``text``, or the only one. Of vectors a column a number, unless there are ``indices`` or
    ``vector``. Of named features a column a feature, unless there is ``features``. Of several parts a column a part.
    What is missing (None, NaN) is left out.
    """
    if kind == "text" and "text" not in frame and len(frame.columns) == 1:
        return frame.iloc[:, 0].tolist()
    parts = [name for name in _PARTS if name in frame]
    if parts:
        return [_without_missing(row) for row in frame[parts].to_dict(orient="records")]
    if kind == "features":
        return [{"features": _without_missing(row)} for row in frame.to_dict(orient="records")]
    if kind == "vectors":
        return frame.to_numpy()
    raise ValueError(f"the columns {', '.join(map(str, frame.columns))} are none of {', '.join(_PARTS)}")


def _without_missing(row: Mapping[Any, Any]) -> dict[str, Any]:
    kept = {str(name): value for name, value in row.items() if not (pd.api.types.is_scalar(value) and pd.isna(value))}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in kept.items()}


def _module(path: Path) -> ModuleType:
    """The module of this export alone: another export may have been made by another version of Halfmoon."""
    spec = importlib.util.spec_from_file_location(f"halfmoon_export_{abs(hash(path))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
