"""Where BLAS and LAPACK decide digits, scores agree to a tolerance that docs/reproducibility.md states, and labels
do."""

from pathlib import Path

import numpy as np
import pytest

from tests.core.machines import answers_of

MACHINES = {
    "the least of all x86-64 processors": ("1", {"NUMBA_CPU_NAME": "generic", "OPENBLAS_CORETYPE": "Prescott"}),
    "one of ten years ago": ("3", {"NUMBA_CPU_NAME": "x86-64-v3", "OPENBLAS_CORETYPE": "Haswell"}),
    "this one": ("2", {}),
}
TOLERANCES = {"kernel_svm": 1e-3, "ramp_svm": 1e-3, "cccp_tsvm": 1e-3, "ctsvm": 1e-4}
"""with C = 10"""
CHOSEN = 5.0
"""times these where the data choose C, which is some hundreds then: multipliers move as much for less of a score"""


@pytest.mark.slow
def test_scores_agree_to_the_tolerance_and_labels_beyond_it(repository: Path) -> None:
    first, *others = answers_of("tests.core.kernel_scores", MACHINES.values(), repository)
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
