"""The breaks of ``tests.mutants`` fit the code; whether tests notice them is tried by hand."""

from pathlib import Path

import pytest

from tests.mutants import MUTANTS, Mutant, broken


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_a_break_fits_the_code(mutant: Mutant, repository: Path) -> None:
    compile(broken(mutant, repository), mutant.file, "exec")
    assert [name for name in mutant.tests.split() if not (repository / name).exists()] == []
