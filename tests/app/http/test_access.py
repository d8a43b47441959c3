"""API keys, scopes, and access without keys."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from app.cli.commands import main
from app.cli.store import SCOPES
from app.http.access import SCHEMES, scopes_for
from app.http.sockets.listener import check_exposure
from storage.errors import CannotStart
from storage.names import new_id
from storage.repositories.api_keys import ApiKeys, Scope
from storage.store import Store
from tests.app.conftest import TWO_CLASSES, Gateway, Start, bearer, problem_of, publish
from tests.waiting import HANG, until

PREDICT = {"documents": [{"indices": [0]}]}
EVALUATE = {"documents": [{"indices": [0], "label": "no"}]}
INFER = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}


def key(gateway: Gateway, *scopes: Scope) -> str:
    _, text = ApiKeys(gateway.store).create("test", set(scopes))
    until(lambda: gateway.client.get("/v1/models", headers={"X-API-Key": text}).status_code != 401)
    return text


@pytest.fixture
def locked(start: Start) -> Gateway:
    gateway = start(access="keys", key_refresh_seconds=0.05)
    until(lambda: gateway.client.get("/v1/health/ready").status_code == 200)
    return gateway


def status(gateway: Gateway, text: str, method: str, path: str, body: object = None) -> int:
    return gateway.client.request(method, path, json=body, headers=bearer(text)).status_code


def test_a_request_without_a_key_is_refused(locked: Gateway) -> None:
    answer = locked.client.get("/v1/datasets")
    assert problem_of(answer, 401)["type"] == "/problems/unauthenticated"
    assert answer.headers["www-authenticate"] == 'Bearer realm="halfmoon"'
    for path in ("/v1/jobs", "/v1/models", "/v1/models/x", "/metrics", "/v1/datasets?limt=3"):
        problem_of(locked.client.get(path), 401)


def test_a_wrong_key_is_refused_as_invalid(locked: Gateway) -> None:
    right = key(locked, Scope.TRAIN)
    for wrong in ("x", "hm__", right[:-1], right + "a", right.upper()):
        answer = locked.client.get("/v1/datasets", headers=bearer(wrong))
        problem_of(answer, 401)
        assert answer.headers["www-authenticate"] == 'Bearer realm="halfmoon", error="invalid_token"'


def test_health_and_the_contract_are_open(locked: Gateway) -> None:
    for path in ("/v1/health/live", "/v1/health/ready", "/v1/openapi.json", "/docs"):
        assert locked.client.get(path).status_code == 200


def test_each_scope_opens_its_own_calls(locked: Gateway) -> None:
    version, other = publish(locked.store), publish(locked.store, "other")
    predict, train, admin, label = (
        key(locked, scope) for scope in (Scope.PREDICT, Scope.TRAIN, Scope.ADMIN, Scope.LABEL)
    )
    labeled = locked.client.post("/v1/datasets", json={"documents": TWO_CLASSES}, headers=bearer(train)).json()["id"]
    calls: list[tuple[str, str, object, set[str]]] = [
        ("POST", "/v1/datasets", {"documents": TWO_CLASSES}, {"train", "admin"}),
        ("GET", "/v1/datasets", None, {"train", "admin"}),
        ("GET", "/v1/jobs", None, {"train", "admin"}),
        ("POST", "/v1/jobs", {"model": "m", "algorithm": "svm", "dataset": version.dataset}, {"train", "admin"}),
        ("POST", f"/v1/models/{version.name}/predict", PREDICT, {"predict", "admin"}),
        ("GET", f"/v1/models/{version.name}", None, {"predict", "train", "admin"}),
        ("GET", "/metrics", None, {"predict", "train", "admin"}),
        ("GET", f"/v2/models/{version.name}", None, {"predict", "admin"}),
        ("POST", f"/v2/models/{version.name}/infer", INFER, {"predict", "admin"}),
        ("POST", f"/v2/models/{version.name}/versions/1/infer", INFER, {"predict", "admin"}),
        ("POST", f"/v1/models/{version.name}/versions/1/predict", PREDICT, {"predict", "admin"}),
        ("POST", f"/v1/models/{version.name}/explain", PREDICT, {"predict", "admin"}),
        ("POST", f"/v1/models/{version.name}/evaluate", EVALUATE, {"predict", "admin"}),
        ("POST", f"/v1/models/{version.name}/versions/1/evaluate", EVALUATE, {"predict", "admin"}),
        ("POST", f"/v1/models/{version.name}/evaluate", {"dataset": labeled}, {"train", "admin"}),
        ("POST", f"/v1/models/{version.name}/suggest", {"dataset": version.dataset}, {"train", "admin"}),
        ("PUT", f"/v1/datasets/{version.dataset}/labels", {"labels": {}}, {"train", "admin"}),
        ("PUT", f"/v1/models/{version.name}/aliases/live", {"version": 1}, {"admin"}),
        ("DELETE", f"/v1/models/{version.name}/aliases/live", None, {"admin"}),
        ("DELETE", f"/v1/models/{version.name}/versions/1", None, {"admin"}),
        ("DELETE", f"/v1/models/{other.name}", None, {"admin"}),
        ("DELETE", f"/v1/jobs/{other.job}", None, {"train", "admin"}),
        ("DELETE", f"/v1/datasets/{other.dataset}", None, {"train", "admin"}),
    ]
    for method, path, body, scopes in calls:
        # a key to label may do what those to predict and to train may, but remove and rename
        allowed = scopes | ({"label"} if scopes != {"admin"} and method != "DELETE" else set())
        for scope, text in (("predict", predict), ("label", label), ("train", train), ("admin", admin)):
            found = status(locked, text, method, path, body)
            # what one key has deleted is gone for the next
            gone = method == "DELETE" and found == 404 and scope == "admin" and "train" in scopes
            assert found < 300 or gone if scope in allowed else found == 403, (method, path, scope, found)


def test_what_is_refused_says_which_key_is_needed(locked: Gateway) -> None:
    answer = locked.client.get("/v1/datasets", headers=bearer(key(locked, Scope.PREDICT)))
    assert problem_of(answer, 403)["detail"] == "the key is for predict; this needs one for admin or label or train"
    assert (
        answer.headers["www-authenticate"]
        == 'Bearer realm="halfmoon", error="insufficient_scope", scope="admin label train"'
    )


def test_the_line_of_a_refusal_says_whose_key_it_was(start: Start) -> None:
    gateway = start(access="keys", key_refresh_seconds=0.05, log_requests=True)
    made, text = ApiKeys(gateway.store).create("test", {Scope.PREDICT})
    until(lambda: status(gateway, text, "GET", "/v1/models") == 200)
    with structlog.testing.capture_logs() as lines:
        assert status(gateway, text, "GET", "/v1/datasets") == 403
    assert [(line["status"], line["key"]) for line in lines if line["event"] == "answered"] == [(403, made.id)]


def test_a_key_with_two_scopes_has_both(locked: Gateway) -> None:
    text = key(locked, Scope.PREDICT, Scope.TRAIN)
    publish(locked.store)
    assert status(locked, text, "GET", "/v1/datasets") == 200
    assert status(locked, text, "POST", "/v1/models/news/predict", PREDICT) == 200


def test_a_revoked_key_ends_within_seconds_in_every_gateway(locked: Gateway, start: Start) -> None:
    other = start(access="keys", key_refresh_seconds=0.05)
    made, text = ApiKeys(locked.store).create("test", {Scope.TRAIN})
    for gateway in (locked, other):
        until(lambda gateway=gateway: status(gateway, text, "GET", "/v1/datasets") == 200)  # type: ignore[misc]
    ApiKeys(locked.store).revoke(made.id)
    for gateway in (locked, other):
        until(lambda gateway=gateway: status(gateway, text, "GET", "/v1/datasets") == 401)  # type: ignore[misc]


def ends(gateway: Gateway, text: str, id: str) -> list[str]:
    """The lines of the events of a job; its key is revoked once the first is there."""
    with gateway.client.stream("GET", f"/v1/jobs/{id}/events", headers=bearer(text)) as answer:
        lines = answer.iter_lines()
        first = next(lines)
        ApiKeys(gateway.store).revoke(text.split("_")[1])
        return [first, *lines]


def test_event_streams_of_a_revoked_key_end(locked: Gateway) -> None:
    train = key(locked, Scope.TRAIN)
    id = locked.client.post(
        "/v1/jobs", json={"model": "news", "algorithm": "svm", "documents": TWO_CLASSES}, headers=bearer(train)
    ).json()["id"]
    # a key that nobody can read comes before the revocation is heard
    locked.store.create(f"keys/{new_id('key')}.json", b"{")
    assert ends(locked, train, id)[-2:] == [": the key is no longer valid", ""]


def test_uploads_of_a_revoked_key_end(locked: Gateway) -> None:
    train = key(locked, Scope.TRAIN)
    head = (
        f"POST /v1/datasets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {train}\r\nContent-Type: "
        "application/x-ndjson\r\nContent-Length: 1000"
    )
    with socket.create_connection(("127.0.0.1", locked.port), HANG) as client:
        client.sendall(f'{head}\r\n\r\n{{"indices":[1],"label":"no"}}\n'.encode())
        ApiKeys(locked.store).revoke(train.split("_")[1])
        # the rest is never sent
        assert client.recv(1000).split()[1] == b"401"
    assert locked.client.get("/v1/datasets", headers=bearer(key(locked, Scope.TRAIN))).json()["datasets"] == []


def test_known_keys_go_on_while_the_store_is_away(locked: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    from storage.errors import StoreUnavailable

    text = key(locked, Scope.PREDICT)
    publish(locked.store)
    looked = []

    def away(self: ApiKeys) -> None:
        looked.append(1)
        raise StoreUnavailable("away")

    monkeypatch.setattr(ApiKeys, "every", away)
    until(lambda: len(looked) > 2)
    assert status(locked, text, "POST", "/v1/models/news/predict", PREDICT) == 200


def test_no_key_is_called_wrong_before_keys_were_read(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    from storage.errors import StoreUnavailable

    def away(self: ApiKeys) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(ApiKeys, "every", away)
    gateway = start(access="keys")
    answer = gateway.client.get("/v1/datasets", headers=bearer("hm_x_y"))
    problem_of(answer, 503)
    assert answer.headers["retry-after"] == "1"
    assert problem_of(gateway.client.get("/v1/health/ready"), 503)["detail"] == "the keys could not be read yet"


def test_metrics_can_be_left_open(start: Start) -> None:
    gateway = start(access="keys", public_metrics=True)
    assert gateway.client.get("/metrics").status_code == 200
    problem_of(gateway.client.get("/v1/jobs"), 401)


SERVED = """
import os, signal, socket, sys, threading
import httpx
from app.serve import serve
from app.settings import GatewaySettings
from storage.repositories.datasets import Datasets

def broken(*_):
    documents = "what " + "users sent"
    raise RuntimeError("broken")

def ask():
    text = sys.stdin.read()
    key = {"Authorization": f"Bearer {text}"}
    while httpx.get(f"http://127.0.0.1:{port}/v1/datasets", headers=key).status_code != 500:
        pass
    httpx.get(f"http://127.0.0.1:{port}/v1/datasets", headers={"Authorization": f"Bearer {text}~"})
    httpx.get(f"http://127.0.0.1:{port}/v1/datasets", headers={"X-API-Key": f"{text}~"})
    os.kill(os.getpid(), signal.SIGINT)

Datasets.list = broken
listening = socket.create_server(("127.0.0.1", 0))
port = listening.getsockname()[1]
threading.Thread(target=ask).start()
url, redis, form = sys.argv[1:]
settings = GatewaySettings(store_url=url, redis_url=redis, access="keys", log_level="debug", log_format=form)
serve(settings, listening.detach())
"""


@pytest.mark.parametrize("form", ["console", "json"])
def test_the_log_of_a_failure_has_no_key_and_no_values_of_variables(
    store: Store, tmp_path: Path, repository: Path, form: str
) -> None:
    _, text = ApiKeys(store).create("test", {Scope.TRAIN})
    command = [sys.executable, "-c", SERVED, f"file://{tmp_path}/store", f"unix://{tmp_path}/nowhere.sock", form]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=repository, timeout=HANG, check=False
    )
    assert "request failed" in done.stderr
    assert "RuntimeError" in done.stderr
    assert text[40:-2] not in done.stdout + done.stderr
    assert "what users sent" not in done.stderr
    assert "locals" not in done.stderr


def scopes_of(path: str, method: str) -> list[str]:
    """As docs/running.md has them, told apart by the path and not by the application's own rule."""
    if path == "/metrics" or path.endswith("/evaluate"):
        return ["admin", "predict", "train"]
    if path.startswith("/v2/models") or path.endswith(("/predict", "/explain", "/label")):
        return ["admin", "predict"]
    if path.startswith(("/v1/webhooks", "/v1/keys")):
        return ["admin"]
    if path.startswith("/label-studio"):
        return ["admin", "train"] if path.endswith("/webhook") else ["admin", "predict"]
    if path.startswith(("/v1/datasets", "/v1/jobs")) or path.endswith(("/suggest", "/doubts")):
        return ["admin", "train"]
    assert path.startswith(("/v1/models", "/v1/encoders"))
    return ["admin", "predict", "train"] if method == "get" else ["admin"]


def test_every_guarded_call_of_the_contract_says_so(contract: dict[str, Any]) -> None:
    assert contract["components"]["securitySchemes"].keys() == SCHEMES.keys()
    for path, item in contract["paths"].items():
        for method, operation in item.items():
            if "/health/" in path or path in ("/v2", "/problems/{type}"):
                assert "security" not in operation
            else:
                scopes = scopes_of(path, method)
                label = {"label"} if len(scopes) > 1 and method not in ("delete", "patch") else set()
                assert operation["x-scopes"] == sorted({*scopes, *label})
                assert operation["security"] == [{name: []} for name in SCHEMES]
                assert {"401", "403", "421"} <= set(operation["responses"])


def test_an_unknown_kind_of_call_is_for_admin_alone() -> None:
    assert scopes_for("something new", "GET") == frozenset({Scope.ADMIN})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", ""])
def test_no_other_machine_may_call_by_default(host: str) -> None:
    with pytest.raises(CannotStart, match="HALFMOON_ACCESS=keys"):
        check_exposure("loopback", host)
    check_exposure("keys", host)
    check_exposure("anyone", host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_loopback_is_open_to_this_machine(host: str) -> None:
    check_exposure("loopback", host)


def test_the_gateway_looks_at_the_socket_that_it_is_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HALFMOON_STORE_URL", f"file://{tmp_path}/store")
    with socket.create_server(("0.0.0.0", 0)) as listener:
        assert main(["api", "--descriptor", str(listener.dup().detach())]) == 1
    assert "no key is required" in capsys.readouterr().err


def test_up_does_not_start_open_to_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["up", "--host", "0.0.0.0", "--port", "0", "--data", str(tmp_path / "data")]) == 1
    assert "no key is required" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_keys_are_made_listed_and_revoked_by_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", str(tmp_path)]
    assert (
        main(["keys", "create", *data, "--name", "portal", "--scope", "predict", "--scope", "train", "--days", "30"])
        == 0
    )
    made = capsys.readouterr()
    id = made.err.split()[0]
    assert made.out.startswith(f"hm_{id}_")
    assert main(["keys", "list", *data]) == 0
    line = capsys.readouterr().out
    assert line.split()[:2] == [id, "valid"]
    assert "predict,train" in line
    assert "portal" in line
    assert made.out.strip() not in line
    assert main(["keys", "revoke", *data, id]) == 0
    main(["keys", "list", *data])
    assert capsys.readouterr().out.split()[:2] == [id, "revoked"]
    assert main(["keys", "revoke", *data, "key-nothing"]) == 1
    assert capsys.readouterr().err == "halfmoon: there is no key 'key-nothing'\n"


@pytest.mark.parametrize("days", ["nan", "inf", "1e12", "-1", "0", "x"])
def test_a_key_is_valid_for_a_time_to_come(tmp_path: Path, capsys: pytest.CaptureFixture[str], days: str) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["keys", "create", "--data", str(tmp_path), "--name", "portal", "--scope", "predict", f"--days={days}"])
    assert refused.value.code == 2
    assert "argument --days: must be a number of days above 0 and at most 36500" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("action", [["list"], ["revoke", "key-x"]])
def test_a_folder_that_is_no_data_folder_is_an_error_not_an_empty_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], action: list[str]
) -> None:
    assert main(["keys", *action, "--data", str(tmp_path)]) == 1
    assert "is not a data folder of `halfmoon up`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "store").mkdir()
    assert main(["keys", "list", "--data", str(tmp_path)]) == 0
    assert "there are no keys here" in capsys.readouterr().err


def test_the_commands_know_every_scope() -> None:
    assert tuple(Scope) == SCOPES


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.3.2.1:80", "[::1]", "[::1]:8000", ""]
)
def test_callers_on_this_machine_may_call_it_by_its_own_names(gateway: Gateway, host: str) -> None:
    assert gateway.client.get("/v1/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "192.0.2.1",
        "[::2]:1",
        "::",
    ],
)
def test_a_name_that_was_bent_to_this_machine_is_none_of_its_own(gateway: Gateway, host: str) -> None:
    for path in ("/v1/models", "/metrics"):
        assert problem_of(gateway.client.get(path, headers={"Host": host}), 421)["type"] == "/problems/misdirected"
    assert gateway.client.post("/v2/models/m/infer", headers={"Host": host}).status_code == 421
    assert gateway.client.get("/v1/health/live", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "127.0.0.1:8000",
        "192.0.2.1",
        "[2001:db8::1]:80",
        "",
        "gateway:8000",
        "News.Example",
        "news.example.",
    ],
)
def test_anyone_may_call_it_by_addresses_and_by_names_that_are_allowed(start: Start, host: str) -> None:
    gateway = start(access="anyone", allowed_hosts=("gateway", "news.example"))
    assert gateway.client.get("/v1/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "news.example.evil.example", "192.0.2.1.evil.example:80", "*"])
def test_names_that_are_not_allowed_are_refused_wherever_no_key_is_required(start: Start, host: str) -> None:
    gateway = start(access="anyone", allowed_hosts=("news.example",))
    problem = problem_of(gateway.client.get("/v1/models", headers={"Host": host}), 421)
    assert (problem["type"], "HALFMOON_ALLOWED_HOSTS" in problem["detail"]) == ("/problems/misdirected", True)
    assert gateway.client.get("/v1/health/live", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "settings",
    [{"access": "anyone", "allowed_hosts": ("*",)}, {"access": "loopback", "allowed_hosts": ("evil.example",)}],
)
def test_the_operator_may_allow_any_name(start: Start, settings: dict[str, Any]) -> None:
    assert start(**settings).client.get("/v1/models", headers={"Host": "evil.example"}).status_code == 200


def test_where_keys_are_required_any_name_will_do(locked: Gateway) -> None:
    headers = {"Host": "news.example", "X-API-Key": key(locked, Scope.PREDICT)}
    assert locked.client.get("/v1/models", headers=headers).status_code == 200


def test_who_sends_a_key_is_not_hindered_where_none_is_needed(gateway: Gateway) -> None:
    assert gateway.client.get("/v1/datasets", headers=bearer("whatever")).status_code == 200


OTHER_SITES = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:9999"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost.evil.example"},
]
OWN_PAGES = [
    {},
    {"Sec-Fetch-Site": "same-origin", "Origin": "https://halfmoon.example"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "http://localhost:8000", "Host": "localhost:8000"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://pages.example"},
]


@pytest.mark.parametrize("access", ["loopback", "anyone"])
@pytest.mark.parametrize("headers", OTHER_SITES)
def test_a_page_of_another_site_changes_nothing(start: Start, access: str, headers: dict[str, str]) -> None:
    """A form of it is sent without asking first."""
    gateway = start(access=access, cors_origins=("https://pages.example",))
    form = {"file": ("a.csv", b"text,label\na,b\n", "text/csv")}
    problem = problem_of(gateway.client.post("/v1/datasets", files=form, headers=headers), 403)
    assert (problem["type"], "HALFMOON_CORS_ORIGINS" in problem["detail"]) == ("/problems/cross-site", True)
    assert gateway.client.delete("/v1/datasets/ds-1", headers=headers).status_code == 403
    assert gateway.client.post("/v2/models/m/infer", headers=headers).status_code == 403
    assert gateway.client.get("/v1/datasets", headers=headers).json()["datasets"] == []


@pytest.mark.parametrize("headers", OWN_PAGES)
def test_its_own_page_programs_and_allowed_pages_change_things(start: Start, headers: dict[str, str]) -> None:
    gateway = start(cors_origins=("https://pages.example",))
    form = {"file": ("a.csv", b"text,label\na,b\n", "text/csv")}
    assert gateway.client.post("/v1/datasets", files=form, headers=headers).status_code == 201


def test_a_key_suffices_whatever_page_sends_it(locked: Gateway) -> None:
    headers = {**OTHER_SITES[2], "X-API-Key": key(locked, Scope.TRAIN)}
    assert locked.client.delete("/v1/datasets/ds-1", headers=headers).status_code == 404
