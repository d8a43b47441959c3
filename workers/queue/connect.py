"""Connections to Redis, and what it says."""

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ConnectionError
from redis.retry import Retry


def connect(url: str, seconds: float) -> Redis:
    """A client that gives up after ``seconds`` instead of hanging; it reconnects by itself when Redis is back."""
    # a connection that was closed is made anew at once; silence is not waited for again, which connecting and asking would do twice each
    retry = Retry(NoBackoff(), 1, (ConnectionError,))
    return Redis.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=retry, health_check_interval=15)


def why(error: Exception) -> str:
    """What an error of Redis means; it tells of a password that is missing or wrong in words of its protocol."""
    if isinstance(error, AuthenticationError):
        return f"it wants another user or password than HALFMOON_REDIS_URL has, redis://user:password@host ({error})"
    return str(error)
