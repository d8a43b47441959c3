"""A first start, without compiled kernels: predictions are answered at once, and the service is ready when a job can
run.
"""

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.service import READY, Service
from tests.waiting import SLOW, until

STARTING = "waiting for a worker that is starting"
MISSES = """
import gc

from numba.core.dispatcher import Dispatcher

from core.warm_up import warm_up

warm_up()
loops = [each for each in gc.get_objects() if isinstance(each, Dispatcher) and
each.py_func.__module__.startswith("core.")]
print(len(loops), sorted(each.py_func.__qualname__ for each in loops if each.stats.cache_misses))
"""


@pytest.mark.slow
def test_a_first_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    service = Service(tmp_path / "data", tmp_path / "log")
    try:
        service.launch()
        service.await_line(" answers;")
        assert service.process is not None
        service.process.send_signal(signal.SIGSTOP)  # however fast it compiles, it has no worker yet
        (url,) = re.findall(r"^halfmoon: (http\S+) answers;", service.said(), re.MULTILINE)
        service.client.base_url = httpx.URL(url)
        ready = service.get("/v1/health/ready")
        assert (ready["status"], ready["workers"], ready["workers_starting"]) == ("ready", 0, 1)
        documents = [{"indices": [place % 2], "label": label} for place, label in enumerate(["a", "b", None, None])]
        first, second = (
            service.post("/v1/jobs", {"documents": documents, "model": "m", "algorithm": "svm"}) for _ in range(2)
        )
        phases = [service.get(f"/v1/jobs/{job['id']}")["progress"]["phase"] for job in (first, second)]
        assert phases == [STARTING, f"{STARTING}, and for 1 job before it"]
        assert READY not in service.said()
        service.process.send_signal(signal.SIGCONT)
        service.await_line(f"{READY}{url}\n")
        assert service.wait_for(second["id"])["state"] == "succeeded"
        until(lambda: service.get("/v1/health/ready")["workers_starting"] == 0, SLOW)
    finally:
        if service.process is not None:
            service.process.send_signal(signal.SIGCONT)
        service.__exit__()
    done = subprocess.run([sys.executable, "-c", MISSES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, missed = done.stdout.split(maxsplit=1)
    assert int(count) > 20
    assert missed == "[]\n", "the service has compiled all that training runs"
