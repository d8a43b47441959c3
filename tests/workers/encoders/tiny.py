"""A static encoder of four tokens in a folder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

TABLE = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 4]], np.float32)


def static_folder(folder: Path, table: NDArray[np.float32] = TABLE) -> Path:
    """A static encoder of the words goal, vote and late."""
    folder.mkdir(exist_ok=True)
    vocabulary = {"[UNK]": 0, "goal": 1, "vote": 2, "late": 3}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    save_file({"embeddings": table}, folder / "model.safetensors")
    return folder
