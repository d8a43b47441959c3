"""Compares the locked versions with the known vulnerabilities: ``python -m tests.setup.audit [ADDRESS]``.

One request goes to the public database OSV, which has those of PyPI and GitHub
(https://google.github.io/osv.dev/post-v1-querybatch). Exit code:

- 1 if there are vulnerabilities, which are printed, or if the response is invalid
- 0 if there are none, or if the database cannot be reached: then a line says that nothing was compared
"""

import http
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

ADDRESS = "https://api.osv.dev"
LOCK = Path(__file__).parents[2] / "requirements.lock"
_SECONDS = 30.0


def audit(address: str, lock: Path) -> int:
    """Compare and print; returns the exit code."""
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", lock.read_text(), re.MULTILINE)
    queries = [{"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in pins]
    try:
        results = _post(f"{address}/v1/querybatch", {"queries": queries})["results"]
    except urllib.error.HTTPError as error:
        print(f"audit: {address} refused the request: {error.code} {http.HTTPStatus(error.code).phrase}")
        return 1
    except OSError as error:
        print(
            f"audit: SKIPPED, {len(pins)} locked versions were not compared with known vulnerabilities: {address} "
            f"cannot be reached ({error})"
        )
        return 0
    if len(results) != len(pins):
        print(f"audit: {address} returned {len(results)} results for {len(pins)} versions")
        return 1
    found = [
        (name, version, known["id"])
        for (name, version), result in zip(pins, results, strict=True)
        for known in result.get("vulns", ())
    ]
    for name, version, id in found:
        print(f"audit: {name} {version} has the known vulnerability {id}: https://osv.dev/vulnerability/{id}")
    print(f"audit: {len(pins)} locked versions, {len(found)} known vulnerabilities")
    return 1 if found else 0


def _post(url: str, body: object) -> dict[str, list[dict[str, list[dict[str, str]]]]]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        content: dict[str, list[dict[str, list[dict[str, str]]]]] = json.load(answer)
    return content


def main(arguments: Sequence[str]) -> int:
    return audit(arguments[0] if arguments else ADDRESS, LOCK)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
