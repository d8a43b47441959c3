"""Lines of the log of a process."""

import subprocess
import sys

from tests.stores import Valkey
from tests.waiting import HANG

WRITE = """
import logging
import structlog
from storage.process.logs import configure_logging

configure_logging("console", "info")
sent = "/v1/\\x1b[31mred\\x1b]0;title\\x07\\r2026-01-01 [error] forged\\x9b2J"
structlog.get_logger("a").warning("answered " + sent, path=sent)
logging.getLogger("b").warning("of a library: %s", sent)
try:
    raise ValueError(sent)
except ValueError:
    structlog.get_logger("c").exception("failed")
"""


def test_what_a_client_sent_commands_no_terminal() -> None:
    done = subprocess.run([sys.executable, "-c", WRITE], capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stderr
    assert {character for character in done.stderr if not character.isprintable()} == {"\n"}
    assert done.stderr.count("\n") == 3, "a traceback is part of its line"
    assert "Traceback (most recent call last): |   File" in done.stderr
    assert done.stderr.replace("\\\\", "\\").count("\\x1b[31mred\\x1b]0;title\\x07\\x0d2026") == 4


CODE = """
import sys
from rq.registry import StartedJobRegistry
from storage.queue.connection import connect
from storage.process.logs import configure_logging
from storage.queue.ordered_queue import OrderedQueue
from storage.queue.queue import Queue

configure_logging("json", "info")
redis = connect(sys.argv[1], 60)
Queue(redis, "q").enqueue("job-1")
messages = OrderedQueue("q", redis)
(name,) = [name for size in messages.sizes for name in redis.zrange(messages.waiting_key(size), 0, -1)]
message = messages.fetch_job(name.decode())
begun = StartedJobRegistry(queue=messages)
redis.zadd(begun.key, {f"{message.id}:execution": 1})
begun.cleanup()
print(message.get_status(refresh=True).value)
"""


def test_a_message_that_is_lost_sight_of_is_not_told_as_a_failed_job(valkey: Valkey) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, valkey.url], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert (done.stdout, done.stderr) == ("failed\n", "")
