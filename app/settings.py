"""Settings of the HTTP gateway alone."""

from dataclasses import replace
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, IPvAnyNetwork, SecretStr

from app.codecs.base import Bounds
from storage.process.settings import Count, Seconds, Settings
from storage.upkeep.cleanup import Keep, Policy


class GatewaySettings(Settings):
    """Settings of the HTTP gateway."""

    host: str = "127.0.0.1"
    """Address to listen on. 0.0.0.0: every address of the machine."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to listen on. 0: any free port."""
    access: Literal["loopback", "keys", "anyone"] = "loopback"
    """Who may call. loopback: every caller on this machine that uses the name localhost; the gateway does not start on
    an address that other machines reach. keys: every caller with a key from `halfmoon keys create`. anyone: every
    caller that reaches the port."""
    allowed_hosts: tuple[str, ...] = ()
    """Names by which clients may call the gateway where no keys are required, as a JSON list, beside localhost and
    addresses; other names in the Host of a request are refused (421), so that no web page can have its own name point
    here. ["*"] allows all."""
    trusted_proxies: tuple[str, ...] = ("127.0.0.1",)
    """Addresses and networks of proxies whose X-Forwarded-For says who calls, as a JSON list: limits count by it where
    no keys are required."""
    public_metrics: bool = False
    """Whether /metrics is answered without a key where keys are required."""
    key_refresh_seconds: Seconds = 2.0
    """Seconds between two reads of the keys: after so long a new key is accepted and a revoked one refused."""
    max_upload_bytes: Count = 4 * 2**30 - 1
    """Bytes of an upload of documents, as sent."""
    max_decompressed_bytes: Count = 16 * 2**30
    """Bytes of an upload of documents, after gzip or zip."""
    max_document_bytes: Count = 2 * 2**20
    """Bytes of one document as text. As an array a document may have an eighth of that in nonzeros."""
    max_request_bytes: Count = 64 * 2**20
    """Bytes of a body that is held in memory: of a prediction, of a job with documents, of labels to change."""
    large_request_bytes: Count = 16 * 2**10
    """Bytes from which a body is parsed in a thread instead of on the event loop."""
    max_predicted_documents: Count = 500_000
    """Documents of one prediction."""
    max_buffered_bytes: Count = 512 * 2**20
    """Bytes of bodies and answers that are in memory at a time; beyond, requests are refused (429)."""
    max_buffered_bytes_per_caller: Count = 256 * 2**20
    """Bytes of them that one caller may have there: an API key, or an address where no keys are required."""
    max_concurrent_uploads: Count = 64
    """Uploads that are received at a time; beyond, uploads are refused (429)."""
    max_concurrent_uploads_per_caller: Count = 16
    """Uploads of one caller that are received at a time."""
    max_concurrent_scorings: Count = 16
    """Datasets that are scored or wait for it at a time; beyond, requests are refused (429)."""
    max_concurrent_scorings_per_caller: Count = 4
    """Datasets that are scored or wait for it for one caller at a time."""
    max_concurrent_exports: Count = 8
    """Models that are written as files or sent at a time, each of which takes room on disk; beyond, requests are
    refused (429)."""
    max_concurrent_exports_per_caller: Count = 4
    """Models that are written as files or sent to one caller at a time."""
    max_connections: Count = 2_000
    """Connections that are open at a time, event streams among them; beyond, requests are refused (429)."""
    max_ranked_scores: Count = 2**27
    """Scores that an evaluation keeps on disk (8 bytes each) to rank documents by; beyond, it leaves out the figures
    that need ranks."""
    max_datasets: Count = 100_000
    """Datasets in the store."""
    max_total_dataset_bytes: Count | None = None
    """Bytes of all datasets together. Unset: as many as the store has room for."""
    max_unfinished_jobs: Count = 10_000
    """Unfinished jobs; beyond, new jobs are refused (429)."""
    max_unfinished_jobs_per_key: Count = 1_000
    """Unfinished jobs of one API key; where no keys are required, of all callers."""
    small_job_bytes: Count = 512 * 2**20
    """Bytes of memory, by the estimate for a job, up to which the job is small."""
    large_job_bytes: Count = 4 * 2**30
    """Bytes of memory, by the estimate for a job, from which the job is large."""
    body_idle_timeout_seconds: Seconds = 30.0
    """Seconds without a byte after which a body is refused (408)."""
    min_body_bytes_per_second: Seconds = 1024.0
    """Bytes a second that a body must average over every body_idle_timeout_seconds of waiting for it; slower ones are
    refused (408)."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the service from a browser, as a JSON list."""
    webhook_networks: tuple[IPvAnyNetwork, ...] = ()
    """Private networks that webhooks may call, as a JSON list such as ["10.0.0.0/8"]; public addresses are allowed in
    any case."""
    label_studio_url: str | None = None
    """Address of the Label Studio whose projects are trained on when it asks for it. Unset: it gets predictions
    alone."""
    label_studio_token: SecretStr | None = None
    """Token by which its tasks are read: a personal access token, or one of the former kind."""
    log_requests: bool = False
    """Whether every answer is logged. Failures are logged in any case."""
    model_cache_bytes: Count = 512 * 2**20
    """Bytes of models that are kept in memory; beyond, the least recently used are dropped."""
    score_cache_bytes: Count = 128 * 2**20
    """Bytes of predictions of whole datasets that are kept for the next page of documents and the next suggestions, 20
    a document."""
    version_cache_seconds: Seconds = 0.25
    """Seconds for which the version that a model serves is cached, where the store is not a local folder."""
    max_version_age_seconds: Seconds = 86_400.0
    """Seconds for which a model in memory answers by the version that was last known, while the store does not answer;
    one that is called by its number answers for ever."""
    reconcile_interval_seconds: Seconds = 1.0
    """Seconds between two searches for lost and for half-published jobs."""
    cleanup_interval_seconds: Seconds = 600.0
    """Seconds between two runs of retention and garbage collection."""
    abandoned_after_seconds: Seconds = 86_400.0
    """Seconds after which an unfinished upload, relabeling or deletion counts as abandoned, and its files are
    removed."""
    keep_versions: Keep | None = None
    """Versions to keep of each model, as JSON of count, seconds and bytes. The version that is served, and those that
    an alias or an unfinished job names, are kept in any case."""
    keep_jobs: Keep | None = None
    """Finished jobs to keep, in the same form. A version stays when the job that published it is removed."""
    keep_datasets: Keep | None = None
    """Datasets to keep that neither a version nor an unfinished job names, in the same form."""
    keep_leftover_seconds: Seconds = 86_400.0
    """Seconds after the end of a job for which files of its attempts are kept that its outcome does not use."""
    event_poll_seconds: Seconds = 0.25
    """Seconds between two reads of a job whose events a client follows; the first reads come sooner."""
    event_poll_threads: Count = 2
    """Threads that read jobs whose events clients follow."""
    parse_threads: Count = 4
    """Threads that parse and store uploads; as many more parse other large bodies. An upload occupies one only while
    its bytes are parsed."""
    predict_threads: Count = 2
    """Threads that compute predictions by encoders and by large kernel models; as many more load models. All other
    large predictions share one thread, since several would wait for each other."""
    score_threads: Count = 1
    """Threads that score datasets; as many more evaluate models on documents in a body."""

    @property
    def retention_policy(self) -> Policy:
        """Retention policy of the store."""
        return Policy(self.keep_versions, self.keep_jobs, self.keep_datasets)

    @cached_property
    def upload_bounds(self) -> Bounds:
        """Bounds of an upload."""
        return Bounds(
            self.max_upload_bytes,
            self.max_decompressed_bytes,
            self.max_document_bytes,
            self.max_documents,
            self.max_nonzeros,
        )

    @cached_property
    def request_bounds(self) -> Bounds:
        """Bounds of a body that is held in memory."""
        return Bounds(
            self.max_request_bytes,
            self.max_request_bytes,
            self.max_document_bytes,
            self.max_documents,
            self.max_nonzeros,
        )

    @cached_property
    def prediction_bounds(self) -> Bounds:
        """Bounds of the documents of one prediction."""
        return replace(self.request_bounds, documents=min(self.max_predicted_documents, self.max_documents))
