"""Jobs: they are waited for, followed, cancelled; their labels and traces."""

import time
from collections.abc import AsyncIterator
from os import PathLike
from typing import IO, Literal, Self

from halfmoon._async.transport import AsyncResource, AsyncTransport, operation
from halfmoon._async_only import JobsMixin, sleep
from halfmoon.display import ProgressLine
from halfmoon.errors import ConnectionFailed, InvalidData, JobFailed, WaitTimeout
from halfmoon.labels import LabeledDocument, Labels, decode_lines
from halfmoon.records import JobRecord, Progress, Trace
from halfmoon.shown import FINAL, LABEL_TYPES, ShownJob, past
from halfmoon.values import in_path

_EVENT_SECONDS = 30.0
"""Seconds without an event, comments included, after which a stream counts as broken: the service sends a comment every
15 s."""
_POLL_SECONDS = 0.5


class AsyncJobs(AsyncResource, JobsMixin):
    """The jobs of a service."""

    @operation("show_job")
    async def get(self, id: str) -> "AsyncJob":
        """The job of this id; raises NotFound."""
        return AsyncJob(self._transport, await self._transport.call("GET", f"/v1/jobs/{in_path('job', id)}", JobRecord))

    @operation("list_jobs")
    async def all(self, *, state: str | None = None, model: str | None = None) -> "AsyncIterator[AsyncJob]":
        """Jobs, newest first, of this state and model if they are given."""
        async for record in self._transport.entries("/v1/jobs", "jobs", JobRecord, {"state": state, "model": model}):
            yield AsyncJob(self._transport, record)


class AsyncJob(ShownJob):
    """A training job."""

    _transport: AsyncTransport

    @operation("show_job")
    async def refresh(self) -> Self:
        """See how the job is now."""
        self.record = await self._transport.call("GET", self._path, JobRecord)
        return self

    async def wait(self, timeout: float | None = None, *, progress: bool = False) -> Self:
        """Wait until the job has succeeded; ``progress`` shows a line meanwhile.

        Raises JobFailed if it failed or was cancelled, and WaitTimeout after ``timeout`` seconds: the job goes on then.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        line = ProgressLine(progress)
        async for seen in self.follow(deadline):
            line.show(seen.fraction, seen.phase)
        if self.state not in FINAL:
            raise WaitTimeout(
                f"job {self.id} is {self.state} ({self.progress.fraction:.0%}) after {timeout:g} s; it goes on"
            )
        line.end(f"job {self.id} {self.state}")
        if self.state != "succeeded":
            raise JobFailed(self.id, self.state, self.record.error)
        return self

    async def follow(self, deadline: float | None = None) -> AsyncIterator[Progress]:
        """The progress of the job, until it has ended or ``time.monotonic()`` is past the deadline.

        It comes by events, and by asking again where something on the way holds these back.
        """
        while self.state not in FINAL and not past(deadline):
            try:
                left = (
                    _EVENT_SECONDS if deadline is None else min(_EVENT_SECONDS, max(0.01, deadline - time.monotonic()))
                )
                async for seen in self.events(left):
                    yield seen
                    if past(deadline):
                        return
            except ConnectionFailed:
                if not past(deadline):
                    await sleep(_POLL_SECONDS)
            await self.refresh()
            yield self.progress

    @operation("follow_job")
    async def events(self, timeout: float = _EVENT_SECONDS) -> AsyncIterator[Progress]:
        """The progress of the job as the service sends it; ``record`` follows the state.

        Raises ConnectionFailed if the stream breaks off, or nothing comes for ``timeout`` seconds.
        """
        event = ""
        async with self._transport.stream(f"{self._path}/events", timeout=timeout) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    event = line.removeprefix("event: ")
                elif (seen := self._heard(event, line)) is not None:
                    yield seen

    @operation("download_labels")
    async def labels(self, *, fields: bool = False) -> Labels:
        """The labels that the job has given to unlabeled documents, with ``fields`` their extra fields beside them.

        Raises Conflict until the job has succeeded.
        """
        return Labels([line async for line in self.iter_labels(fields=fields)])

    @operation("download_labels")
    async def iter_labels(self, *, fields: bool = False) -> AsyncIterator[LabeledDocument]:
        """The labels one by one, without holding all of them."""
        rest = b""
        async with self._transport.stream(self._labels(fields), headers={"Accept": LABEL_TYPES["ndjson"]}) as answer:
            async for block in answer.aiter_bytes():
                whole, end, rest = (rest + block).rpartition(b"\n")
                for line in decode_lines(whole + end):
                    yield line
        for line in decode_lines(rest):
            yield line

    @operation("download_labels")
    async def save_labels(
        self,
        file: "IO[bytes] | str | PathLike[str]",
        format: Literal["csv", "ndjson", "parquet"] = "csv",
        *,
        fields: bool = False,
        separator: str | None = None,
    ) -> None:
        """Write the labels to a path or a binary file as the service does, with ``fields`` the extra fields of the
        documents beside them. In CSV the ``separator`` stands between several labels, by default a semicolon.
        """
        if format not in LABEL_TYPES:
            raise InvalidData(f"format {format!r}: labels are written as {', '.join(LABEL_TYPES)}")
        await self._transport.download(self._labels(fields, separator), file, {"Accept": LABEL_TYPES[format]})

    @operation("show_trace")
    async def trace(self) -> Trace:
        """The objective by iteration, so far."""
        return await self._transport.call("GET", f"{self._path}/trace", Trace)

    @operation("cancel_job")
    async def cancel(self) -> Self:
        """Cancel the job: it is ``cancelling`` until it has stopped."""
        self.record = await self._transport.call("POST", f"{self._path}/cancel", JobRecord)
        return self

    @operation("delete_job")
    async def delete(self) -> None:
        """Delete the job with its labels and trace; a model that it has published stays."""
        await self._transport.send("DELETE", self._path)
