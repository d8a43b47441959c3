"""The manifests for Kubernetes: against the schemas of Kubernetes, and against the code and the image."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import SchemaNotFoundError, ValidationError

from app.main import create_app
from app.serve import SHUTDOWN_TIMEOUT_SECONDS
from app.services import metrics
from app.settings import GatewaySettings
from storage.process.settings import Settings
from workers.worker.tasks import KILL_AFTER_SECONDS

Manifest = dict[str, Any]
OLDEST, NEWEST = "1.32", "1.37"
FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
OURS = ("gateway", "worker")
RUNNING = ("Deployment", "StatefulSet")


def manifests(folder: Path = FOLDER) -> list[Manifest]:
    paths = (path for path in sorted(folder.rglob("*.yaml")) if path.name != "kustomization.yaml")
    return [each for path in paths for each in yaml.safe_load_all(path.read_text())]


def named(kind: str, name: str) -> Manifest:
    (found,) = (each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def pods() -> Iterator[tuple[str, Manifest]]:
    """The specification of every pod, by the name of its maker."""
    for each in manifests():
        if each["kind"] in ("Deployment", "StatefulSet"):
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def containers() -> Iterator[tuple[str, Manifest]]:
    for name, pod in pods():
        yield from ((name, container) for container in (*pod.get("initContainers", []), *pod["containers"]))


def pod(name: str) -> Manifest:
    return dict(pods())[name]


def container(name: str) -> Manifest:
    (found,) = pod(name)["containers"]
    return dict(found)


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_kubernetes_knows_every_field(version: str) -> None:
    checked = [each for each in manifests() if each["kind"] != "ScaledObject"]
    assert len(checked) >= 12
    for each in checked:
        kubernetes_validate.validate(each, version, strict=True)


def test_a_manifest_with_an_unknown_field_would_be_refused() -> None:
    wrong = named("Deployment", "worker")
    wrong["spec"]["template"]["spec"]["containers"][0]["resourses"] = {}
    with pytest.raises(ValidationError):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)
    with pytest.raises(SchemaNotFoundError):
        kubernetes_validate.validate(wrong | {"apiVersion": "apps/v9"}, NEWEST, strict=True)


def test_the_scaled_object_scales_workers_by_jobs_that_have_not_ended() -> None:
    """Its schema is KEDA's; these are the fields that its documentation demands."""
    scaled = named("ScaledObject", "worker")
    assert scaled["apiVersion"] == "keda.sh/v1alpha1"
    spec = scaled["spec"]
    assert set(spec) <= {
        "scaleTargetRef",
        "pollingInterval",
        "cooldownPeriod",
        "minReplicaCount",
        "maxReplicaCount",
        "advanced",
        "triggers",
    }
    assert named("Deployment", spec["scaleTargetRef"]["name"])
    assert spec["minReplicaCount"] <= spec["maxReplicaCount"]
    (trigger,) = spec["triggers"]
    assert trigger["type"] == "prometheus"
    assert all(isinstance(trigger["metadata"][name], str) for name in ("serverAddress", "query", "threshold"))
    source = inspect.getsource(metrics)
    assert [
        metric for metric in re.findall(r"halfmoon_\w+", trigger["metadata"]["query"]) if f'"{metric}"' not in source
    ] == []


def test_every_file_is_part_of_an_installation() -> None:
    for folder in (FOLDER / "base", FOLDER / "autoscaling"):
        listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
        assert {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"} == {
            each for each in listed if each.endswith(".yaml")
        }
        assert all((folder / each).exists() for each in listed)


def test_every_setting_exists_and_has_a_valid_value() -> None:
    values = dict(named("ConfigMap", "settings")["data"])
    for _, each in containers():
        values |= {item["name"]: item["value"] for item in each.get("env", [])}
    fields = {f"HALFMOON_{name.upper()}": name for name in GatewaySettings.model_fields}
    assert set(values) <= set(fields)
    settings = GatewaySettings(**{fields[name]: value for name, value in values.items()})
    assert settings.access == "keys"
    assert settings.store_url.startswith("s3://")
    assert settings.redis_url.startswith(f"redis://{named('Service', 'valkey')['metadata']['name']}:6379")


def test_a_job_is_handed_back_before_its_pod_is_killed() -> None:
    drain = Settings(
        drain_seconds=float(named("ConfigMap", "settings")["data"]["HALFMOON_DRAIN_SECONDS"])
    ).drain_seconds
    assert pod("worker")["terminationGracePeriodSeconds"] >= drain + KILL_AFTER_SECONDS + 10


def test_open_requests_end_before_their_pod_is_killed() -> None:
    before = int(container("gateway")["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod("gateway")["terminationGracePeriodSeconds"] >= before + SHUTDOWN_TIMEOUT_SECONDS + 10


def test_images_and_ports_are_those_of_the_dockerfile_and_the_composition(repository: Path) -> None:
    dockerfile = (repository / "Dockerfile").read_text()
    composition = yaml.safe_load((repository / "docker-compose.yml").read_text())["services"]
    (image,) = yaml.safe_load((FOLDER / "base" / "kustomization.yaml").read_text())["images"]
    assert composition["gateway"]["image"] == f"{image['name']}:{image['newTag']}"
    assert {each["image"] for name, each in containers() if name in OURS} == {image["name"]}
    assert container("valkey")["image"] == composition["valkey"]["image"]
    assert container("valkey")["args"] == composition["valkey"]["command"]
    assert [port["containerPort"] for port in container("gateway")["ports"]] == [
        int(re.findall(r"^EXPOSE (\d+)$", dockerfile, re.MULTILINE)[0])
    ]
    for name in OURS:
        assert container(name)["args"] == composition[name]["command"]
        user, group = re.findall(r"^USER (\d+):(\d+)$", dockerfile, re.MULTILINE)[-1]
        security = pod(name)["securityContext"]
        assert (security["runAsUser"], security["runAsGroup"], security["fsGroup"]) == (
            int(user),
            int(group),
            int(group),
        )


def test_probes_call_routes_that_exist() -> None:
    routes = set(create_app(GatewaySettings()).openapi()["paths"])
    probes = [
        each[kind]["httpGet"]
        for _, each in containers()
        for kind in ("startupProbe", "readinessProbe", "livenessProbe")
        if "httpGet" in each.get(kind, {})
    ]
    assert len(probes) == 3
    assert {probe["path"] for probe in probes} <= routes
    assert {probe["port"] for probe in probes} == {port["name"] for port in container("gateway")["ports"]}
    assert container("gateway")["livenessProbe"]["httpGet"]["path"] == "/v1/health/live"


def test_nothing_runs_with_more_rights_than_it_needs() -> None:
    for name, spec in pods():
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
    for name, each in containers():
        security = each["securityContext"]
        assert security["readOnlyRootFilesystem"] is True, name
        assert security["allowPrivilegeEscalation"] is False, name
        assert security["capabilities"] == {"drop": ["ALL"]}, name
        assert "memory" in each["resources"]["limits"], name
        assert set(each["resources"]["requests"]) == {"cpu", "memory"}, name
    assert named("Namespace", "halfmoon")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_what_is_written_is_written_to_volumes(repository: Path) -> None:
    settings = named("ConfigMap", "settings")["data"]
    kernels = re.findall(r"NUMBA_CACHE_DIR=(\S+)", (repository / "Dockerfile").read_text())[-1]
    for name, paths in (
        ("gateway", [settings["HALFMOON_CACHE_DIR"]]),
        ("worker", [settings["HALFMOON_CACHE_DIR"], kernels]),
    ):
        mounts = [mount["mountPath"] for mount in container(name)["volumeMounts"]]
        assert [path for path in paths if not any(path.startswith(f"{mount}/") for mount in mounts)] == []
        volumes = {volume["name"]: volume for volume in pod(name)["volumes"]}
        assert {mount["name"] for mount in container(name)["volumeMounts"]} == set(volumes)
        room = int(volumes["tmp"]["emptyDir"]["sizeLimit"].removesuffix("Gi")) * 2**30
        assert int(settings["HALFMOON_CACHE_BYTES"]) <= room // 2
    (copies,) = pod("worker")["initContainers"]
    assert copies["command"][-2] == kernels


def test_the_network_is_closed_but_for_what_is_needed() -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in manifests() if each["kind"] == "NetworkPolicy"}
    assert policies["deny-all"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    ports = {port["name"] for _, each in containers() for port in each.get("ports", [])}
    reached = [port["port"] for spec in policies.values() for rule in spec.get("ingress", []) for port in rule["ports"]]
    assert sorted(reached) == sorted(ports)
    assert all("from" in rule for spec in policies.values() for rule in spec.get("ingress", []))
    open_to_all = [
        rule
        for spec in policies.values()
        for rule in spec.get("egress", [])
        if any("ipBlock" in each for each in rule["to"])
    ]
    assert [rule["ports"] for rule in open_to_all] == [[{"protocol": "TCP", "port": 443}]]


def test_gateways_are_replaced_without_one_less() -> None:
    gateway = named("Deployment", "gateway")["spec"]
    assert gateway["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert named("PodDisruptionBudget", "gateway")["spec"]["minAvailable"] < gateway["replicas"]
    scaler = named("HorizontalPodAutoscaler", "gateway")["spec"]
    assert scaler["scaleTargetRef"]["name"] == "gateway"
    assert scaler["minReplicas"] >= gateway["replicas"]


def test_the_runbook_names_what_is_there(repository: Path) -> None:
    section = (repository / "docs/runbook.md").read_text().split("\n## Install on Kubernetes\n")[1].split("\n## ")[0]
    folders = set(re.findall(r"deploy/kubernetes/\w+", section))
    assert {"deploy/kubernetes/base", "deploy/kubernetes/autoscaling"} == folders
    assert all((repository / folder / "kustomization.yaml").exists() for folder in folders)
    secrets = {
        source["secretRef"]["name"]
        for _, each in containers()
        for source in each.get("envFrom", [])
        if "secretRef" in source
    }
    assert set(re.findall(r"create secret generic (\S+)", section)) == secrets
    assert set(re.findall(r"(?:exec|status|logs) (\w+/\w+)", section)) <= {
        "deployment/gateway",
        "deployment/worker",
        "statefulset/valkey",
    }


def test_selectors_find_their_pods() -> None:
    labels = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in manifests()
        if each["kind"] in ("Deployment", "StatefulSet")
    }
    for each in manifests():
        if each["kind"] in ("Deployment", "StatefulSet", "PodDisruptionBudget"):
            assert each["spec"]["selector"]["matchLabels"] == labels[each["metadata"]["name"]]
        if each["kind"] == "Service":
            assert each["spec"]["selector"] == labels[each["metadata"]["name"]]
            names = {port["name"] for port in container(each["metadata"]["name"])["ports"]}
            assert {port["targetPort"] for port in each["spec"]["ports"]} <= names
