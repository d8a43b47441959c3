"""The connection to Redis, and its failures as errors of the storage."""

from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ConnectionError, RedisError
from redis.retry import Retry

from storage.errors import RedisUnavailable


def connect(url: str, seconds: float) -> Redis:
    """A client that gives up after ``seconds`` instead of hanging; it reconnects by itself when Redis is back."""
    # a connection that was closed is made anew at once; silence is not waited for again, which connecting and asking
    # would do twice each
    retry = Retry(NoBackoff(), 1, (ConnectionError,))
    return Redis.from_url(
        url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=retry, health_check_interval=15
    )


def redis_error_text(error: Exception) -> str:
    """The text of an error of Redis. Of a password that is missing or wrong Redis itself speaks in words of its
    protocol.
    """
    if isinstance(error, AuthenticationError):
        return f"it wants another user or password than HALFMOON_REDIS_URL has, redis://user:password@host ({error})"
    return str(error)


@contextmanager
def redis_errors(what: str = "Redis") -> Iterator[None]:
    """Raise RedisUnavailable for any failure of Redis inside the block, or the function that this decorates: "{what}
    does not answer: …".
    """
    try:
        yield
    except (RedisError, OSError) as error:
        raise RedisUnavailable(f"{what} does not answer: {redis_error_text(error)}") from error
