"""Structured logs of a process: lines for people, or JSON for machines."""

import logging
import sys

import structlog
from structlog.typing import Processor


def configure_logging(log_format: str, level: str) -> None:
    """Write all logs of this process, those of libraries included, to standard error in one format."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: Processor = structlog.processors.JSONRenderer() if log_format == "json" else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # RQ logs every message that it moves, and Numba every step of its compiler
    for chatty in ("rq", "rq.worker", "rq.job", "rq.queue", "numba"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
    # it logs jobs as failed that it has only lost sight of, some of which have succeeded; how a job ended is in the store
    logging.getLogger("rq.registry").setLevel(logging.ERROR)
