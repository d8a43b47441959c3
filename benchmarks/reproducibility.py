"""The same bits on every processor and with any number of threads, tried: ``python -m benchmarks.reproducibility``
writes docs/reproducibility.md.

Compiled code is made for other processors (``NUMBA_CPU_NAME``), OpenBLAS is told to be on others
(``OPENBLAS_CORETYPE``), and NumPy and the C library are kept from using what this one has. What this processor cannot
run is left out, and said.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.base import machine, write

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
_NOTES = Path(__file__).with_name("reproducibility-notes.md")


def main(names: list[str]) -> None:
    """Run all machines, or a sample of them, compare, write the page. Fails where two differ."""
    begun, some = time.monotonic(), names == ["sample"]
    runs: list[tuple[str, str, int, dict[str, str]]] = [
        (cpu, blas, threads, {}) for cpu in PROCESSORS for blas in BLAS for threads in THREADS
    ]
    runs += [(cpu, "Prescott", threads, PLAIN) for cpu in ("generic", "x86-64-v3") for threads in (1, 3)]
    if some:
        runs = [
            (cpu, blas, threads, {}) for cpu, blas in zip(PROCESSORS, BLAS, strict=True) for threads in (1, 3)
        ] + runs[-4::3]
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
    different = [name for name, digests in found.items() if len(digests) > 1]
    note = (
        f"Made by `python -m benchmarks.reproducibility{' sample' if some else ''}` on: {machine()}; "
        f"{time.monotonic() - begun:.0f} s.\n\n"
        f"{_DOCUMENTS} made-up texts, words and pairs of words, 2 and {_CLASSES} classes. {len(lines)} runs:\n\n"
        f"- code compiled for {_all(lines, 0)};\n- OpenBLAS as on {_all(lines, 1)};\n- {_all(lines, 2)} threads;\n"
        f"- in {sum(line[3] for line in lines)} of the runs NumPy and the C library as on a processor without AVX2."
        + (f" Not run, since this processor cannot: {', '.join(sorted(set(left_out)))}." if left_out else "")
    )
    bits = f"DIFFERENT bits: {'; '.join(different)}." if different else f"Equal bits in all runs: {'; '.join(found)}."
    write(_PAGE, f"{_NOTES.read_text()}\n## Tried\n\n{note}\n\n{bits}\n")
    if different:
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
