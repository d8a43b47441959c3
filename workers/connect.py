"""Connections to Redis."""

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry


def connect(url: str, seconds: float) -> Redis:
    """A client that gives up after ``seconds`` instead of hanging; it reconnects by itself when Redis is back."""
    return Redis.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=Retry(NoBackoff(), 1), health_check_interval=15)
