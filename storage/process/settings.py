"""Settings that every process reads from the environment: one ``HALFMOON_…`` variable a field."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from storage.records import SIZES, JobSize

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

_PREFIX = "HALFMOON_"


class Settings(BaseSettings):
    """Settings of every process. They are immutable."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, use_attribute_docstrings=True)

    store_url: str = "file:///var/lib/halfmoon"
    """Store of datasets, jobs and models: file:///folder, or s3://bucket/prefix with credentials and endpoint in the
    AWS_… variables."""
    cache_dir: Path | None = None
    """Folder for files fetched from an object store. Unset: one below the system's folder for temporary files."""
    cache_bytes: Count = 20 * 2**30
    """Bytes that the cache of fetched files may take; beyond, the least recently used files are removed."""
    redis_url: str = "redis://localhost:6379/0"
    """Redis or Valkey that carries the queue and the progress of jobs: redis://, rediss:// or unix://."""
    redis_timeout_seconds: Seconds = 1.0
    """Seconds to wait for an answer of Redis before it counts as unavailable."""
    queue: str = Field(default="halfmoon", pattern=r"^[A-Za-z0-9._-]{1,64}$")
    """Name of the job queue. Installations that share a Redis need different names."""
    training_threads: Annotated[int, Field(ge=0)] = 0
    """Threads of a training job. 0: as many as the process may use processors."""
    job_timeout_seconds: Seconds = 86_400.0
    """Seconds after which a running job is stopped and fails."""
    lease_seconds: Seconds = 3.0
    """Seconds without a heartbeat after which a running attempt counts as dead."""
    drain_seconds: Annotated[float, Field(ge=0)] = 20.0
    """Seconds that a stopping worker gives its running job to finish. Then it returns the job to the queue."""
    store_retry_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 600.0
    """Seconds for which a running job retries while the store is full or unavailable. It keeps its results
    meanwhile."""
    job_sizes: Annotated[tuple[JobSize, ...], Field(min_length=1)] = SIZES
    """Sizes of the jobs that a worker takes, as a JSON list of small, medium and large. It takes small ones before
    large ones, and each caller's in turn."""
    max_attempts: Count = 3
    """Attempts that a job may have when its worker dies, the first one included. Then the job fails."""
    max_dataset_bytes: Count = 16 * 2**30
    """Bytes on disk of one dataset."""
    max_documents: Count = 5_000_000
    """Documents of one dataset."""
    max_features: Annotated[int, Field(ge=1, le=2**31)] = 2**31
    """Features of one dataset: every index is below this."""
    max_feature_names: Count = 1_000_000
    """Names of features of one dataset. The gateway holds them in memory until the upload ends."""
    max_nonzeros: Count = 1_000_000_000
    """Nonzero values of one dataset."""
    max_classes: Annotated[int, Field(ge=2)] = 1_000
    """Different labels of one dataset."""
    max_document_labels: Count = 10_000
    """Labels of one document of a dataset of several labels."""
    max_voters: Count = 1_000
    """Voters of one dataset."""
    max_job_memory_bytes: Count | None = None
    """Bytes of memory that a job may need by its estimate; a larger job reads its documents from files, or fails before
    it starts. Unset: all that the worker may use."""
    engine: Literal["auto", "memory", "mapped", "cluster"] = "auto"
    """Engine that reads the documents of a training: memory; mapped, from scratch files on the disk of the store or of
    its cache; cluster; auto, the first of them that the estimate of memory allows. Kernel methods take memory. A job's
    report names its engine."""
    cluster: str | None = None
    """Scheduler of a cluster that shares large trainings (docs/engines.md): tls://host:port. Unset: none."""
    cluster_ca: Path | None = None
    """File of the authority, in PEM format, that has signed the certificates of the cluster."""
    cluster_cert: Path | None = None
    """File of the certificate by which this process is known to the cluster, in PEM format."""
    cluster_key: Path | None = None
    """File of the key of that certificate, in PEM format."""
    max_model_bytes: Count = 512 * 2**20
    """Bytes of the documents and weights that a kernel model keeps; a training that would need more fails."""
    encoders: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")], Path] = {}
    """Folders of pre-trained encoders by name, as a JSON object. Each has tokenizer.json, and model.onnx, or BERT or a
    static encoder's table as model.safetensors; gateways and workers need the same ones."""
    encoder: str = "auto"
    """Encoder of jobs that name none, for documents that are text: a name of an encoder; auto, the one that the extra
    `encoders` brings, if it is installed; none: they learn from the text alone, and that one is not used."""
    log_format: str = Field(default="console", pattern="^(console|json)$")
    """Format of log lines: console or json."""
    log_level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    """Lowest level that is logged: debug, info, warning or error."""


def unknown_variables(settings: type[Settings]) -> Iterator[str]:
    """Variables of the environment that begin like settings and are none."""
    # clients, which may run in the same environment, read the last two
    known = {f"{_PREFIX}{name}".upper() for name in (*settings.model_fields, "url", "api_key")}
    return (name for name in sorted(os.environ) if name.upper().startswith(_PREFIX) and name.upper() not in known)
