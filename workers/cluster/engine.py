"""The engine of a cluster: the rows of a training in shards, which the workers of Dask map and read side by side.

The job keeps its vectors, and a mapped copy of the rows for what is no pass. A pass sends each shard the vectors of its
columns, and those vectors of rows that have changed. What comes back are scores, and one vector of sums: they go from
shard to shard, and are added in the order of the parts.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import dask
import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from core.documents.rows import FullRows, Space, SparseRows
from core.engine.parts import part_ranges
from core.engine.passes import Engine, Passes
from core.engine.requests import Adjoint, Cut, Product, Scores, Vector
from core.numerics.width import WIDTH
from core.progress import Checkpoint
from storage.errors import ClusterUnavailable
from storage.store import Store
from workers.cluster import tasks
from workers.cluster.address import TlsFiles, security_of
from workers.cluster.tasks import FewRows, OpenShard, Sent, Shard, added, packed, received, scores_of, write_shard
from workers.cluster.workforce import Waiting, Workforce, named_errors, placement

_LOST_SECONDS = 20.0
"""seconds for which the scheduler may not answer"""
_LEAST_NONZEROS = 1 << 20
"""of rows that are worth a cluster: below, the way there takes longer than to read them"""
_KEPT_PASSES = 4
"""passes for which a vector of rows is kept that none of them uses"""
_CONFIG = {
    "distributed.admin.large-graph-warning-threshold": "1 TB",
    "distributed.comm.timeouts.connect": f"{_LOST_SECONDS:g} s",
}


class ClusterStore(NamedTuple):
    """Where shards are stored."""

    store: Store
    url: str
    prefix: str
    """of the keys of one attempt, whose leftovers are removed with it"""

    def close(self) -> None:
        """Remove all below the prefix."""
        self.store.delete(self.prefix)


class ClusterEngine(Engine):
    """Rows in the shards of a cluster.

    Raises ClusterUnavailable where scheduler or workers do not answer: the attempt is then made again.
    """

    def __init__(self, client: Client, space: Space, stored: ClusterStore) -> None:
        super().__init__("cluster", space)
        self._client, self._stored = client, stored

    def over(self, rows: SparseRows, threads: int | None, checkpoint: Checkpoint) -> Passes:
        """See Engine. Few rows are read here."""
        if rows.n_nonzeros < _LEAST_NONZEROS:
            return super().over(rows, threads, checkpoint)
        return ClusterPasses(self._client, self._stored, rows, threads, checkpoint)


@contextmanager
def connected(address: str, files: TlsFiles) -> Iterator[Client]:
    """A connection to the scheduler; raises CannotStart for an address that is not allowed, and ClusterUnavailable."""
    security = security_of(address, files)
    with dask.config.set(_CONFIG):
        try:
            client = Client(
                address, security=security, timeout=_LOST_SECONDS, direct_to_workers=True, set_as_default=False
            )
        except (OSError, TimeoutError) as error:
            raise ClusterUnavailable(f"the scheduler at {address} does not answer: {error}") from None
        try:
            yield client
        finally:
            with suppress(Exception):  # what is lost is lost
                client.close(timeout=2)


class _Placed(NamedTuple):
    """A shard, as the job knows it."""

    shard: Shard
    future: Future[Any]
    worker: str
    """address of the worker that is to read it; where that has gone, any other does"""
    rows: slice
    columns: NDArray[np.int64]
    """the features of its columns, and the bias"""


class _Kept(NamedTuple):
    """A vector of rows that a worker has."""

    future: Future[Any]
    asked: int
    """number of the pass that used it last"""


class ClusterPasses(Passes):
    """The passes over one matrix, made by the workers of a cluster."""

    def __init__(
        self, client: Client, stored: ClusterStore, rows: SparseRows, threads: int | None, checkpoint: Checkpoint
    ) -> None:
        super().__init__(rows, threads, checkpoint)
        self._client, self._length = client, rows.n_features + 1
        self._waiting = Waiting(client, checkpoint)
        self._stored = stored._replace(prefix=f"{stored.prefix}/shards/{secrets.token_hex(4)}")
        self._kept: dict[str, _Kept] = {}
        self._n_asked = 0
        self._lock = Lock()
        self.bytes_sent = 0
        """bytes of all vectors sent to shards"""
        try:
            self._waiting.look([])
            with named_errors():
                self._workforce = Workforce(client)
            # a shard for each thread of the cluster. Any share gives the same sums, since sums are of parts; but they
            # go from shard to shard, so that few shards are quick
            all_parts = part_ranges(rows)
            count = max(1, min(len(all_parts), sum(self._workforce.threads.values())))
            edges = np.linspace(0, len(all_parts), count + 1).round().astype(int).tolist()
            shares = [all_parts[first:last] for first, last in pairwise(edges)]
            there = self._workforce.threads
            workers = placement([""] * len(shares), there) if there else [""] * len(shares)
            self._shards = [self._placed(rows, parts, worker) for parts, worker in zip(shares, workers, strict=True)]
        except BaseException:
            super().close()
            raise

    def _placed(self, rows: SparseRows, parts: Sequence[tuple[int, int]], worker: str) -> _Placed:
        """Store a shard, and have a worker map it."""
        start, stop = parts[0][0], parts[-1][1]
        own, folder = rows.between(start, stop), self._stored.store.staging()
        path = Path(folder) / "shard"
        columns = write_shard(path, own)
        file = self._stored.store.upload(f"{self._stored.prefix}/{start}", path)
        folder.rmdir()
        ranges = tuple((first - start, last - start) for first, last in parts)
        shard = Shard(
            self._stored.url, file, ranges, own.n_rows, own.n_nonzeros, len(columns), isinstance(rows, FullRows)
        )
        with named_errors():
            future = self._opened(shard, worker)
        self._checkpoint()
        return _Placed(shard, future, worker, slice(start, stop), np.append(columns.astype(np.int64), self._length - 1))

    def _opened(self, shard: Shard, worker: str) -> Future[Any]:
        return self._submit(worker, OpenShard, shard, key=f"shard-{shard.file.sha256}-{secrets.token_hex(4)}")

    def _submit(self, worker: str, function: Callable[..., Any], *given: Any, key: str | None = None) -> Future[Any]:
        """Have a worker call a function, or any other one when it has gone.

        Unnamed, it would be whoever seems idle, and need the shard, too.
        """
        where = {"workers": [worker], "allow_other_workers": True} if worker else {}
        return self._client.submit(function, *given, key=key, pure=False, **where)

    def _place_anew(self) -> None:
        """Move shards of workers that have gone, and of workers that have too many."""
        threads = self._workforce.threads
        for number, worker in enumerate(placement([each.worker for each in self._shards], threads) if threads else []):
            each = self._shards[number]
            if worker != each.worker:
                self._shards[number] = each._replace(worker=worker, future=self._opened(each.shard, worker))

    def _is_shorthanded(self) -> bool:
        """Whether a worker that was asked in a pass has gone, as has become known since.

        Once nobody had worked, tasks would go on to wait for it.
        """
        return self._workforce.look() and any(each.worker not in self._workforce.threads for each in self._shards)

    def product(self, request: Product, alone: bool = False) -> Vector:
        """See Passes."""
        return self.products([request])[0]

    def products(self, requests: Sequence[Product]) -> list[Vector]:
        """See Passes."""
        answers: list[Vector] = []
        for first in range(0, len(requests), WIDTH):
            vectors, weights, scores = (list(each) for each in zip(*requests[first : first + WIDTH], strict=True))
            targets = [(out, own != 0) for out, own in zip(scores, weights, strict=True)]
            answers += self._ask(tasks.product, vectors, weights, targets)
        return answers

    def scores(self, request: Scores, alone: bool = False) -> None:
        """See Passes."""
        self._ask(tasks.scores, [request.vector], [request.skipped], [(request.scores, request.skipped == 0)])

    def suits_block(self, weights: Sequence[Vector], alone: bool) -> bool:
        """See Passes: scores are asked for one after the other."""
        return False

    def adjoint(self, request: Adjoint, alone: bool = False) -> None:
        """See Passes."""
        self.adjoints([request], alone)

    def adjoints(self, requests: Sequence[Adjoint], alone: bool = False) -> None:
        """See Passes. Few rows are read here, where they are added to the sums one by one."""
        for few in (each for each in requests if self.reads_few(each)):
            super().adjoint(few, alone)
        many = [each for each in requests if not self.reads_few(each)]
        found = self._ask(tasks.adjoint, [], [each.weights for each in many], []) if many else []
        for request, sums in zip(many, found, strict=True):
            request.sums[:] += sums

    def cuts(self, requests: Sequence[Cut]) -> list[Vector]:
        """See Passes."""
        if not requests:
            return []
        rows = [each for request in requests for each in (request.labels, request.weights)]
        targets = [(request.scores, np.ones(len(request.scores), bool)) for request in requests]
        return self._ask(tasks.cut, [request.vector for request in requests], rows, targets)

    def close(self) -> None:
        """See Passes."""
        super().close()
        self._kept.clear()
        self._shards = []
        self._stored.close()

    def _ask(
        self,
        task: Callable[..., Any],
        vectors: Sequence[Vector],
        rows: Sequence[Vector],
        targets: Sequence[tuple[Vector, NDArray[np.bool_]]],
    ) -> list[Vector]:
        """One pass over all shards: scores are written to the ``targets``, where they are chosen; the sums of each
        right-hand side are returned.
        """
        values = None
        while values is None:
            with named_errors(), self._lock:
                # vectors that no pass has used for a while: the scheduler and a worker hold each of them
                self._n_asked += 1
                self._kept = {key: one for key, one in self._kept.items() if self._n_asked - one.asked <= _KEPT_PASSES}
                self._place_anew()
                found = [self._submitted(task, shard, place, vectors, rows) for place, shard in enumerate(self._shards)]
                if task is tasks.scores:
                    scores, sums = found, []
                else:
                    pairs = zip(self._shards, found, strict=True)
                    scores = [self._submit(one.worker, scores_of, each) for one, each in pairs] if targets else []
                    sums = [self._added(found)]
            values = self._waiting.gathered([*scores, *sums], self._is_shorthanded)
        for shard, of_shard in zip(self._shards if targets else [], values[: len(scores)], strict=True):
            for (out, chosen), own in zip(targets, of_shard, strict=True):
                out[shard.rows][chosen[shard.rows]] = own
        return list(values[-1]) if sums else []

    def _submitted(
        self, task: Callable[..., Any], shard: _Placed, place: int, vectors: Sequence[Vector], rows: Sequence[Vector]
    ) -> Future[Any]:
        own = [vector[shard.columns] for vector in vectors]
        self.bytes_sent += sum(vector.nbytes for vector in own)
        # the weights of an adjoint are changes, which do not come twice
        if task is tasks.adjoint:
            return self._submit(
                shard.worker, task, shard.future, own, *[self._packed(each[shard.rows]) for each in rows]
            )
        kept = [self._kept_rows(place, each[shard.rows]) for each in rows]
        return self._submit(shard.worker, task, shard.future, own, *kept)

    def _added(self, found: Sequence[Future[Any]]) -> Future[Any]:
        """The sums of all shards, which go from one to the next."""
        total: Future[Any] | None = None
        for each, shard in zip(found, self._shards, strict=True):
            total = self._submit(shard.worker, added, total, each, shard.future, self._length)
        assert total is not None, "rows have a shard at least"
        return total

    def _packed(self, rows: Vector) -> Sent:
        own = packed(rows)
        self.bytes_sent += sum(each.nbytes for each in own[:2]) if isinstance(own, FewRows) else own.nbytes
        return own

    def _kept_rows(self, place: int, rows: Vector) -> Future[Any]:
        """A vector of the rows of a shard: one that was sent before is not sent again."""
        worker, digest = self._shards[place].worker, hashlib.blake2b(rows.data, digest_size=16).hexdigest()
        key = f"rows-{self._stored.prefix.rpartition('/')[2]}-{place}-{worker}-{digest}"
        kept = self._kept.get(key)
        known = kept is not None and not kept.future.cancelled()
        future = kept.future if kept and known else self._submit(worker, received, self._packed(rows), key=key)
        self._kept[key] = _Kept(future, self._n_asked)
        return future
