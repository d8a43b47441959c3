"""Counts of texts by a cluster: the job stores parts of the texts, and takes what tasks have counted and merged, a bucket at a time."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from distributed import Client, Future

from core.documents.kinds import TextRows, spans
from core.documents.text.batches import TextCheckpoint
from core.documents.text.counts import Frequencies
from core.documents.text.runs import WordCounts
from core.documents.text.words import drawn_multiplier
from core.progress import Part
from workers.cluster.engine import ClusterStore
from workers.cluster.texts import Counting, count_terms, count_words, merge_terms, merge_words, store_list, store_texts
from workers.cluster.waiting import Waiting, told
from workers.contract import File

_PART_BYTES = 1 << 25
"""bytes of texts that a task counts, in some seconds"""
_BUCKET_BYTES = 1 << 24
"""bytes of texts for each bucket: its counts are some millions"""
_COUNTED = 0.85
"""share of the work that counting is; the rest is merging"""


class ClusterCounter:
    """A core.documents.text.tfidf_by_parts.Counter. What it stores is removed with all of ``stored``. Raises ClusterUnavailable where
    scheduler or workers do not answer."""

    def __init__(self, texts: TextRows, client: Client, stored: ClusterStore, report: TextCheckpoint) -> None:
        self._texts, self._client, self._stored = texts, client, stored
        self._done = 0.0
        self._waiting = Waiting(client, lambda: report(self._done, 0))
        self._parts: list[File] = []

    def words(self, least: int, part: Part) -> Iterator[WordCounts]:
        """See Counter."""
        counting, ranges = self._counting(), list(spans(self._texts.indptr, self._texts.n_rows, _PART_BYTES))
        for number, (start, stop) in enumerate(ranges):
            self._parts.append(store_texts(self._stored.store, f"{self._stored.prefix}/parts/{number}", self._texts.between(start, stop)))
            self._waiting.look([])
        yield from self._merged(counting, count_words, (), merge_words, (least,), part)

    def terms(self, words: Sequence[str], least: int, most: int, part: Part) -> Iterator[Frequencies]:
        """See Counter."""
        known = store_texts(self._stored.store, f"{self._stored.prefix}/words", TextRows.of(words))
        yield from self._merged(self._counting(), count_terms, (known,), merge_terms, (least, most), part)

    def _counting(self) -> Counting:
        n_bytes = int(self._texts.indptr[-1] - self._texts.indptr[0])
        return Counting(self._stored.url, self._stored.prefix, int(drawn_multiplier()), 1 + n_bytes // _BUCKET_BYTES)

    def _merged(
        self,
        counting: Counting,
        count: Callable[..., File],
        known: tuple[File, ...],
        merge: Callable[..., Any],
        bounds: tuple[int, ...],
        part: Part,
    ) -> Iterator[Any]:
        """What the tasks of each bucket give, in the order of the buckets."""
        counted, merging = part.part(0.0, _COUNTED), part.part(_COUNTED, 1.0)
        with told():
            parts = [self._submit(count, file, *known, counting) for file in self._parts]
        key, runs = f"{self._stored.prefix}/lists/{secrets.token_hex(4)}", list(self._in_turn(parts, counted))
        listed = store_list(self._stored.store, key, runs)
        with told():
            buckets = [self._submit(merge, bucket, listed, counting, *bounds) for bucket in range(counting.n_buckets)]
        yield from self._in_turn(buckets, merging)

    def _submit(self, function: Callable[..., Any], *given: Any) -> Future[Any]:
        return self._client.submit(function, *given, pure=False)

    def _in_turn(self, futures: list[Future[Any]], part: Part) -> Iterator[Any]:
        """What these compute, one after the other; each is let go when the next is waited for."""
        count = len(futures)
        while futures:
            found = self._waiting.gathered(futures[:1])
            assert found is not None, "nobody has given up"
            del futures[0]
            self._done = part.at(1 - len(futures) / count)
            yield found[0]
