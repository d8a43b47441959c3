"""Terms of texts that outgrow memory: ``python -m benchmarks.terms`` writes the section *Terms of text by parts,
measured* of ``docs/scale.md``.

Texts are those of benchmarks.large_text, made in pieces and mapped. Each engine finds their terms and writes their rows
in a process of its own, once as it likes, and once where the process may allocate no more than a limit beyond what it
holds when it begins (RLIMIT_DATA).
"""

import argparse
import hashlib
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.base import apart, machine, put_section, table
from benchmarks.large_text import made_up
from benchmarks.running import status_bytes
from core.documents.kinds import TextRows
from core.documents.text.tfidf import TextTerms
from core.progress import TracePoint
from core.watch import Watch
from storage.errors import JobTooLarge
from storage.repositories.datasets.files.npy import NpyWriter, open_array
from storage.store import open_store
from workers.worker.engines import EngineChoice
from workers.worker.inputs import size_of, training_inputs

_PIECE = 10_000
_UNLIMITED = 1 << 40
_TITLE = "## Terms of text by parts, measured"


def spread(folder: Path, count: int) -> None:
    """So many texts, in files."""
    indptr, letters = NpyWriter(folder / "indptr.npy", "<i8"), NpyWriter(folder / "text.npy", "|u1")
    indptr.append(TextRows.of([]).indptr)
    for start in range(0, count, _PIECE):
        texts = TextRows.of(made_up(min(_PIECE, count - start), seed=start)[0])
        indptr.append(texts.indptr[1:] + len(letters))
        letters.append(texts.data)
    indptr.finish()
    letters.finish()


def texts_in(folder: Path) -> TextRows:
    """The texts of ``spread``, mapped."""
    return TextRows(open_array(folder / "indptr.npy"), open_array(folder / "text.npy"))


def run(engine: Any, folder: Path, limit: int) -> dict[str, Any]:
    """What an engine finds in the texts, and what that takes.

    ``limit``: bytes that may be allocated, 0 for as many as it likes.
    """
    texts, most, beats = texts_in(folder), limit or _UNLIMITED, [time.perf_counter()]
    request = type("Request", (), {"algorithm": "svm", "options": {}, "text": {}})
    choice = EngineChoice(request, 100, 2, len(os.sched_getaffinity(0)), most, engine)  # type: ignore[arg-type]

    def observer(_: TracePoint) -> bool:
        beats.append(time.perf_counter())
        return False

    def read(documents: TextRows, engine: Any) -> dict[str, Any]:
        beats[:] = [time.perf_counter()]
        used = time.process_time()
        with training_inputs(store, documents, {}, Watch(observer), most, engine) as found:
            assert isinstance(found.vocabulary, TextTerms)
            took, used = time.perf_counter() - beats[0], time.process_time() - used
            digest = hashlib.sha256(json.dumps(list(found.vocabulary.words)).encode())
            for array in (found.vocabulary.keys, found.vocabulary.idf, *found.rows.csr):
                for start in range(0, len(array), _PIECE * 1000):
                    digest.update(array[start : start + _PIECE * 1000].tobytes())
            silence = max(after - before for before, after in zip(beats, [*beats[1:], beats[0] + took], strict=True))
            about = {"engine": found.terms_engine, "nonzeros": found.rows.n_nonzeros, "digest": digest.hexdigest()[:12]}
            return {**about, "seconds": took, "used": used, "silence": silence, "load": os.getloadavg()[0]}

    store = open_store(f"file://{folder}/store")
    try:
        chosen = choice.of_text(size_of(texts, {}))
        read(texts.between(0, 1000), chosen)  # what is loaded with the first is not counted
        if limit:
            allowed = status_bytes("VmData") + limit
            resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
        return read(texts, chosen)
    except JobTooLarge as error:
        return {"refused": str(error)}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=400_000)
    parser.add_argument("--limit", type=int, default=512, help="MiB")
    parser.add_argument("--run", nargs=3)
    given = parser.parse_args()
    if given.run:
        engine, folder, limit = given.run
        print(json.dumps(run(engine, Path(folder), int(limit))))
        return
    lines = []
    with tempfile.TemporaryDirectory() as name:
        spread(Path(name), given.documents)
        n_bytes = len(texts_in(Path(name)).data)
        for limit, engine in ((0, "memory"), (0, "mapped"), (given.limit, "memory"), (given.limit, "mapped")):
            done = apart("benchmarks.terms", "--run", engine, name, limit << 20)
            print(engine, limit, done, flush=True)
            row = [engine, f"{limit} MiB" if limit else "none"]
            if "refused" in done:
                lines.append([*row, f"refused: *{done['refused']}*", "", "", "", ""])
                continue
            ended = f"{done['nonzeros']:,} nonzeros, digest {done['digest']}"
            lines.append([*row, ended, *(f"{done[each]:.1f}" for each in ("seconds", "used", "silence", "load"))])
    heads = ["engine", "limit", "ended", "s", "CPU s", "longest silence, s", "load"]
    made = f"Made by `python -m benchmarks.terms --documents {given.documents} --limit {given.limit}` on: {machine()}."
    about = (
        f"{given.documents:,} texts by Zipf's law, {n_bytes / 1e6:,.0f} MB, words and pairs, at most 500,000 "
        "terms: the terms are found, and the "
        "rows are written. The digest is of the words, the terms, their weights, and all rows. A limit is on "
        "what the process allocates beyond "
        "what it holds when it begins (`RLIMIT_DATA`), and is what the job is told that it may have. Silence "
        "is the time between two looks for a "
        "cancel."
    )
    put_section("scale.md", f"{_TITLE}\n\n{about}\n\n{made}\n\n{table(heads, lines)}")


if __name__ == "__main__":
    main()
