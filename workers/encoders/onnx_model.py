"""Transformers in the layout of sentence-transformers, as ONNX or as the weights of BERT, run by onnxruntime."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from workers.encoders.bert import bert_graph, bert_in, largest_product
from workers.encoders.encoder import MOST_TOKENS, EncoderUnavailable, Tokens, Vectors, settings_in, tokens_in
from workers.encoders.packed import PACKED, packed_model

CONFIG = "config.json"
"""what a transformer is, in the words of transformers"""
_AT_ONCE = 16
_SLOWER = ["SkipLayerNormFusion"]
"""optimizations of onnxruntime by which these graphs take longer"""


class OnnxModel:
    """An encoder by a transformer: it averages the outputs of the tokens, or takes the first, as its folder says."""

    def __init__(
        self,
        session: Any,
        tokens: Tokens,
        *,
        first: bool,
        embedded: Callable[[Sequence[int]], Vectors] | None = None,
        threads: int = 1,
    ) -> None:
        """``embedded`` makes the vectors of tokens that the graph of one text takes; None: it takes tokens."""
        self._session, self._tokens, self._first, self._embedded = session, tokens, first, embedded
        self._threads = threads
        self._inputs = [given.name for given in session.get_inputs()]
        self.width = self.encode(["a"]).shape[1]
        """See Encoder."""

    @classmethod
    def load(cls, folder: Path, file: Path, threads: int = 1) -> Self:
        """The model of a file; raises EncoderUnavailable. Texts are encoded by so many threads."""
        try:
            import onnxruntime
        except ImportError:
            raise EncoderUnavailable("needs the extra: pip install 'halfmoon[encoders]'") from None
        options = onnxruntime.SessionOptions()
        # threads of its own would not outlive a fork
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # "1": weights get no sign, by which products are exact everywhere, and take twice as long
        options.add_session_config_entry("session.x64quantprecision", "0" if _multiplies_signed(onnxruntime) else "1")
        first = _takes_first(settings_in(folder / "1_Pooling" / CONFIG))
        bert = None
        try:
            if file.name == PACKED:
                bert, tokens = packed_model(file)
            else:
                config = settings_in(folder / CONFIG)
                most = settings_in(folder / "sentence_bert_config.json").get("max_seq_length", MOST_TOKENS)
                tokens = tokens_in(folder, min(int(most), int(config.get("max_position_embeddings", most))))
                bert = None if file.suffix == ".onnx" else bert_in(file, config)
            graph = str(file) if bert is None else bert_graph(bert)
            session = onnxruntime.InferenceSession(
                graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=_SLOWER
            )
            return cls(
                session, tokens, first=first, embedded=None if bert is None else bert.embedding(), threads=threads
            )
        except EncoderUnavailable:
            raise
        except Exception as error:  # onnxruntime has an error for everything
            raise EncoderUnavailable(f"has a {file.name} that cannot be run: {error}") from None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See Encoder. Texts of about the same length are encoded together, if the graph takes several; the longest
        first, so that no thread waits long for another at the end.
        """
        order = np.argsort([-len(text) for text in texts], kind="stable")
        at_once = _AT_ONCE if self._embedded is None else 1
        chosen = [order[start : start + at_once] for start in range(0, len(order), at_once)]
        batches = ([texts[place] for place in places.tolist()] for places in chosen)
        if self._threads == 1 or len(chosen) == 1:
            parts = list(map(self._encoded, batches))
        else:
            with ThreadPoolExecutor(min(self._threads, max(1, len(chosen)))) as pool:
                parts = list(pool.map(self._encoded, batches))
        found = np.zeros((len(texts), parts[0].shape[1] if parts else self.width), np.float32)
        for places, vectors in zip(chosen, parts, strict=True):
            found[places] = vectors
        return found

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        tokens = [self._tokens(text) or [0] for text in texts]
        lengths = np.array([len(each) for each in tokens])
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        if self._embedded is not None:
            states = self._run({"embedded": self._embedded(tokens[0])})
        else:
            ids = np.zeros_like(mask)
            ids[mask > 0] = np.concatenate(tokens)
            states = self._run({"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
        if states.ndim == 2:
            return states
        if self._first:
            return states[:, 0]
        return np.asarray((states * mask[:, :, None]).sum(axis=1) / lengths[:, None], np.float32)

    def _run(self, given: Mapping[str, NDArray[Any]]) -> Vectors:
        return np.asarray(self._session.run(None, {name: given[name] for name in self._inputs})[0], np.float32)


def _multiplies_signed(onnxruntime: Any) -> bool:
    """Whether products by weights of eight bits with sign are exact here. Processors of x86-64 without VNNI cut sums of
    two of them to 16 bits.
    """
    session = onnxruntime.InferenceSession(largest_product(), providers=["CPUExecutionProvider"])
    return bool((session.run(None, {"given": np.full((2, 64), 255, np.uint8)})[0] == 64 * 255 * 127).all())


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
