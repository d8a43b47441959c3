"""The same documents, options and seed give the same bits, whatever the processor and however many threads."""

from pathlib import Path

import pytest

from tests.core.machines import answers_of

_PLAIN = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR AVX2 FMA3"
MACHINES = {
    "this one, three threads": ("3", {}),
    "the least of all x86-64 processors, one thread": (
        "1",
        {
            "NUMBA_CPU_NAME": "generic",
            "OPENBLAS_CORETYPE": "Prescott",
            "NPY_DISABLE_CPU_FEATURES": _PLAIN,
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-AVX512VL",
        },
    ),
}
_DOCUMENTS, _CLASSES = "200", "9"


@pytest.mark.slow
def test_the_least_processor_gives_the_bits_of_this_one(repository: Path) -> None:
    """A digest is of weights, scores, labels, probabilities, report and trace.

    ``python -m benchmarks.reproducibility`` tries more machines.
    """
    found = answers_of("tests.core.digests", MACHINES.values(), repository, _DOCUMENTS, _CLASSES)
    assert len(found[0]) == 39
    assert found[1] == found[0]
