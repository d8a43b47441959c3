"""Small files, small functions, few files in a folder, and nothing that belongs to one machine."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
MOST_MODULES = 20
FORBIDDEN = re.compile(r"(?<![\w.])/(?:work|root|home)/\w|\bpypi\.org|127\.0\.0\.1:3128")


def tracked(repository: Path) -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=repository, capture_output=True, check=True, text=True).stdout
    return [path for name in names.splitlines() if (path := repository / name).is_file()]


def functions(source: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def test_files_and_functions_are_small(repository: Path) -> None:
    sources = {path: path.read_text() for path in tracked(repository) if path.suffix == ".py"}
    assert len(sources) > 50
    long_files = [f"{path}: {lines} lines" for path, source in sources.items() if (lines := source.count("\n")) > LONGEST_FILE]
    long_functions = [
        f"{path}: {name} has {lines} lines" for path, source in sources.items() for name, lines in functions(source) if lines > LONGEST_FUNCTION
    ]
    assert not long_files + long_functions


def test_folders_hold_few_modules(repository: Path) -> None:
    modules = [path for path in tracked(repository) if path.suffix == ".py" and path.name != "__init__.py"]
    folders = Counter(path.parent for path in modules if path.relative_to(repository).parts[0] in ("app", "workers", "core", "client"))
    assert len(folders) > 40
    assert [f"{folder}: {number} modules" for folder, number in folders.items() if number > MOST_MODULES] == []


def test_nothing_names_the_machine_it_was_made_on(repository: Path) -> None:
    named = []
    for path in tracked(repository):
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        named += [f"{path.relative_to(repository)}: {found}" for found in FORBIDDEN.findall(text) if path != Path(__file__)]
    assert not named


@pytest.mark.parametrize("folder", ["work", "root", "home"])
def test_the_pattern_finds_machine_paths(folder: str) -> None:
    assert FORBIDDEN.search(f"see /{folder}/project")
