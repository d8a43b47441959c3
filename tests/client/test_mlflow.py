"""Versions as MLflow stores and loads them.

MLflow itself takes 850 MB: what is called of it was tried with 3.17.2, and is imitated here.
"""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from halfmoon import Halfmoon
from halfmoon.halfmoon_pyfunc import _load_pyfunc, documents_of

from core.exports.archive import write_archive
from tests.app.conftest import Gateway, publish, publish_several, text_model
from tests.core.exports.exported import cases

TEXTS = ["late vote vote", "go\u00e9al", ""]
ARGUMENTS = {"loader_module", "data_path", "code_paths", "signature", "pip_requirements", "metadata"}
"""of both mlflow.pyfunc.log_model and save_model, beside the name or the path"""


class MLflow:
    """Keeps a model's files as MLflow does, and loads the model with nothing but these."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.given: dict[str, Any] = {}

    def log_model(self, *, name: str, registered_model_name: str | None, **given: Any) -> str:
        self.save_model(path=str(self.folder / name), **given)
        return f"models:/{registered_model_name}/1"

    def save_model(self, *, path: str, **given: Any) -> None:
        assert given.keys() == ARGUMENTS
        self.given = given
        shutil.copytree(given["data_path"], f"{path}/data")
        for file in given["code_paths"]:
            Path(path, "code").mkdir()
            shutil.copy(file, f"{path}/code")

    def load(self, name: str) -> Any:
        spec = importlib.util.spec_from_file_location(
            "loaded", self.folder / name / "code" / f"{self.given['loader_module']}.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module._load_pyfunc(str(self.folder / name / "data"))


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MLflow:
    found = MLflow(tmp_path / "mlflow")
    types = {
        "ColSpec": lambda *fields: fields,
        "DataType": SimpleNamespace(string="string", double="double", long="long"),
        "Schema": list,
    }
    modules: dict[str, dict[str, Any]] = {
        "mlflow": {},
        "mlflow.pyfunc": {"log_model": found.log_model, "save_model": found.save_model},
        "mlflow.models": {"ModelSignature": lambda inputs, outputs: (inputs, outputs)},
        "mlflow.types": types,
        "mlflow.types.schema": {"Array": lambda of: [of]},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["mlflow"].pyfunc = sys.modules["mlflow.pyfunc"]  # type: ignore[attr-defined]
    monkeypatch.delitem(sys.modules, "halfmoon.mlflow", raising=False)
    return found


def test_a_version_gives_the_same_in_mlflow(gateway: Gateway, mlflow: MLflow) -> None:
    from halfmoon.mlflow import log_model, save_model

    publish(gateway.store, "texts", model=text_model())
    with Halfmoon(str(gateway.client.base_url)) as hm:
        model = hm.models["texts"]
        expected = model.predict(TEXTS)
        assert log_model(model, "texts", registered_model_name="theirs") == "models:/theirs/1"
        archive = model.export(mlflow.folder / "texts-1.zip")
    assert mlflow.given["metadata"]["halfmoon"].keys() == {"name", "version", "algorithm", "created_at"}
    assert mlflow.given["signature"] == ([("string",)], [("string", "label"), (["double"], "scores")])
    save_model(archive, mlflow.folder / "saved")
    for name in ("texts", "saved"):
        loaded = mlflow.load(name)
        frame = pd.DataFrame({"body": TEXTS}, index=[5, 6, 7])
        for given in (TEXTS, frame, frame["body"], np.array(TEXTS, object), [{"text": text} for text in TEXTS]):
            found = loaded.predict(given)
            assert found["label"].tolist() == expected.labels
            assert found["scores"].tolist() == expected.scores
        assert loaded.predict(frame).index.tolist() == [5, 6, 7]


@pytest.mark.parametrize("name", ["words, two classes", "names", "numbers, scores alone", "a dense matrix", "parts"])
def test_frames_of_every_kind_of_documents(tmp_path: Path, name: str) -> None:
    model, rows, documents = cases()[name]
    with (tmp_path / "export.zip").open("wb") as file:
        write_archive(model, {"name": "news"}, file)
    shutil.unpack_archive(tmp_path / "export.zip", tmp_path / "export")
    found = _load_pyfunc(str(tmp_path / "export")).predict(
        pd.DataFrame({"text": documents} if "words" in name else documents)
    )
    scores = model.scores(model.vocabulary.read(rows).rows)
    np.testing.assert_allclose(found["scores"].tolist(), scores, rtol=1e-12, atol=1e-12)
    probabilities = model.probabilities(scores)
    if probabilities is not None:
        np.testing.assert_allclose(found["probabilities"].tolist(), probabilities, rtol=1e-12)


def test_documents_of_frames() -> None:
    features = pd.DataFrame({"height": [1.5, None], "width": [None, 2.0]})
    assert documents_of(features, "features") == [{"features": {"height": 1.5}}, {"features": {"width": 2.0}}]
    parts = pd.DataFrame({"text": ["late", None], "vector": [np.array([1.0, 2.0]), None], "other": [1, 2]})
    assert documents_of(parts, "parts") == [{"text": "late", "vector": [1.0, 2.0]}, {}]
    with pytest.raises(ValueError, match="the columns a, b are none of text, features"):
        documents_of(pd.DataFrame({"a": [1], "b": [2]}), "parts")


def test_a_model_of_several_labels_has_lists_of_them(gateway: Gateway, mlflow: MLflow) -> None:
    publish_several(gateway.store, ["corn", "rye"])
    from halfmoon.mlflow import log_model

    with Halfmoon(str(gateway.client.base_url)) as hm:
        log_model(hm.models["news"], name="news")
    outputs = [(["string"], "label"), (["double"], "scores"), (["double"], "probabilities")]
    assert mlflow.given["signature"] == (None, outputs)
    labels = mlflow.load("news").predict(np.array([[1.0, 0.75], [0.75, 1.0], [0.25, 0.0]]))["label"].tolist()
    assert labels == [["corn", "rye"], ["rye", "corn"], []]
