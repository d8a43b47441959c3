"""The code must never unpickle, evaluate input, read XML or start a shell."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = ("app", "workers", "storage", "core")
FORBIDDEN_MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "xml",
    "lxml",
    "defusedxml",
    "telnetlib",
}
FORBIDDEN_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "yaml.load",
    "np.save",
    "tempfile.mktemp",
}
LOADERS = {"np.load", "numpy.load", "read_array"}
QUEUES = {"rq.Queue", "rq.Worker", "Queue.fetch_job"}


def findings(source: str) -> Iterator[str]:
    """Forbidden acts of a module, in words."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (
                    f"imports {name.name}" for name in names if name.name.partition(".")[0] in FORBIDDEN_MODULES
                )
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in FORBIDDEN_MODULES:
                yield f"imports {module}"
            case ast.Call(func=func, keywords=keywords):
                yield from _of_call(ast.unparse(func), {word.arg: ast.unparse(word.value) for word in keywords})


def _of_call(name: str, words: dict[str | None, str]) -> Iterator[str]:
    if name in FORBIDDEN_CALLS:
        yield f"calls {name}"
    if name in LOADERS and words.get("allow_pickle") != "False":
        yield f"calls {name} without allow_pickle=False"
    if name in QUEUES and words.get("serializer") != "JSONSerializer":
        yield f"calls {name}, whose default is to pickle, without the JSON serializer"
    if words.get("shell") == "True":
        yield f"calls {name} with a shell"


def test_nothing_dangerous_is_called(repository: Path) -> None:
    paths = [path for package in PACKAGES for path in sorted((repository / package).rglob("*.py"))]
    assert len(paths) > 80
    assert [f"{path.relative_to(repository)} {found}" for path in paths for found in findings(path.read_text())] == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import xml.etree.ElementTree as tree",
        "from joblib import load",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "rq.Queue(name, connection=redis)",
        "subprocess.run(text, shell=True)",
        "eval(text)",
    ],
)
def test_the_check_can_fail(source: str) -> None:
    assert len(list(findings(source))) == 1


def test_the_worker_of_rq_gets_the_json_serializer(repository: Path) -> None:
    assert "serializer=JSONSerializer" in (repository / "workers/worker/tasks.py").read_text()
