"""Operations with digits that depend on the processor are kept out of the mathematics that promises the same bits
everywhere.
"""

import ast
from pathlib import Path

import pytest

LIBRARIES_DECIDE = {
    "core/evaluation",
    "core/exports/predict.py",
    "core/kernels/function.py",
    "core/kernels/gram.py",
    "core/losses/relaxation.py",
    "core/models/kernel.py",
    "core/numerics/blocked_lapack.py",
    "core/optimizers/interior_point.py",
    "core/algorithms/ctsvm.py",
    "core/selection/methods/kernel_regression.py",
    "core/selection/methods/kernel_ridge.py",
    "core/selection/methods/label_spreading.py",
}
"""Where BLAS, LAPACK or NumPy's functions may: what learns from dense kernels and distances, and what only counts how
good answers are."""
FUNCTIONS = {
    *(
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "pow",
        "power",
        "float_power",
        "logaddexp",
        "cbrt",
        "hypot",
        "sin",
        "cos",
        "tanh",
    ),
    *(
        "dot",
        "matmul",
        "inner",
        "outer",
        "einsum",
        "tensordot",
        "vdot",
        "solve",
        "inv",
        "lstsq",
        "eigh",
        "svd",
        "cholesky",
        "norm",
        "std",
        "var",
    ),
}
UNSTABLE = {"argsort", "argpartition"}


def found_in(text: str) -> list[str]:
    """Products of BLAS, functions of libraries that choose their code by the processor, sorts with ties in any order,
    reordered sums.
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.append(f"line {node.lineno}: @")
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name | ast.Attribute)
            and node.attr in FUNCTIONS
        ):
            owner = ast.unparse(node.value)
            found += (
                [f"line {node.lineno}: {owner}.{node.attr}"] if owner in ("np", "math", "np.linalg", "special") else []
            )
        if isinstance(node, ast.ImportFrom | ast.Import) and "scipy" in ast.unparse(node):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.keyword) and node.arg == "fastmath":
            found.append(f"line {node.lineno}: fastmath")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in UNSTABLE:
            stable = any(
                keyword.arg == "kind" and ast.unparse(keyword.value) == "'stable'" for keyword in node.keywords
            )
            found += [] if stable else [f"line {node.lineno}: {node.func.attr} that is not stable"]
    return found


def test_nothing_in_the_mathematics_depends_on_the_processor(repository: Path) -> None:
    found = {}
    for path in sorted((repository / "core").rglob("*.py")):
        name = str(path.relative_to(repository))
        if not any(name == each or name.startswith(f"{each}/") for each in LIBRARIES_DECIDE):
            found[name] = found_in(path.read_text())
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize(
    "line",
    [
        "x = a @ b",
        "np.log(x)",
        "math.exp(x)",
        "from scipy.special import expit",
        "njit(fastmath=True)",
        "np.argsort(x)",
    ],
)
def test_such_lines_are_found(line: str) -> None:
    assert found_in(line)


@pytest.mark.parametrize("line", ["log(x)", "math.sqrt(x)", "np.sqrt(x)", 'np.argsort(x, kind="stable")', "a * b"])
def test_others_are_not(line: str) -> None:
    assert found_in(line) == []
