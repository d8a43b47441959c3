"""``halfmoon up`` ends the processes it starts, says why it cannot start, and answers before kernels are compiled."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from app import serve
from app.local import up as embedded
from tests.e2e.service import READY, Service
from tests.there import there
from tests.waiting import HANG, SLOW, until
from workers.worker.tasks import KILL_AFTER_SECONDS


def refused(*arguments: str, **settings: str) -> str:
    """The output of ``halfmoon`` when it cannot start."""
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_gateway_alone(tmp_path: Path, number: signal.Signals) -> None:
    settings = {"HALFMOON_STORE_URL": f"file://{tmp_path}/store", "HALFMOON_REDIS_URL": f"unix://{tmp_path}/none"}
    command = [sys.executable, "-m", "app.cli", "api", "--port", "0"]
    with subprocess.Popen(command, env={**os.environ, **settings}, stderr=subprocess.PIPE, text=True) as gateway:
        assert gateway.stderr is not None
        next(line for line in gateway.stderr if "Application startup complete" in line)
        gateway.send_signal(number)
        assert "Traceback" not in gateway.stderr.read()
        assert gateway.wait(SLOW) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_nothing_outlives_a_killed_service(tmp_path: Path, large_body: bytes) -> None:
    """Not even a child of a worker that cannot end itself any more."""
    with Service(tmp_path / "data", tmp_path / "log", workers=2) as service:
        dataset = service.upload(large_body, "large")["id"]
        service.wait_for(
            service.post("/v1/jobs", {"dataset": dataset, "model": "m", "algorithm": "tsvm"})["id"], "running"
        )
        until(lambda: len(service.named("worker")) == 3, SLOW)
        (busy,) = [process for process in service.named("worker") if process.name() == "halfmoon-job"]
        busy.suspend()
        assert service.stop(signal.SIGKILL) == -signal.SIGKILL
        until(lambda: service.left() == [], SLOW)
    with Service(tmp_path / "data", tmp_path / "log-2") as service:
        assert [dataset["name"] for dataset in service.get("/v1/datasets")["datasets"]] == ["large"]


def test_the_supervisor_waits_longer_than_its_children() -> None:
    """Were the grace periods equal, a worker would be killed at the moment in which it kills its own child."""
    assert max(serve.SHUTDOWN_TIMEOUT_SECONDS, KILL_AFTER_SECONDS) + 5 <= embedded.GRACE_SECONDS


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file that is always full")
def test_a_full_disk_under_the_log_does_not_end_the_service() -> None:
    code = "from app.local import up as embedded; embedded._report('a'); embedded._report('b'); print('goes on')"
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert found.stdout == "goes on\n"


def test_a_data_folder_has_one_service(service: Service) -> None:
    said = refused("up", "--port", "0", "--data", str(service.data))
    assert f"is in use by another halfmoon (process {there(service.process).pid})" in said


def test_a_taken_port_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"cannot listen on 127.0.0.1 port {port}" in refused(
            "up", "--port", port, "--data", str(tmp_path / "data")
        )
        assert f"cannot listen on 127.0.0.1 port {port}" in refused("api", "--port", port)


def test_a_folder_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"the data folder {tmp_path}/file cannot be used: File exists" in refused(
        "up", "--data", str(tmp_path / "file")
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_demo(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "app.cli", "demo"], env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as demo:
        until(lambda: list(tmp_path.glob("halfmoon-*/data/lock")), SLOW)
        children = psutil.Process(demo.pid).children(recursive=True)
        assert children
        demo.send_signal(number)
        assert demo.wait(SLOW) != 0
        until(lambda: not any(child.is_running() for child in children), SLOW)
        assert bool(list(tmp_path.iterdir())) == (number is signal.SIGKILL)


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    said = refused("up", "--port", "0", "--data", str(tmp_path / "data"), HALFMOON_LEASE_SECONDS="-1")
    assert "HALFMOON_LEASE_SECONDS: Input should be greater than 0" in said


def test_only_the_owner_can_reach_the_queue_and_the_data(service: Service) -> None:
    assert stat.S_IMODE(service.data.stat().st_mode) == 0o700
    path = service.data / "valkey" / "valkey.sock"
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    (valkey,) = service.named("valkey-server")
    assert valkey.net_connections(kind="inet") == []


def test_a_deep_data_folder_works_and_an_interrupt_ends_all_of_it(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-rather-long-name"] * 8)
    with Service(deep, tmp_path / "log", workers=2) as service:
        assert len(service.family()) >= 4  # Valkey, the gateway, two workers
        (valkey,) = service.named("valkey-server")
        (sock,) = {str(connection.laddr) for connection in valkey.net_connections(kind="unix") if connection.laddr}
        assert Path(sock).exists()
        assert service.stop(signal.SIGINT) == 0
        assert service.left() == []
    assert not Path(sock).parent.exists()


def test_several_gateways_answer_at_one_address_and_are_replaced_without_a_failure(tmp_path: Path) -> None:
    """Clients with connections of their own ask all the while: of a restart they notice nothing."""
    with Service(tmp_path / "data", tmp_path / "log", arguments=("--gateways", "2")) as service:
        before = {process.pid for process in service.parts("api")}
        assert len(before) == 2
        until(
            lambda: (
                set(re.findall(r'process_open_fds{pid="(\d+)"}', service.client.get("/metrics").text))
                == {str(pid) for pid in before}
            )
        )
        answers: list[int] = []
        done = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=service.url, trust_env=False, timeout=HANG) as client:
                while not done.wait(0.02):
                    answers.append(client.get("/v1/models").status_code)

        with ThreadPoolExecutor(2) as pool:
            asking = [pool.submit(ask) for _ in range(2)]
            try:
                command = [sys.executable, "-m", "app.cli", "restart", "--data", str(service.data)]
                restarted = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
            finally:
                done.set()
            for each in asking:
                each.result()  # raises what a client has met
        assert restarted.stdout == "replaced gateway-1, gateway-2\n", restarted.stderr + service.said()
        assert before.isdisjoint(process.pid for process in service.parts("api"))
        assert set(answers) == {200}
        service.parts("api")[0].kill()
        until(lambda: len(service.parts("api")) == 2, SLOW)
        assert service.stop() == 0
        assert service.left() == []
    assert not (tmp_path / "data" / "valkey" / "valkey.sock").exists()


STARTING = "waiting for a worker that is starting"
MISSES = """
import gc

from numba.core.dispatcher import Dispatcher

from core.warm_up import FIRST, warming

list(warming(FIRST))
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
        until(lambda: list(tmp_path.rglob("smo_steps.advance*.nbi")), SLOW)  # kernels of other jobs follow
    finally:
        if service.process is not None:
            service.process.send_signal(signal.SIGCONT)
        service.__exit__()
    done = subprocess.run([sys.executable, "-c", MISSES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, missed = done.stdout.split(maxsplit=1)
    assert int(count) > 20
    assert missed == "[]\n", "the service has compiled all that most trainings run"
