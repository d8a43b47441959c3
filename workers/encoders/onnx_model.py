"""Transformers in the layout of sentence-transformers, as ONNX or as the weights of BERT, run by onnxruntime."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from workers.encoders.bert import bert_graph
from workers.encoders.encoder import MOST_TOKENS, EncoderUnavailable, Vectors, tokenizer_in
from workers.encoders.tensors import settings_in

CONFIG = "config.json"
"""what a transformer is, in the words of transformers"""
_AT_ONCE = 16


class OnnxModel:
    """An encoder by a transformer: it averages the outputs of the tokens, or takes the first, as its folder says."""

    def __init__(self, session: Any, tokenizer: Any, *, first: bool) -> None:
        self._session, self._tokenizer, self._first = session, tokenizer, first
        self._inputs = [given.name for given in session.get_inputs()]
        self.width = self.encode(["a"]).shape[1]
        """See Encoder."""

    @classmethod
    def load(cls, folder: Path, file: Path) -> Self:
        """The model of a file; raises EncoderUnavailable. Texts are encoded by the thread that asks."""
        try:
            import onnxruntime
        except ImportError:
            raise EncoderUnavailable("needs the extra: pip install 'halfmoon[encoders]'") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        config = settings_in(folder / CONFIG)
        most = settings_in(folder / "sentence_bert_config.json").get("max_seq_length", MOST_TOKENS)
        most = min(int(most), int(config.get("max_position_embeddings", most)))
        first = _takes_first(settings_in(folder / "1_Pooling" / CONFIG))
        try:
            graph = str(file) if file.suffix == ".onnx" else bert_graph(file, config)
            session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
            return cls(session, tokenizer_in(folder, most), first=first)
        except EncoderUnavailable:
            raise
        except Exception as error:  # onnxruntime has an error for everything
            raise EncoderUnavailable(f"has a {file.name} that cannot be run: {error}") from None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See Encoder. Texts of about the same length are encoded together."""
        order = np.argsort([len(text) for text in texts], kind="stable")
        parts = [(chosen, self._encoded([texts[place] for place in chosen.tolist()])) for chosen in _batches(order)]
        found = np.zeros((len(texts), parts[0][1].shape[1] if parts else self.width), np.float32)
        for chosen, vectors in parts:
            found[chosen] = vectors
        return found

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        tokens = self._tokenizer.encode_batch(list(texts))
        longest = max(1, *(len(each.ids) for each in tokens), 1)
        ids, mask = np.zeros((len(texts), longest), np.int64), np.zeros((len(texts), longest), np.int64)
        for place, each in enumerate(tokens):
            ids[place, : len(each.ids)] = each.ids
            mask[place, : len(each.ids)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = np.asarray(self._session.run(None, {name: given[name] for name in self._inputs})[0], np.float32)
        if states.ndim == 2:
            return states
        if self._first:
            return states[:, 0]
        return np.asarray(
            (states * mask[:, :, None]).sum(axis=1) / np.maximum(mask.sum(axis=1, keepdims=True), 1), np.float32
        )


def _takes_first(pooling: Mapping[str, Any]) -> bool:
    """Whether the first token stands for a text, and not the average; raises EncoderUnavailable where it is something
    else.
    """
    modes = {
        name.removeprefix("pooling_mode_")
        for name, chosen in pooling.items()
        if name.startswith("pooling_mode_") and chosen is True
    }
    if not modes <= {"cls_token"} and not modes <= {"mean_tokens"}:
        raise EncoderUnavailable(f"pools its tokens by {', '.join(sorted(modes))}; known are mean_tokens or cls_token")
    return bool(modes & {"cls_token"})


def _batches(order: np.ndarray[Any, np.dtype[np.int64]]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    return [order[start : start + _AT_ONCE] for start in range(0, len(order), _AT_ONCE)]
