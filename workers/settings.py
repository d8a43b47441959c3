"""What a process that trains or queues is told by its environment: ``HALFMOON_…`` variables, one a field."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


_PREFIX = "HALFMOON_"


class Limits(NamedTuple):
    """How large one dataset may be."""

    documents: int = 5_000_000
    features: int = 2**31
    names: int = 1_000_000
    nonzeros: int = 1_000_000_000
    classes: int = 1_000
    bytes: int = 16 * 2**30


class Settings(BaseSettings):
    """Settings of every process; immutable and passed to whoever needs them."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, use_attribute_docstrings=True)

    store_url: str = "file:///var/lib/halfmoon"
    """Where datasets, jobs and models are kept: file:///folder or s3://bucket/prefix (credentials and endpoint from the AWS_… variables)."""
    cache_dir: Path | None = None
    """Folder for files fetched from an object store; by default one below the system's folder for temporary files."""
    cache_bytes: Count = 20 * 2**30
    """Bytes that the cache of fetched files may take before the least recently used are removed."""
    redis_url: str = "redis://localhost:6379/0"
    """Redis or Valkey that carries the queue and the progress: redis://, rediss:// or unix://."""
    redis_seconds: Seconds = 1.0
    """Seconds to wait for an answer of Redis before calling it unavailable."""
    queue: str = Field(default="halfmoon", pattern=r"^[A-Za-z0-9._-]{1,64}$")
    """Name of the queue of training jobs; installations that share a Redis need different names."""
    threads: Annotated[int, Field(ge=0)] = 0
    """Threads that a training job computes with; 0: as many as the process may use processors."""
    job_seconds: Seconds = 86_400.0
    """Seconds after which a running job is stopped and fails."""
    lease_seconds: Seconds = 3.0
    """Seconds without a sign of life after which a running attempt counts as dead."""
    drain_seconds: Annotated[float, Field(ge=0)] = 20.0
    """Seconds that a worker told to stop gives its running job to finish before it hands the job back to the queue."""
    store_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 600.0
    """Seconds that a running job keeps what it has computed while the store is full or away, before it gives up."""
    max_attempts: Count = 3
    """Deaths of a worker that a job survives by being run again, before it fails; the first run counts."""
    max_dataset_bytes: Count = Limits().bytes
    """Bytes on disk that one dataset may take."""
    max_documents: Count = Limits().documents
    """Documents that one dataset may have."""
    max_features: Annotated[int, Field(ge=1, le=2**31)] = Limits().features
    """Features that one dataset may have: every index is below this."""
    max_names: Count = Limits().names
    """Named features that one dataset may have; the gateway holds their names in memory until the upload ends."""
    max_nonzeros: Count = Limits().nonzeros
    """Nonzero values that one dataset may have."""
    max_classes: Annotated[int, Field(ge=2)] = Limits().classes
    """Different labels that one dataset may have."""
    max_job_bytes: Count | None = None
    """Bytes of memory that a job may be expected to need; one that would need more fails before it starts. Unset: all that the worker may use."""
    max_model_bytes: Count = 512 * 2**20
    """Bytes that the documents and weights kept by a model in kernel functions may take; a training that would need more fails."""
    log_format: str = Field(default="console", pattern="^(console|json)$")
    """How log lines are written: console or json."""
    log_level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    """Least serious log lines that are written: debug, info, warning or error."""

    @property
    def limits(self) -> Limits:
        """How large one dataset may be."""
        return Limits(
            documents=self.max_documents,
            features=self.max_features,
            names=self.max_names,
            nonzeros=self.max_nonzeros,
            classes=self.max_classes,
            bytes=self.max_dataset_bytes,
        )


def unknown_variables(settings: type[Settings]) -> Iterator[str]:
    """Variables of the environment that look like settings and are none."""
    known = {f"{_PREFIX}{name}".upper() for name in settings.model_fields}
    return (name for name in sorted(os.environ) if name.upper().startswith(_PREFIX) and name.upper() not in known)
