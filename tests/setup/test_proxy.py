"""The proxy of ``deploy/proxy``, where nginx is installed: TLS, sign-in of people, rates by address."""

import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from storage.repositories.api_keys import ApiKeys, Scope
from tests.app.conftest import Gateway, start  # noqa: F401
from tests.processes import free_port
from tests.waiting import until
from tests.workers.cluster.certificates import certificates

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


class Proxy:
    """nginx with the configuration, in front of a gateway that requires keys."""

    def __init__(self, gateway: Gateway, folder: Path, repository: Path) -> None:
        self.programs, self.people = free_port(), free_port()
        files = certificates(folder / "proxy")
        assert files.key is not None
        _, people = ApiKeys(gateway.store).create("people", {Scope.PREDICT, Scope.TRAIN})
        self.id, self.key = ApiKeys(gateway.store).create("program", {Scope.TRAIN})
        (folder / "proxy" / "people").write_text("alice:{PLAIN}secret\n")
        (folder / "proxy" / "key.conf").write_text(f"proxy_set_header X-API-Key {people};\n")
        text = (repository / "deploy/proxy/nginx.conf").read_text().replace("/etc/halfmoon/proxy", f"{folder}/proxy")
        for port, own in ((8443, self.programs), (8444, self.people), (8000, gateway.port)):
            text = text.replace(str(port), str(own))
        path = folder / "nginx.conf"
        # workers of a proxy that root starts are nobody, who cannot read the folder of a test
        user = "user root;\n" if os.getuid() == 0 else ""
        path.write_text(f"{user}pid {folder}/pid;\nerror_log {folder}/error.log;\ndaemon off;\n{text}")
        assert NGINX is not None
        self.process = subprocess.Popen([NGINX, "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(path)])
        self.client = httpx.Client(verify=ssl._create_unverified_context(), timeout=30.0)

    def get(self, port: int, path: str = "/v1/datasets", **given: object) -> httpx.Response:
        return self.client.get(f"https://127.0.0.1:{port}{path}", **given)  # type: ignore[arg-type]


@pytest.fixture
def proxy(start: object, tmp_path: Path, repository: Path) -> Iterator[Proxy]:  # noqa: F811
    gateway = start(access="keys", key_refresh_seconds=0.05)  # type: ignore[operator]
    made = Proxy(gateway, tmp_path, repository)

    def ready() -> bool:
        with suppress(httpx.TransportError):
            return made.get(made.programs, headers={"X-API-Key": made.key}).status_code == 200
        return False

    until(ready)
    yield made
    made.client.close()
    made.process.terminate()
    made.process.wait()


def test_people_sign_in_and_programs_have_keys(proxy: Proxy) -> None:
    assert proxy.get(proxy.programs).status_code == 401
    assert proxy.get(proxy.people).status_code == 401
    assert proxy.get(proxy.people, auth=("alice", "wrong")).status_code == 401
    assert proxy.get(proxy.people, auth=("alice", "secret")).json()["datasets"] == []
    page = proxy.get(proxy.people, "/", auth=("alice", "secret"), headers={"Accept": "text/html"})
    assert page.status_code == 200
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://127.0.0.1:{proxy.people}").raise_for_status()


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_uses_no_password(proxy: Proxy, site: str) -> None:
    url, form = f"https://127.0.0.1:{proxy.people}/v1/datasets", {"file": ("a.csv", b"text,label\na,b\n", "text/csv")}
    headers = {"Sec-Fetch-Site": site}
    assert proxy.client.post(url, files=form, headers=headers, auth=("alice", "secret")).status_code == 403
    assert proxy.client.post(url, files=form, auth=("alice", "secret")).status_code == 201


def test_an_address_that_asks_too_often_waits(proxy: Proxy) -> None:
    statuses = [proxy.get(proxy.programs, "/v1/health/live").status_code for _ in range(200)]
    assert statuses[0] == 200
    assert 429 in statuses
