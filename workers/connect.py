"""Connections to Redis."""

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError
from redis.retry import Retry


def connect(url: str, seconds: float) -> Redis:
    """A client that gives up after ``seconds`` instead of hanging; it reconnects by itself when Redis is back."""
    # a connection that was closed is made anew at once; silence is not waited for again, which connecting and asking would do twice each
    retry = Retry(NoBackoff(), 1, (ConnectionError,))
    return Redis.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=retry, health_check_interval=15)
