"""The same bits on every processor and with any number of threads, tried: ``python -m benchmarks.reproducibility`` writes docs/reproducibility.md.

Compiled code is made for other processors (``NUMBA_CPU_NAME``), OpenBLAS is told to be on others (``OPENBLAS_CORETYPE``), and NumPy and the C
library are kept from using what this one has. What this processor cannot run is left out, and said.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.base import machine, table, write

_ROOT = Path(__file__).parent.parent
_PAGE = "reproducibility.md"
_DOCUMENTS, _CLASSES = 400, 20
PROCESSORS = ("generic", "x86-64-v3", "skylake-avx512", "znver3")
BLAS = ("Prescott", "Haswell", "Zen", "SkylakeX")
THREADS = (1, 2, 3, 8)
PLAIN = {
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR AVX2 FMA3",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-AVX512VL",
}
"""NumPy and the C library as on the least of all x86-64 processors"""
_HEAD = """# The same answers on every machine

**The same documents, options and seed give the same model, bit by bit, on every x86-64 processor and with any number of threads.**
This holds for the linear family (`svm`, `tsvm`, `da`, `cuts3vm`) on all documents. It holds for `auto` and for the kernel family (`kernel_svm`,
`ramp_svm`, `cccp_tsvm`) on sparse documents, such as text.
The bits are those of weights, scores, labels, probabilities, the report and the trace; only its seconds differ.

## How

- **Parts.** The rows are cut into parts by their nonzeros and features alone. Each part has sums of its own.
  The sums are added in the order of the parts, so the number of threads does not matter (`core/engine/passes.py`).
- **Lanes.** A sum over many numbers runs in a fixed number of written-out lanes.
  So the width of a processor's registers does not matter (`core/numerics/vectors.py`, `core/engine/csr_loops.py`).
- **Rounding.** The compiler neither reorders sums nor fuses a product with a sum (`core/numerics/compiled.py`).
- **Elementary functions.** Exponential and logarithm are the project's own, made of sums and products (`core/numerics/elementary.py`).
  NumPy's and the C library's choose their code by the processor.
- **Kernels.** Products of sparse rows, kernel functions and the steps of SMO are compiled in the same way (`core/kernels`).
  Which kernel rows are computed when does not depend on the number of threads.
- **Linear algebra.** What keeps this promise uses neither BLAS nor LAPACK. A test finds what would break the promise
  (`tests/architecture/test_arithmetic.py`).

## Where it does not hold

BLAS and LAPACK decide the last digits of `ctsvm`, of kernels on dense documents, and of two candidates of `auto` on
dense documents: label spreading and kernel ridge regression.

| what | agrees between processors |
| --- | --- |
| `svm`, `tsvm`, `da`, `cuts3vm`; on sparse documents `auto`, `kernel_svm`, `ramp_svm`, `cccp_tsvm` | bit by bit |
| `kernel_svm`, `ramp_svm`, `cccp_tsvm` on dense documents | scores to `tolerance` (0.001 by default); labels where \\|score\\| is larger |
| the same with C and gamma chosen by the data | the choice exactly, scores to five times `tolerance` |
| `ctsvm` | scores to ten times `tolerance` (0.0001 by default); labels where \\|score\\| is larger |
| `auto` on dense documents | no tolerance is promised: what it selects may hang on last digits |

Dense means something else to each:

- To kernel methods documents are dense where more than about a quarter of their values are not zero: BLAS multiplies
  them then (`core/kernels/gram.py`).
- To `auto` they are dense where at least a tenth of the values is not zero: neighbours and kernels are tried then
  (`core/selection/eligibility.py`).

Of several classes it is half the difference of the two largest scores that must be larger.
No choice of a piece of a loss hangs on less than the tolerance: a convex solve goes on, to 1e-6 if need be, while a
document is so near to a kink that it could be on either side.
A prediction by a kernel model may differ in the last digits of single precision (1e-7 of its largest kernel value).
Another version of Halfmoon, NumPy, SciPy or Numba may give other bits.

Measured on text, noisy clouds and images of digits, 200 to 300 documents each, C = 10: OpenBLAS as on Prescott,
Haswell, Zen and SkylakeX, compiled code for generic x86-64 and x86-64-v3, 1 and 3 threads.

| | text | clouds | digits |
| --- | --- | --- | --- |
| `kernel_svm` | 0 | 6e-7 | 8e-4 |
| `ramp_svm` | 0 | 6e-7 | 8e-4 |
| `cccp_tsvm` | 0 | 5e-4 | 6e-4 |
| `ctsvm` | 3e-8 | 7e-7 | 4e-7 |

These are the largest differences of a score. No label differed. `tests/core/test_tolerance.py` holds a sample of it.
With C and gamma chosen by the data, where C was 300 to 600, they were up to 3e-3, of `ctsvm` 4e-5; the choice was the
same on all.
On twelve other sets with C of 1 and 30 they were at most 9e-4, of `ctsvm` 1.4e-5; with `"tolerance": 1e-6` at most
1e-5.

## What it costs

Nothing that was measured. Beside the code before, whose sums the compiler could reorder, `python -m benchmarks solvers`
on one AMD EPYC, minutes apart:

| | before | now |
| --- | --- | --- |
| supervised, 100,000 documents | 4.9 units | 4.5 units |
| TSVM | 39.4 | 34.9 |
| annealing | 94.4 | 86.0 |
| TSVM, one switch at a time | 307 | 283 |
| supervised, 20 classes of `20news-bydate` | 1.43 s | 1.37 s |
| TSVM, 20 classes | 5.61 s | 5.85 s |

A unit is a product with the matrix and one with its transpose by SciPy; runs differ by 2 to 11 %.
Two things made up for what reordering had given: sums of rows in four lanes, and loops that write one array each.
"""


def main(names: list[str]) -> None:
    """Run all machines, or a sample of them, compare, write the page. Fails where two differ."""
    begun, some = time.monotonic(), names == ["sample"]
    runs: list[tuple[str, str, int, dict[str, str]]] = [(cpu, blas, threads, {}) for cpu in PROCESSORS for blas in BLAS for threads in THREADS]
    runs += [(cpu, "Prescott", threads, PLAIN) for cpu in ("generic", "x86-64-v3") for threads in (1, 3)]
    if some:
        runs = [(cpu, blas, threads, {}) for cpu, blas in zip(PROCESSORS, BLAS, strict=True) for threads in (1, 3)] + runs[-4::3]
    found: dict[str, Counter[str]] = {}
    lines, left_out = [], []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(lambda run: _digests(*run), runs))
    for (cpu, blas, threads, more), answers in zip(runs, made, strict=True):
        if answers is None:
            left_out.append(cpu)
            continue
        lines.append((cpu, blas, threads, bool(more)))
        for name, digest in answers.items():
            found.setdefault(name, Counter())[digest] += 1
    rows = [[name, len(digests), sum(digests.values()), "equal" if len(digests) == 1 else "DIFFERENT"] for name, digests in found.items()]
    note = (
        f"Made by `python -m benchmarks.reproducibility{' sample' if some else ''}` on: {machine()}; {time.monotonic() - begun:.0f} s.\n\n"
        f"{_DOCUMENTS} made-up texts, words and pairs of words, 2 and {_CLASSES} classes. {len(lines)} runs:\n\n"
        f"- code compiled for {_all(lines, 0)};\n- OpenBLAS as on {_all(lines, 1)};\n- {_all(lines, 2)} threads;\n"
        f"- in {sum(line[3] for line in lines)} of the runs NumPy and the C library as on a processor without AVX2."
        + (f" Not run, since this processor cannot: {', '.join(sorted(set(left_out)))}." if left_out else "")
    )
    write(_PAGE, f"{_HEAD}\n## Tried\n\n{note}\n\n{table(['training', 'different digests', 'runs', ''], rows)}")
    if any(len(digests) > 1 for digests in found.values()):
        sys.exit("the bits differ")


def _all(lines: list[tuple[str, str, int, bool]], place: int) -> str:
    return ", ".join(dict.fromkeys(str(line[place]) for line in lines))


def _digests(cpu: str, blas: str, threads: int, more: dict[str, str]) -> dict[str, str] | None:
    """None where this processor has not the instructions."""
    environment = {**os.environ, "NUMBA_CPU_NAME": cpu, "OPENBLAS_CORETYPE": blas, **more}
    command = [sys.executable, "-W", "ignore", "-m", "tests.core.digests", *map(str, (threads, _DOCUMENTS, _CLASSES))]
    done = subprocess.run(command, env=environment, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode < 0:  # an illegal instruction
        return None
    if done.returncode:
        sys.exit(done.stderr)
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


if __name__ == "__main__":
    main(sys.argv[1:])
