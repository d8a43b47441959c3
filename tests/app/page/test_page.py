"""The page over HTTP: its files, the rights of browsers on them, and keys at the page."""

import gzip
import hashlib
import json
import posixpath
import re
from pathlib import Path

import httpx
import pytest

from app.codecs.base import Bounds, Reading
from app.codecs.tables.cells import header_of
from app.http.access import COOKIE
from app.page.routes import POLICY, page_files
from storage.repositories.api_keys import ApiKeys, Scope
from storage.repositories.datasets.manifest import class_warnings
from tests.app.conftest import Gateway, Start, problem_of
from tests.there import there
from tests.waiting import until

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "accept-encoding": "gzip"}
PAGE = Path("app/page")
LARGEST = 60_000
"""Bytes that the first view may send."""


@pytest.fixture
def vendored(repository: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((repository / PAGE / "vendor/manifest.json").read_text())["files"]
    return found


def test_browsers_get_the_page_and_others_json(gateway: Gateway) -> None:
    answer = gateway.client.get("/", headers=BROWSER)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-frame-options"] == "DENY"
    for accept in ("*/*", "application/json"):
        assert (
            problem_of(gateway.client.get("/", headers={"accept": accept}), 404)["detail"]
            == "nothing is at /; /docs describes every call"
        )


def test_the_policy_lets_nothing_in(gateway: Gateway) -> None:
    assert "unsafe" not in POLICY
    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'", "require-trusted-types-for 'script'"} <= set(
        POLICY.split("; ")
    )
    html = gateway.client.get("/", headers=BROWSER).text
    assert re.findall(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=", html) == []


def test_every_file_that_is_named_is_there(gateway: Gateway, repository: Path) -> None:
    html = gateway.client.get("/", headers=BROWSER).text
    wanted = set(re.findall(r'(?:href|src)="(page/[^"]+)"', html))
    for path in (repository / PAGE).rglob("*.*js"):
        named = re.findall(r'(?:from |from|import |import\()"(\.[^"]+)"', path.read_text())
        wanted |= {str((path.parent / name).resolve().relative_to((repository / "app").resolve())) for name in named}
    assert len(wanted) > 20
    for name in wanted:
        answer = gateway.client.get(f"/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["content-type"].partition(";")[0] in ("text/javascript", "text/css", "image/svg+xml")


def test_the_page_tells_usual_warnings_by_the_words_of_the_service(repository: Path) -> None:
    """Else they would stand beside each document as if something were wrong with the file."""
    found = there(
        re.search("^const USUAL = /(.*)/;$", (repository / PAGE / "view/project.js").read_text(), re.MULTILINE)
    )
    several = [(f"class {k}", 1) for k in range(30)]
    usual = [
        *class_warnings([]),
        *class_warnings(several[:1]),
        *class_warnings(several),
        *header_of(["text", "when"], Reading(Bounds(1, 1, 1, 1, 1))).warnings,
    ]
    hints = class_warnings([("ham", 5), ("ham ", 5), ("nan", 5)])
    assert [re.search(found[1], warning) is None for warning in usual] == [False] * len(usual)
    assert [re.search(found[1], warning) is None for warning in hints] == [True, True]


def needed(path: str) -> set[str]:
    """A module and all that it imports at once."""
    found, waiting = set(), {path}
    while waiting:
        path = waiting.pop()
        found.add(path)
        named = re.findall(
            r'^(?:import|export)\b.*?from ?"(\.[^"]+)"|from"(\.[^"]+)"', page_files()[path].data.decode(), re.M
        )
        waiting |= {
            posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) for name in map("".join, named)
        } - found
    return found


def test_the_first_view_is_fetched_at_once(gateway: Gateway) -> None:
    """The browser knows the imports of modules before it reads them: each link of a chain would cost a round trip."""
    html = gateway.client.get("/", headers=BROWSER).text
    named = set(re.findall(r'<(?:link rel="modulepreload" href|script type="module" src)="page/([^"]+)"', html))
    assert named == needed("view/main.js") | needed("view/data.js")


def test_the_first_view_is_small(gateway: Gateway) -> None:
    """With each view: a link may lead to any. Modules of other views are fetched when they are shown."""
    frame = needed("view/main.js")
    assert {"vendor/preact.mjs", "vendor/signals-core.mjs", "view/api.js"} <= frame
    views = [path for path in page_files() if path.startswith("view/") and path not in frame]
    assert len(views) > 15
    for view in views:
        sent = [f"page/{path}" for path in {*frame, *needed(view), "style.css", "icon.svg"}]
        assert (
            sum(int(gateway.client.get(f"/{path}", headers=BROWSER).headers["content-length"]) for path in ["", *sent])
            < LARGEST
        ), view


def test_a_browser_that_has_a_file_gets_no_second(gateway: Gateway) -> None:
    first = gateway.client.get("/page/style.css", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in first.headers
    again = gateway.client.get("/page/style.css", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert gzip.decompress(page_files()["style.css"].compressed) == first.content


@pytest.mark.parametrize(
    "path", ["x.js", "index.html", "routes.py", "vendor/manifest.json", "../main.py", "%2e%2e/main.py", "vendor"]
)
def test_other_files_are_not_shown(gateway: Gateway, path: str) -> None:
    problem_of(gateway.client.get(f"/page/{path}"), 404)


def test_what_is_vendored_is_what_was_published(repository: Path, vendored: list[dict[str, str]]) -> None:
    folder = repository / PAGE / "vendor"
    imports: dict[str, str] = json.loads((folder / "manifest.json").read_text())["imports"]
    assert sorted(each["file"] for each in vendored) == sorted(path.name for path in folder.glob("*.mjs"))
    for each in vendored:
        text = (folder / each["file"]).read_text()
        assert hashlib.sha256(text.encode()).hexdigest() == each["sha256"], each["file"]
        for package, path in imports.items():
            text = text.replace(f'from"{path}"', f'from"{package}"')
        assert hashlib.sha256(text.encode()).hexdigest() == each["original_sha256"], each["file"]
        assert each["licence"] in ("MIT", "Apache-2.0")
        assert (folder / each["licence_file"]).is_file()
        assert re.fullmatch(r"\d+\.\d+\.\d+", each["version"])


def test_modules_are_small_and_make_no_markup(repository: Path) -> None:
    for path in (repository / PAGE / "view").glob("*.js"):
        text = path.read_text()
        assert text.startswith("/** @file "), path
        assert len(text.splitlines()) <= 300, path
        assert (
            re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|\beval\(|new Function|document\.write", text) == []
        ), path


def test_a_key_is_exchanged_for_a_cookie(start: Start) -> None:
    gateway = start(access="keys", key_refresh_seconds=0.05)
    _, key = ApiKeys(gateway.store).create("person", {Scope.TRAIN})
    page = {"x-halfmoon-page": "1"}
    until(lambda: gateway.client.get("/v1/datasets", headers={"x-api-key": key}).status_code == 200)
    problem_of(gateway.client.get("/v1/datasets", headers=page), 401)
    problem_of(gateway.client.post("/page/session", json={"key": "hm_wrong"}), 401)
    answer = gateway.client.post("/page/session", json={"key": key})
    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert gateway.client.get("/v1/datasets", headers=page).status_code == 200
    # another site can make a browser send the cookie at most, never one of these headers
    assert gateway.client.get("/v1/datasets", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    for other in ("cross-site", "same-site", "none"):
        problem_of(gateway.client.get("/v1/datasets", headers={"sec-fetch-site": other}), 401)
    problem_of(gateway.client.get("/v1/datasets"), 401)
    gateway.client.delete("/page/session")
    problem_of(gateway.client.get("/v1/datasets", headers=page), 401)


def test_a_cookie_says_no_more_than_its_key(start: Start) -> None:
    gateway = start(access="keys", key_refresh_seconds=0.05)
    _, key = ApiKeys(gateway.store).create("reader", {Scope.PREDICT})
    with httpx.Client(
        base_url=gateway.client.base_url, verify=False, cookies={COOKIE: key}, headers={"x-halfmoon-page": "1"}
    ) as browser:
        until(lambda: browser.get("/v1/models").status_code == 200)
        problem_of(browser.get("/v1/datasets"), 403)
        assert browser.get("/", headers=BROWSER).status_code == 200
