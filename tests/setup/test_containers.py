"""The image and the composition, as far as can be checked without a container engine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

BIN = Path(sys.executable).parent


def hadolint(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "hadolint", "--failure-threshold", "info", path], capture_output=True, text=True, check=False
    )


def compose(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "docker-compose", "--file", path, "config", "--quiet"], capture_output=True, text=True, check=False
    )


def test_hadolint_accepts_the_dockerfile(repository: Path) -> None:
    found = hadolint(repository / "Dockerfile")
    assert found.returncode == 0, found.stdout


def test_hadolint_would_refuse_a_poor_one(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN cd /tmp && pip install numpy\n")
    assert hadolint(tmp_path / "Dockerfile").returncode != 0


def test_the_composition_is_valid(repository: Path) -> None:
    found = compose(repository / "docker-compose.yml")
    assert (found.returncode, found.stderr) == (0, "")


def test_a_composition_with_an_unknown_field_would_be_refused(repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "docker-compose.yml"
    path.write_text((repository / "docker-compose.yml").read_text().replace("read_only:", "red_only:"))
    assert compose(path).returncode != 0


@pytest.fixture
def services(repository: Path) -> dict[str, dict[str, object]]:
    content = yaml.safe_load((repository / "docker-compose.yml").read_text())
    found: dict[str, dict[str, object]] = content["services"]
    return found


def test_nothing_runs_with_more_rights_than_it_needs(services: dict[str, dict[str, object]]) -> None:
    assert set(services) == {"valkey", "gateway", "worker"}
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name


def test_the_worker_can_be_scaled(services: dict[str, dict[str, object]]) -> None:
    assert "container_name" not in services["worker"]
    assert "ports" not in services["worker"]


def test_the_gateway_is_published_on_loopback_only(services: dict[str, dict[str, object]]) -> None:
    ports = services["gateway"]["ports"]
    assert isinstance(ports, list)
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_all_that_the_image_is_built_from_reaches_the_builder(repository: Path) -> None:
    sent = {line[1:] for line in (repository / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (repository / "Dockerfile").read_text(), re.MULTILINE)
    assert {name for names in copied for name in names.split()} == sent


def test_base_images_are_pinned_by_digest(repository: Path, services: dict[str, dict[str, object]]) -> None:
    (base,) = re.findall(r"^ARG BASE=(.+)$", (repository / "Dockerfile").read_text(), re.MULTILINE)
    for image in (base, str(services["valkey"]["image"])):
        assert re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image)


def test_what_is_written_is_written_to_mounts(repository: Path, services: dict[str, dict[str, object]]) -> None:
    text = (repository / "Dockerfile").read_text()
    mounts = [*re.findall(r'"(/[^"]+)"', re.findall(r"^VOLUME (.+)$", text, re.MULTILINE)[-1]), "/tmp"]
    final = text.split("\nFROM ")[-1]
    written = [
        re.findall(rf"{name}=(?:file://)?(\S+)", final)[-1]
        for name in ("NUMBA_CACHE_DIR", "HALFMOON_STORE_URL", "HALFMOON_CACHE_DIR")
    ]
    assert [path for path in written if not any(path.startswith(f"{mount}/") for mount in mounts)] == []
    assert all("/tmp:" in str(services[name]["tmpfs"]) for name in ("gateway", "worker"))


def test_the_image_asks_for_keys(repository: Path, services: dict[str, dict[str, object]]) -> None:
    """It listens on every address. Only the composition, which publishes it on loopback alone, lets anyone call."""
    assert "HALFMOON_HOST=0.0.0.0 HALFMOON_PORT=8000 HALFMOON_ACCESS=keys" in (repository / "Dockerfile").read_text()
    assert services["gateway"]["environment"]["HALFMOON_ACCESS"] == "${HALFMOON_ACCESS:-anyone}"  # type: ignore[index]


def test_the_image_leaves_out_what_no_service_runs(repository: Path, tmp_path: Path) -> None:
    (slim,) = re.findall(r"^RUN (find [^\0]+?[^\\])$", (repository / "Dockerfile").read_text(), re.MULTILINE)
    kept = ["numpy/core.py", "scipy/io/mmio.py", "onnxruntime/capi/state.so", "tests/a.py", "redis/tests/a.py"]
    gone = [
        "numpy/lib/tests/a.py",
        "scipy/io/tests/data/a.mat",
        "numba/tests/a.py",
        "onnxruntime/capi/libonnxruntime.so.1",
    ]
    for name in kept + gone:
        path = tmp_path / "python3.11/site-packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert "/opt/halfmoon/lib" in slim
    subprocess.run(["sh", "-c", slim.replace("/opt/halfmoon/lib", str(tmp_path))], check=True)
    assert {"/".join(path.relative_to(tmp_path).parts[2:]) for path in tmp_path.rglob("*.*") if path.is_file()} == {
        *kept
    }


def test_the_image_runs_without_root(repository: Path) -> None:
    users = re.findall(r"^USER (.+)$", (repository / "Dockerfile").read_text(), re.MULTILINE)
    assert users
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])


def test_no_container_takes_all_memory_and_processes(services: dict[str, dict[str, object]]) -> None:
    assert [
        name for name, service in services.items() if "mem_limit" not in service or "pids_limit" not in service
    ] == []


def test_the_cache_of_files_fits_where_it_lies(services: dict[str, dict[str, object]]) -> None:
    """The folder for temporary files is memory, of a fixed size; without a bound the cache would take ten times
    that."""
    for name in ("gateway", "worker"):
        environment = services[name]["environment"]
        assert isinstance(environment, dict)
        (default,) = re.findall(r":-(\d+)}", environment["HALFMOON_CACHE_BYTES"])
        (room,) = re.findall(r"^/tmp:size=(\d+)g", str(services[name]["tmpfs"][0]))  # type: ignore[index]
        assert int(default) <= int(room) * 2**30 // 2


def test_the_health_check_asks_whether_the_process_lives(repository: Path) -> None:
    """A restart of the gateway would not bring back a store that is away."""
    check = (repository / "Dockerfile").read_text().split("HEALTHCHECK")[1].split("ENTRYPOINT")[0]
    assert "/v1/health/live" in check
