"""The part of the demo on meaning: the same texts by their terms, by the vectors of a pre-trained encoder, and by both.

The encoder is the static table of WordLlama, which is installed with the demo where it has a wheel: Linux on x86-64.
"""

import hashlib
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from rich.console import Console

from app.cli.demo.calls import bars, call, found_labels, results, train
from workers.encoders.encoder import EncoderUnavailable, Vectors
from workers.encoders.static_table import StaticTable

_FILES = {
    "model.safetensors": (
        "weights/l2_supercat_256.safetensors",
        "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    ),
    "tokenizer.json": (
        "tokenizers/l2_supercat_tokenizer_config.json",
        "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
    ),
}
"""by their names in the folder of an encoder: where the files lie in the package, and their SHA-256 in version 0.4.0"""

Document = dict[str, Any]


def show_meaning(
    client: httpx.Client,
    console: Console,
    documents: Sequence[Document],
    truth: dict[str, str],
    by_terms: dict[str, Any],
) -> None:
    """Train on vectors, and on texts with them; compare with the job ``by_terms``. Raises CannotStart with what went
    wrong.

    ``documents`` have ids and texts, some of them labels; ``truth`` are the labels of the others, by id.
    """
    vectors = vectors_of([document["text"] for document in documents])
    if vectors is None:
        console.print(
            "An encoder would know what the words mean. WordLlama, which the demo takes, is not installed here.\n"
        )
        return
    dense = [_with_vector(document, vector) for document, vector in zip(documents, vectors.tolist(), strict=True)]
    jobs = {"terms": by_terms}
    with bars(console) as progress:
        for title, sent in (("vectors", [_without_text(document) for document in dense]), ("both", dense)):
            made = call(client, "POST", f"/v1/datasets?name={title}", json={"documents": sent})
            jobs[title] = train(
                client, progress, f"auto on {title}", {"dataset": made["id"], "model": f"functions-{title}"}
            )
    table = results(
        f"The same labels, by what is known of a text; vectors have {vectors.shape[1]} numbers", ["auto on"], ["wrong"]
    )
    for title, job in jobs.items():
        given = found_labels(client, job["id"], len(truth))
        table.add_row(title, f"{np.mean([given[id]['label'] != label for id, label in truth.items()]):.1%}")
    console.print(table)


def vectors_of(texts: Sequence[str]) -> Vectors | None:
    """The vectors of texts; None where the encoder is not installed, or is another one."""
    package = find_spec("wordllama")
    if package is None or not package.submodule_search_locations:
        return None
    root = Path(package.submodule_search_locations[0])
    with tempfile.TemporaryDirectory(prefix="halfmoon-demo-") as name:
        folder = Path(name)
        try:
            for own, (file, digest) in _FILES.items():
                content = (root / file).read_bytes()
                if hashlib.sha256(content).hexdigest() != digest:
                    return None
                (folder / own).write_bytes(content)
            return StaticTable.load(folder, folder / "model.safetensors").encode(texts)
        except (OSError, EncoderUnavailable):
            return None


def _with_vector(document: Document, vector: list[float]) -> Document:
    return {**document, "vector": vector}


def _without_text(document: Document) -> Document:
    return {name: value for name, value in document.items() if name != "text"}
