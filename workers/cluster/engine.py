"""The engine of a cluster: the rows of a training in shards, which the workers of Dask map and read side by side.

The job keeps its vectors, and a mapped copy of the rows for what is no pass. A pass sends each shard the vectors of its columns, and those vectors of
rows that have changed. What comes back are scores, and one vector of sums: they go from shard to shard, and are added in the order of the parts.
"""

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import wait as wait_for_threads
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import dask
import numpy as np
from distributed import Client, Future, wait
from numpy.typing import NDArray

from core.documents.full_rows import FullRows
from core.documents.rows import SparseRows
from core.documents.space import Space
from core.engine.engine import Answers, Engine
from core.engine.mapped import reading_of
from core.engine.parts import parts_of
from core.engine.passes import Passes
from core.engine.requests import Adjoint, Cut, Product, Scores, Vector
from core.numerics.width import WIDTH
from core.progress import Checkpoint
from workers.cluster.address import TlsFiles, security_of
from workers.cluster.shards import OpenShard, Shard, write_shard
from workers.cluster.tasks import Kind, added, answer, received, scores_of
from workers.errors import ClusterUnavailable
from workers.store import Store

_PATIENCE = 0.1
"""seconds between two looks at the observer while others work"""
_LOST_SECONDS = 20.0
"""seconds for which the scheduler may not answer"""
_LEAST_NONZEROS = 1 << 20
"""of rows that are worth a cluster: below, the way there takes longer than to read them"""
_CONFIG = {"distributed.admin.large-graph-warning-threshold": "1 TB", "distributed.comm.timeouts.connect": f"{_LOST_SECONDS:g} s"}


class ClusterStore(NamedTuple):
    """Where shards are stored."""

    store: Store
    url: str
    prefix: str
    """of the keys of one attempt, whose leftovers are removed with it"""


class ClusterEngine(Engine):
    """Rows in the shards of a cluster. Raises ClusterUnavailable where scheduler or workers do not answer: the attempt is then made again."""

    name = "cluster"

    def __init__(self, client: Client, space: Space, stored: ClusterStore) -> None:
        super().__init__(space)
        self._client, self._stored = client, stored

    def over(self, rows: SparseRows, threads: int | None, checkpoint: Checkpoint) -> Answers:
        """See Engine. Few rows are read here."""
        local = Passes(rows, threads, checkpoint, reading_of(rows, None))
        if rows.n_nonzeros < _LEAST_NONZEROS:
            return local
        try:
            return ClusterAnswers(self._client, self._stored, rows, local, checkpoint)
        except BaseException:
            local.close()
            raise


@contextmanager
def connected(address: str, files: TlsFiles) -> Iterator[Client]:
    """A connection to the scheduler; raises CannotStart for an address that is not allowed, and ClusterUnavailable."""
    security = security_of(address, files)
    with dask.config.set(_CONFIG):
        try:
            client = Client(address, security=security, timeout=_LOST_SECONDS, direct_to_workers=True, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise ClusterUnavailable(f"the scheduler at {address} does not answer: {error}") from None
        try:
            yield client
        finally:
            with suppress(Exception):  # what is lost is lost
                client.close(timeout=2)


class _Placed(NamedTuple):
    """A shard, as the job knows it."""

    future: Future[Any]
    rows: slice
    columns: NDArray[np.int64]
    """the features of its columns, and the bias"""


class ClusterAnswers:
    """See core.engine.engine.Answers."""

    def __init__(self, client: Client, stored: ClusterStore, rows: SparseRows, local: Passes, checkpoint: Checkpoint) -> None:
        self._client, self._local, self._checkpoint, self._length = client, local, checkpoint, rows.n_features + 1
        self._stored = stored._replace(prefix=f"{stored.prefix}/shards/{secrets.token_hex(4)}")
        self._kept: OrderedDict[str, Future[Any]] = OrderedDict()
        self._lock = Lock()
        self.n_threads = local.n_threads
        self.bytes_sent = 0
        """bytes of all vectors sent to shards"""
        self._look([])
        with _told():
            shares = self._shares(parts_of(rows))
        self._shards = [self._placed(rows, parts) for parts in shares]

    def _shares(self, parts: Sequence[tuple[int, int]]) -> list[Sequence[tuple[int, int]]]:
        """The parts of each shard, of which there is one for each thread of the cluster. It does not matter which share a shard, since sums are those
        of parts; but they go from shard to shard, so that few shards are quick."""
        count = max(1, min(len(parts), sum(self._client.nthreads().values())))
        edges = np.linspace(0, len(parts), count + 1).round().astype(int).tolist()
        return [parts[first:last] for first, last in pairwise(edges)]

    def _placed(self, rows: SparseRows, parts: Sequence[tuple[int, int]]) -> _Placed:
        """Store a shard, and have a worker map it."""
        start, stop = parts[0][0], parts[-1][1]
        own, folder = rows.between(start, stop), self._stored.store.staging()
        path = Path(folder) / "shard"
        columns = write_shard(path, own)
        file = self._stored.store.upload(f"{self._stored.prefix}/{start}", path)
        folder.rmdir()
        ranges = tuple((first - start, last - start) for first, last in parts)
        shard = Shard(self._stored.url, file, ranges, own.n_rows, own.n_nonzeros, len(columns), isinstance(rows, FullRows))
        with _told():
            future = self._client.submit(OpenShard, shard, key=f"shard-{file.sha256}-{secrets.token_hex(4)}")
        self._checkpoint()
        return _Placed(future, slice(start, stop), np.append(columns.astype(np.int64), self._length - 1))

    def product(self, request: Product, alone: bool = False) -> Vector:
        """See Answers."""
        return self.products([request])[0]

    def products(self, requests: Sequence[Product]) -> list[Vector]:
        """See Answers."""
        answers: list[Vector] = []
        for first in range(0, len(requests), WIDTH):
            vectors, weights, scores = (list(each) for each in zip(*requests[first : first + WIDTH], strict=True))
            answers += self._ask("product", vectors, weights, [(out, own != 0) for out, own in zip(scores, weights, strict=True)])
        return answers

    def scores(self, request: Scores, alone: bool = False) -> None:
        """See Answers."""
        self._ask("scores", [request.vector], [request.skipped], [(request.scores, request.skipped == 0)])

    def adjoint(self, request: Adjoint, alone: bool = False) -> None:
        """See Answers. Few rows are read here, where they are added to the sums one by one."""
        if self._local.reads_few(request):
            self._local.adjoint(request, alone)
        else:
            request.sums[:] += self._ask("adjoint", [], [request.weights], [])[0]

    def cut(self, request: Cut) -> Vector:
        """See Answers."""
        return self._ask("cut", [request.vector], [request.labels, request.weights], [(request.scores, np.ones(len(request.scores), bool))])[0]

    def is_light(self, request: Product) -> bool:
        """See Answers."""
        return self._local.is_light(request)

    def side_by_side(self, works: Iterable[Callable[[], None]], checkpoint: Checkpoint | None = None) -> None:
        """See Answers."""
        self._local.side_by_side(works, checkpoint)

    def close(self) -> None:
        """See Answers."""
        self._local.close()
        self._kept.clear()
        self._shards = []
        self._stored.store.delete(self._stored.prefix)

    def _ask(self, kind: Kind, vectors: Sequence[Vector], rows: Sequence[Vector], sinks: Sequence[tuple[Vector, NDArray[np.bool_]]]) -> list[Vector]:
        """One pass over all shards: scores are written to the ``sinks``, where they are chosen; the sums of each right-hand side are returned."""
        with _told(), self._lock:
            found = [self._submitted(kind, shard, place, vectors, rows) for place, shard in enumerate(self._shards)]
            scores = [self._client.submit(scores_of, each, pure=False) for each in found] if sinks else []
            sums = [] if kind == "scores" else [self._added(found)]
        values = self._gathered([*scores, *sums])
        for shard, of_shard in zip(self._shards if sinks else [], values[: len(scores)], strict=True):
            for (out, chosen), own in zip(sinks, of_shard, strict=True):
                out[shard.rows][chosen[shard.rows]] = own
        return list(values[-1]) if sums else []

    def _submitted(self, kind: Kind, shard: _Placed, place: int, vectors: Sequence[Vector], rows: Sequence[Vector]) -> Future[Any]:
        own = [vector[shard.columns] for vector in vectors]
        self.bytes_sent += sum(vector.nbytes for vector in own)
        return self._client.submit(answer, shard.future, kind, own, *(self._sent(place, each[shard.rows]) for each in rows), pure=False)

    def _added(self, found: Sequence[Future[Any]]) -> Future[Any]:
        """The sums of all shards, which go from one to the next."""
        total: Future[Any] | None = None
        for each, shard in zip(found, self._shards, strict=True):
            total = self._client.submit(added, total, each, shard.future, self._length, pure=False)
        assert total is not None, "rows have a shard at least"
        return total

    def _sent(self, place: int, rows: Vector) -> Future[Any]:
        """A vector of the rows of a shard: one that was sent before is not sent again."""
        key = f"rows-{self._stored.prefix.rpartition('/')[2]}-{place}-{hashlib.blake2b(rows.data, digest_size=16).hexdigest()}"
        future = self._kept.pop(key, None)
        if future is None or future.cancelled():
            future = self._client.submit(received, rows.copy(), key=key)
            self.bytes_sent += rows.nbytes
        self._kept[key] = future
        while len(self._kept) > 4 * WIDTH * len(self._shards):
            self._kept.popitem(last=False)
        return future

    def _gathered(self, futures: list[Future[Any]]) -> list[Any]:
        """What these compute, while the observer is asked now and then; raises ClusterUnavailable, and what the checkpoint does."""
        while True:
            self._wait(futures)
            values = self._fetched(futures)
            if values is not None:
                return values

    def _wait(self, futures: list[Future[Any]]) -> None:
        """Return when all have been computed, if only for a moment: a worker that dies takes with it what nobody has fetched."""
        while True:
            self._look(futures)
            with _told(), suppress(TimeoutError), self._client.as_current():
                wait(futures, timeout=_PATIENCE)
                return

    def _fetched(self, futures: list[Future[Any]]) -> list[Any] | None:
        """The values; None if one was lost on the way, and is computed again."""
        loop: Any = self._client.loop
        fetching = asyncio.run_coroutine_threadsafe(self._client.gather(futures, asynchronous=True), loop.asyncio_loop)
        try:
            while True:
                wait_for_threads([fetching], _PATIENCE)
                if fetching.done():
                    with _told():
                        return list(fetching.result())
                self._look(futures)
                if not all(future.done() for future in futures):
                    return None
        finally:
            fetching.cancel()

    def _look(self, futures: list[Future[Any]]) -> None:
        self._checkpoint()
        if any(future.cancelled() for future in futures) or self._client.status != "running":
            raise ClusterUnavailable("the scheduler of the cluster has ended, or has lost this job")


@contextmanager
def _told() -> Iterator[None]:
    """What Dask raises becomes ClusterUnavailable, and so does what a worker's system refuses it. What else tasks raise stays as it is."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in ("distributed", "tornado", "concurrent", "asyncio"):
            raise ClusterUnavailable(f"the cluster failed: {type(error).__name__}: {error}") from error
        raise
