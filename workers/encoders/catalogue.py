"""The encoders that an operator names, loaded when they are first used."""

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path

from core.documents.part_columns import EncoderId
from workers.encoders.encoder import Encoder, EncoderUnavailable
from workers.encoders.onnx_model import CONFIG, OnnxModel
from workers.encoders.static_table import StaticTable
from workers.encoders.tensors import settings_in

_ONNX = ("model.onnx", "onnx/model.onnx")
_TABLE = "model.safetensors"


class Encoders:
    """Encoders by name. Threads may use them side by side."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders
        self._lock = threading.Lock()
        self._loaded: dict[str, Encoder] = {}
        self._ids: dict[str, EncoderId] = {}

    @property
    def names(self) -> list[str]:
        """Their names, sorted."""
        return sorted(self._folders)

    def id(self, name: str) -> EncoderId:
        """Name and digest of an encoder; raises EncoderUnavailable."""
        with self._lock:
            if name not in self._ids:
                folder = self._folder(name)
                weights = _weights_in(folder)
                files = [
                    weights,
                    folder / "tokenizer.json",
                    *([folder / CONFIG] if _is_bare_transformer(folder, weights) else []),
                ]
                self._ids[name] = EncoderId(name, hashlib.sha256(b"".join(map(_digest, files))).hexdigest())
            return self._ids[name]

    def load(self, wanted: EncoderId) -> Encoder:
        """The encoder of this name; raises EncoderUnavailable if it is another one than wanted."""
        if self.id(wanted.name).digest != wanted.digest:
            raise EncoderUnavailable(
                f"is another one here ({self.id(wanted.name).digest[:12]}) than that of the model "
                f"({wanted.digest[:12]})"
            )
        with self._lock:
            if wanted.name not in self._loaded:
                folder = self._folder(wanted.name)
                weights = _weights_in(folder)
                static = weights.name == _TABLE and not _is_bare_transformer(folder, weights)
                self._loaded[wanted.name] = (
                    StaticTable.load(folder, weights) if static else OnnxModel.load(folder, weights)
                )
            return self._loaded[wanted.name]

    def _folder(self, name: str) -> Path:
        if name not in self._folders:
            raise EncoderUnavailable(f"is not known here; HALFMOON_ENCODERS names {', '.join(self.names) or 'none'}")
        return self._folders[name]


def _weights_in(folder: Path) -> Path:
    for name in (*_ONNX, _TABLE):
        if (folder / name).is_file():
            return folder / name
    raise EncoderUnavailable(f"has neither {', '.join(_ONNX)} nor {_TABLE} in {folder}")


def _is_bare_transformer(folder: Path, weights: Path) -> bool:
    """Whether the weights are the weights of a transformer, with layers known from its settings."""
    return weights.name == _TABLE and "num_hidden_layers" in settings_in(folder / CONFIG)


def _digest(file: Path) -> bytes:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").digest()
    except OSError as error:
        raise EncoderUnavailable(f"has a file that cannot be read: {error}") from None
