"""The same documents, options and seed give the same bits, whatever the processor and however many threads.

Where BLAS and LAPACK decide digits, scores agree to a tolerance that docs/reproducibility.md states, and labels do.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

_COMPILED_SECONDS = 280.0
"""seconds in which all have compiled their own loops and answered, on a busy machine"""
_PLAIN = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR AVX2 FMA3"
LEAST = {"NUMBA_CPU_NAME": "generic", "OPENBLAS_CORETYPE": "Prescott"}
"""the least of all x86-64 processors"""
LEAST_OF_ALL = LEAST | {
    "NPY_DISABLE_CPU_FEATURES": _PLAIN,
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-AVX512VL",
}
TEN_YEARS_OLD = {"NUMBA_CPU_NAME": "x86-64-v3", "OPENBLAS_CORETYPE": "Haswell"}
_DOCUMENTS, _CLASSES = "200", "9"
TOLERANCES = {"kernel_svm": 1e-3, "ramp_svm": 1e-3, "cccp_tsvm": 1e-3, "ctsvm": 1e-4}
"""with C = 10"""
CHOSEN = 5.0
"""times these where the data choose C, which is some hundreds then: multipliers move as much for less of a score"""


def answers_of(module: str, machines: Iterable[tuple[str, Mapping[str, str]]], cwd: Path, *arguments: str) -> list[Any]:
    """The JSON output of the module on each machine, which is a number of threads and an environment.

    None outlasts the call.
    """
    command = [sys.executable, "-W", "ignore", "-m", module]
    running = [
        subprocess.Popen(
            [*command, threads, *arguments], env={**os.environ, **machine}, cwd=cwd, stdout=subprocess.PIPE, text=True
        )
        for threads, machine in machines
    ]
    try:
        return [json.loads(process.communicate(timeout=_COMPILED_SECONDS)[0]) for process in running]
    finally:
        for process in running:
            process.kill()
            process.communicate()


@pytest.mark.slow
def test_the_least_processor_gives_the_bits_of_this_one(repository: Path) -> None:
    """A digest is of weights, scores, labels, probabilities, report and trace.

    ``python -m benchmarks.reproducibility`` tries more machines.
    """
    found = answers_of("tests.core.digests", [("3", {}), ("1", LEAST_OF_ALL)], repository, _DOCUMENTS, _CLASSES)
    assert len(found[0]) == 39
    assert found[1] == found[0]


@pytest.mark.slow
def test_scores_agree_to_the_tolerance_and_labels_beyond_it(repository: Path) -> None:
    first, *others = answers_of("tests.core.kernel_scores", [("1", LEAST), ("3", TEN_YEARS_OLD), ("2", {})], repository)
    assert len(first) == 24
    for name, answer in first.items():
        kind, algorithm, values = name.split(", ")
        scores = np.array(answer["scores"])
        tolerance = (
            0.0
            if kind == "text" and algorithm != "ctsvm"
            else TOLERANCES[algorithm] * (CHOSEN if values == "chosen" else 1.0)
        )
        largest = np.sort(scores, axis=1)[:, -2:]
        sure = (np.abs(scores[:, 0]) if scores.shape[1] == 1 else np.diff(largest, axis=1)[:, 0] / 2.0) > tolerance
        assert sure.mean() > 0.9
        for other in (each[name] for each in others):
            assert other["chosen"] == answer["chosen"]
            np.testing.assert_allclose(np.array(other["scores"]), scores, rtol=0, atol=tolerance, err_msg=name)
            np.testing.assert_array_equal(
                np.array(other["labels"])[sure], np.array(answer["labels"])[sure], err_msg=name
            )
