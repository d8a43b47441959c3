"""The client that waits is what is generated from the one that is awaited."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

CLIENT = Path(__file__).parents[2] / "client"
MODULES = sorted(path.name for path in (CLIENT / "src/halfmoon/_async").glob("*.py"))


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", CLIENT / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", MODULES)
def test_the_twins_agree(generate: ModuleType, name: str) -> None:
    there = (CLIENT / "src/halfmoon/_sync" / name).read_text()
    assert there == generate.waiting((CLIENT / "src/halfmoon/_async" / name).read_text()), (
        "run python client/generate.py"
    )
    assert "await" not in there.replace("is awaited", "")


def test_there_are_no_others() -> None:
    assert sorted(path.name for path in (CLIENT / "src/halfmoon/_sync").glob("*.py")) == MODULES
