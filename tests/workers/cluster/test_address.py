"""Who may connect to a cluster: nobody from other machines without a certificate, who gets nothing however they ask."""

import os
import random
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from distributed import LocalCluster

from app.cli.commands import main
from storage.errors import CannotStart, ClusterUnavailable
from storage.process.settings import Settings
from tests.waiting import HANG, SOON
from tests.workers.cluster.certificates import certificates
from workers.cluster.address import NO_TLS, ClusterAddress, TlsFiles, check_address
from workers.cluster.engine import connected
from workers.cluster.local import CONFIG, local_cluster


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return certificates(tmp_path_factory.mktemp("tls") / "own")


@pytest.fixture(scope="module")
def guarded(files: TlsFiles) -> Iterator[LocalCluster]:
    """A cluster that asks for certificates."""
    with dask.config.set(CONFIG), local_cluster("127.0.0.1", 0, 1, files, processes=False) as made:
        yield made


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("tcp://10.0.0.5:8786", "must be tls://host:port, with certificates"),
        ("tcp://127.0.0.1:8786", "`halfmoon cluster` makes and prints them"),
        ("http://localhost:8786", "must be tls://host:port"),
        ("localhost:8786", "must be tls://host:port"),
        ("tls://10.0.0.5:8786", "HALFMOON_CLUSTER_CA, which is not set"),
    ],
)
def test_an_address_is_refused_without_certificates(address: str, told: str) -> None:
    with pytest.raises(CannotStart, match=told):
        check_address(address, NO_TLS)


def test_an_address_with_certificates_is_accepted(files: TlsFiles, tmp_path: Path) -> None:
    check_address("tls://10.0.0.5:8786", files)
    with pytest.raises(CannotStart, match="HALFMOON_CLUSTER_KEY, which names no file"):
        check_address("tls://10.0.0.5:8786", files._replace(key=tmp_path / "none"))


def test_settings_name_the_cluster(files: TlsFiles) -> None:
    assert ClusterAddress.of(Settings()) is None
    named = ClusterAddress.of(
        Settings(
            cluster="tls://a:1",
            cluster_ca=files.ca,
            cluster_cert=files.cert,
            cluster_key=files.key,
            store_url="s3://b/c",
        )
    )
    assert named == ClusterAddress("tls://a:1", files, "s3://b/c")
    with pytest.raises(CannotStart, match="HALFMOON_CLUSTER names none"):
        ClusterAddress.of(Settings(engine="cluster"))


def test_a_cluster_does_not_listen_without_one_of_its_files(
    files: TlsFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, path in files._replace(key=tmp_path / "none")._asdict().items():
        monkeypatch.setenv(f"HALFMOON_CLUSTER_{name.upper()}", str(path))
    assert main(["cluster", "--port", "0"]) == 1
    assert "HALFMOON_CLUSTER_KEY, which names no file" in capsys.readouterr().err


def test_a_cluster_without_dask_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed.security", None)
    assert main(["cluster", "--port", "0"]) == 1
    assert "pip install 'halfmoon[cluster]'" in capsys.readouterr().err


def test_nobody_gets_anything_without_the_certificate(guarded: LocalCluster, files: TlsFiles, tmp_path: Path) -> None:
    """Frames at random, real ones of the protocol, TLS without and with another certificate: at the scheduler's port
    and at the worker's.
    """
    rng, stranger = random.Random(7), certificates(tmp_path / "stranger")
    scheduler, worker = guarded.scheduler_address, next(iter(guarded.workers.values())).address
    frames = [rng.randbytes(rng.randrange(1, 4000)) for _ in range(20)]
    # the lengths of two frames, and a message of the handshake, as a client begins
    frames += [
        (2).to_bytes(8, "little") + (1 << 40).to_bytes(8, "little") * 2,
        b"\x01\x00\x00\x00\x00\x00\x00\x00" * 3,
        b"GET / HTTP/1.1\r\n\r\n",
    ]
    for address in (scheduler, worker):
        host, port = address.removeprefix("tls://").rsplit(":", 1)
        for frame in frames:
            with socket.create_connection((host, int(port)), SOON) as plain:
                assert _alert_or_nothing(_answer(plain, frame)), frame[:20]
        for own in (None, stranger):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if own is not None:
                context.load_cert_chain(str(own.cert), str(own.key))
            with socket.create_connection((host, int(port)), SOON) as plain:
                assert not _read_by_tls(plain, context)
    with pytest.raises(ClusterUnavailable), connected(scheduler, stranger):
        pass
    with connected(scheduler, files) as client:
        assert client.submit(sum, [1, 2, 3]).result(timeout=SOON) == 6, "it works on for whoever has the certificate"


def _answer(plain: socket.socket, frame: bytes) -> bytes:
    """The answer until the other end closes, or for a moment."""
    found = b""
    try:
        plain.sendall(frame)
        plain.settimeout(0.2)
        while more := plain.recv(1000):
            found += more
    except OSError:
        pass
    return found


def _read_by_tls(plain: socket.socket, context: ssl.SSLContext) -> bytes:
    """The answer of the protocol below TLS; the other end asks for a certificate."""
    try:
        with context.wrap_socket(plain) as wrapped:
            return wrapped.recv(1)
    except (ssl.SSLError, ConnectionError):
        return b""


def _alert_or_nothing(found: bytes) -> bool:
    """Whether an answer is empty, or an alert of TLS: two bytes in a record of type 21."""
    return not found or (found[0] == 21 and len(found) == 7)


def test_a_cluster_makes_an_authority_that_is_thrown_away(tmp_path: Path) -> None:
    """Any user of the machine reaches loopback."""
    command = [sys.executable, "-c", "import sys; from app.cli.commands import main; sys.exit(main(sys.argv[1:]))"]
    command += ["cluster", "--port", "0", "--workers", "1"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as running:
        assert running.stdout is not None
        said = dict(word.split("=") for word in running.stdout.readline().decode().split() if "=" in word)
        url, *paths = said.values()
        files = TlsFiles(*map(Path, paths))
        assert url.startswith("tls://127.0.0.1:")
        assert files.key is not None
        assert files.key.parent.stat().st_mode & 0o077 == 0
        with connected(url, files) as client:
            assert client.run(os.getpid)
        with pytest.raises((ClusterUnavailable, CannotStart)), connected(url, certificates(tmp_path / "stranger")):
            pass
        with pytest.raises((ClusterUnavailable, CannotStart)), connected(url.replace("tls:", "tcp:"), NO_TLS):
            pass
        running.terminate()
        running.wait(HANG)
    assert not files.key.exists()
