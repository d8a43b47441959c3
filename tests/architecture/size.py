"""How much there is to hold in a head: ``python -m tests.architecture.size`` prints it as a table.

Statements are counted, not lines: wrapping a line costs nothing, and packing two thoughts into one gains nothing.
"""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("core", "app", "storage", "workers", "client")
LONGEST_CODE_LINE = 120
TINY = 20
"""lines of code of a module that is too small to stand alone where one other module imports it"""

READ_FROM = 20
"""statements of a file that a job runs from which on whoever follows the job must read the file: fewer are a helper,
whose name says what it does"""
ADDED = ("a field of a job", "a format", "a candidate of `auto`")
"""things whose recipes are counted"""

Trees = Mapping[Path, ast.Module]


def tracked(root: Path = ROOT) -> list[Path]:
    """Files of the repository, those that are not added yet included."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, check=True, text=True
    ).stdout
    return [path for name in names.splitlines() if (path := root / name).is_file()]


@cache
def parsed(*rooms: str, root: Path = ROOT) -> Trees:
    """Syntax trees of the modules of these rooms, by path within the repository."""
    paths = [path.relative_to(root) for path in tracked(root) if path.suffix == ".py"]
    return {path: ast.parse((root / path).read_text()) for path in paths if path.parts[0] in rooms}


def statements(trees: Trees) -> Counter[str]:
    """Number of statements of each room, docstrings left out."""
    counts: Counter[str] = Counter()
    for path, tree in trees.items():
        counts[path.parts[0]] += len(statements_in(tree))
    return counts


def statements_in(tree: ast.AST) -> list[ast.stmt]:
    """Statements of a module or a function, docstrings left out."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not _is_text(node)]


def helpers_with_one_caller(trees: Trees) -> list[str]:
    """Private functions and methods that their module names once."""
    found = []
    for path, tree in trees.items():
        named = Counter(_names(tree))
        found += [
            f"{path}:{function.lineno} {function.name}"
            for function in functions(tree)
            if re.match("_(?!_)", function.name) and named[function.name] == 1
        ]
    return found


def tiny_modules_with_one_importer(trees: Trees) -> list[str]:
    """Modules of few lines which one other module imports."""
    importers: Counter[str] = Counter()
    for tree in trees.values():
        importers.update(set(imported(tree)))
    lines = {path: len(code_lines(path, tree)) for path, tree in trees.items() if not path.name.startswith("__")}
    return [
        f"{path}: {count} lines"
        for path, count in lines.items()
        if count <= TINY and importers[".".join(path.with_suffix("").parts)] == 1
    ]


def code_lines(path: Path, tree: ast.Module) -> set[int]:
    """Numbers of the lines of a module beside docstrings, comments and blank lines."""
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _is_text(node)]
    without = {number for node in texts for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = enumerate((ROOT / path).read_text().splitlines(), 1)
    return {number for number, line in lines if line.strip() and line.lstrip()[0] != "#"} - without


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods of a module, nested ones included."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def long_lines(trees: Trees) -> list[str]:
    """Lines of code that are too long."""
    return [
        f"{path}:{number}"
        for path in trees
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if len(line) > LONGEST_CODE_LINE
    ]


def prose_bytes(root: Path = ROOT) -> int:
    """Bytes of the pages in docs/, tables left out."""
    pages = [
        path.read_text() for path in tracked(root) if path.suffix == ".md" and path.relative_to(root).parts[0] == "docs"
    ]
    return sum(len(line.encode()) + 1 for page in pages for line in page.splitlines() if not re.match(r" *\|", line))


def recipe(thing: str, root: Path = ROOT) -> list[str]:
    """Files that are written by hand to add a thing, by the recipes of CONTRIBUTING.md, which tests hold."""
    (row,) = re.findall(rf"^\| {re.escape(thing)} \|.*$", (root / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    return re.findall(r"`([^`]*[/.][^`]*)`", row.partition("|")[2].partition("|")[2])


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def imported(tree: ast.AST) -> Iterator[str]:
    """Names of the modules that a module imports, and of what it imports from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def sizes() -> dict[str, int]:
    """The rows of the table that are read from the files alone."""
    product, others = parsed(*PRODUCT), parsed("benchmarks", "tests")
    of_product, of_others = statements(product), statements(others)
    app = {path: tree for path, tree in product.items() if path.parts[0] == "app"}
    n_functions = sum(1 for tree in app.values() for _ in functions(tree))
    return {
        **{f"statements of {room}": of_product[room] for room in PRODUCT},
        "statements of the product": of_product.total(),
        **{f"statements of {room}": count for room, count in of_others.items()},
        "private helpers of app with one caller, %": round(100 * len(helpers_with_one_caller(app)) / n_functions),
        f"modules of {TINY} lines and less with one importer": len(tiny_modules_with_one_importer(product)),
        f"lines of code over {LONGEST_CODE_LINE} columns": len(long_lines({**product, **others})),
        "kB of docs/ beside tables": round(prose_bytes() / 1000),
        **{f"files written by hand for {thing}": len(recipe(thing)) for thing in ADDED},
    }


def crossed() -> dict[str, int]:
    """The rows of the table on the way of one job, which is run and traced: see tests.architecture.way."""
    from tests.architecture.way import walked

    way = walked()
    counts = [way.statements(path) for path in way.functions]
    most = [count for count in counts if count >= READ_FROM]
    return {
        "files of which one job runs a function": len(counts),
        "statements of the functions that one job runs": sum(counts),
        f"files of which one job runs {READ_FROM} statements and more": len(most),
        "statements of their functions that it runs": sum(most),
    }


def main() -> None:
    """Print the table."""
    for name, figure in {**sizes(), **crossed()}.items():
        print(f"| {name} | {figure:,} |")


if __name__ == "__main__":
    main()
