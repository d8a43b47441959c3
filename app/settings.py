"""What a gateway is told by its environment, beside what every process is."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from app.codecs.base import Bounds
from workers.settings import Count, Seconds, Settings
from workers.upkeep.retention import Keep, Policy


class GatewaySettings(Settings):
    """Settings of the HTTP gateway."""

    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 is every address of the machine."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to listen on; 0: any that is free."""
    access: Literal["loopback", "keys", "anyone"] = "loopback"
    """Who may call: keys (whoever sends a key made by `halfmoon keys create`), anyone (who reaches the port), or loopback: anyone on this machine
    who calls it localhost, and the service does not start on an address that others reach."""
    open_metrics: bool = False
    """Whether /metrics is answered without a key where keys are needed."""
    keys_seconds: Seconds = 2.0
    """Seconds between two looks for new and revoked keys."""
    max_body_bytes: Count = 4 * 2**30 - 1
    """Bytes that an upload of documents may have as it is sent."""
    max_unpacked_bytes: Count = 16 * 2**30
    """Bytes that an upload may have after gzip or zip are undone."""
    max_document_bytes: Count = 2 * 2**20
    """Bytes that one document may have as text (as arrays: an eighth of it in nonzeros)."""
    max_request_bytes: Count = 64 * 2**20
    """Bytes of a body that is held in memory: a prediction's, a job's with documents in it, labels to change."""
    large_request_bytes: Count = 64 * 2**10
    """Bytes from which a body is read beside the event loop instead of on it; so is what takes long for other reasons."""
    max_predicted_documents: Count = 500_000
    """Documents that one prediction may be of."""
    max_held_bytes: Count = 512 * 2**20
    """Bytes of such bodies and of their answers that are held in memory at the same time; beyond, clients are asked to come again (429)."""
    max_uploads: Count = 64
    """Uploads that are received at the same time; beyond, clients are asked to come again (429)."""
    max_scored: Count = 16
    """Datasets that are scored, or wait to be, at the same time; beyond, clients are asked to come again (429)."""
    max_connections: Count = 2_000
    """Connections at the same time, listeners to events among them; beyond, clients are asked to come again (429)."""
    max_ranked_scores: Count = 2**27
    """Scores that an evaluation keeps on disk (8 bytes each) to rank the documents by; beyond, it leaves out what needs ranks."""
    max_datasets: Count = 100_000
    """Datasets that there may be."""
    max_stored_bytes: Count | None = None
    """Bytes that all datasets together may take; unset: as many as there is room for."""
    max_jobs: Count = 10_000
    """Unfinished jobs that there may be; beyond, clients are asked to come again (429)."""
    max_jobs_per_key: Count = 1_000
    """Unfinished jobs that one API key may have, or everybody together where no keys are asked for."""
    body_idle_seconds: Seconds = 30.0
    """Seconds without a byte after which a body is given up (408)."""
    body_rate: Seconds = 1024.0
    """Bytes a second with which a body must come on the whole, once it has had that time."""
    cors_origins: tuple[str, ...] = ()
    """Origins, as JSON, whose pages may call the service from a browser; none by default."""
    log_requests: bool = False
    """Whether every answer is logged, with its request id; failures always are."""
    model_cache_bytes: Count = 512 * 2**20
    """Bytes of loaded models that are kept; the least recently used are dropped first."""
    resolve_seconds: Seconds = 0.25
    """Seconds for which the newest version of a model is remembered when the store is not a local folder."""
    reconcile_seconds: Seconds = 1.0
    """Seconds between two looks for lost or half-published jobs."""
    tidy_seconds: Seconds = 600.0
    """Seconds between two looks for what is no longer kept and what dead processes have left."""
    abandoned_seconds: Seconds = 86_400.0
    """Seconds after which an upload, a relabeling or a deletion that has not ended is taken for abandoned, and what there is of it is removed."""
    keep_versions: Keep | None = None
    """Versions kept of each model, as JSON of count, seconds and bytes, beside the newest and those that an alias or an unfinished job names."""
    keep_jobs: Keep | None = None
    """Finished jobs kept, in the same form; a version that a job has published stays when the job goes."""
    keep_datasets: Keep | None = None
    """Datasets kept that neither a version nor an unfinished job names, in the same form."""
    keep_leftover_seconds: Seconds = 86_400.0
    """Seconds after the end of a job for which files of its attempts stay that its outcome does not name."""
    events_seconds: Seconds = 0.25
    """Seconds between two looks at a job that somebody watches."""
    parse_threads: Count = 4
    """Threads that parse and seal uploads; an upload holds one only while bytes of it are parsed."""
    watch_threads: Count = 2
    """Threads that look at jobs that somebody watches."""
    predict_threads: Count = 2
    """Threads that load models and compute large predictions."""
    score_threads: Count = 1
    """Threads that score whole datasets, and as many that evaluate models on posted documents."""

    @property
    def policy(self) -> Policy:
        """What the store keeps."""
        return Policy(self.keep_versions, self.keep_jobs, self.keep_datasets, self.keep_leftover_seconds)

    @property
    def store_is_local(self) -> bool:
        """Whether asking the store costs microseconds."""
        return self.store_url.startswith("file:")

    @property
    def upload_bounds(self) -> Bounds:
        """How much of an uploaded body is accepted."""
        return Bounds(self.max_body_bytes, self.max_unpacked_bytes, self.max_document_bytes, self.max_documents, self.max_nonzeros)

    @property
    def request_bounds(self) -> Bounds:
        """How much of a body that is held in memory is accepted."""
        return Bounds(self.max_request_bytes, self.max_request_bytes, self.max_document_bytes, self.max_documents, self.max_nonzeros)

    @property
    def prediction_bounds(self) -> Bounds:
        """How much is predicted at once."""
        return replace(self.request_bounds, documents=min(self.max_predicted_documents, self.max_documents))
