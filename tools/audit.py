"""Check the pinned dependencies for known vulnerabilities with pip-audit.

    tools/audit.py             against tools/advisories.json, without a network
    tools/audit.py --online    against osv.dev

pip-audit has no offline mode, but lets you choose the address of the service: without a network, that is a small server
on loopback which answers from the file. `make audit` installs pip-audit.
"""

import argparse
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-tools.lock")
_PINNED = re.compile(r"^([a-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


def load_file() -> dict[str, Any]:
    """Load the advisories that were considered, and those that are accepted with a reason."""
    found: dict[str, Any] = json.loads((ROOT / "tools" / "advisories.json").read_text(encoding="utf-8"))
    return found


def list_pinned(lock: str) -> list[tuple[str, str]]:
    """List the names and versions in a lock file."""
    return _PINNED.findall((ROOT / lock).read_text(encoding="utf-8"))


def find_advisories(name: str, version: str) -> list[dict[str, Any]]:
    """Find the advisories of the file that affect a version, as osv.dev would."""
    return [each for each in load_file()["advisories"] if _is_affected(each, name, Version(version))]


def _is_affected(advisory: dict[str, Any], name: str, version: Version) -> bool:
    return any(_is_within(events, version) for events in _list_ranges(advisory, name))


def _list_ranges(advisory: dict[str, Any], name: str) -> Iterator[list[dict[str, str]]]:
    for affected in advisory["affected"]:
        if affected["package"]["name"] == name:
            yield from (found["events"] for found in affected["ranges"])


def _is_within(events: list[dict[str, str]], version: Version) -> bool:
    """Check whether the last event up to a version leaves it affected (the evaluation of the OSV schema)."""
    affected = False
    for event in events:
        ((kind, at),) = event.items()
        if kind == "introduced":
            affected = affected or at == "0" or version >= Version(at)
        elif kind == "fixed":
            affected = affected and version < Version(at)
        else:
            affected = affected and version <= Version(at)
    return affected


class _Service(BaseHTTPRequestHandler):
    """Answers the one question of pip-audit: which advisories affect this version?"""

    def do_POST(self) -> None:
        """Answer a query of the OSV API."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found = find_advisories(asked["package"]["name"], asked["version"])
        body = json.dumps({"vulns": found} if found else {}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def main() -> int:
    """Run pip-audit on the lock files; the exit code is 1 if it finds something that is not accepted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--online", action="store_true", help="ask osv.dev")
    options = parser.parse_args()
    audit = [
        sys.executable,
        "-m",
        "pip_audit",
        "--strict",
        "--disable-pip",
        "--no-deps",
        "--progress-spinner",
        "off",
    ]
    audit += ["--vulnerability-service", "osv", *(word for lock in LOCKS for word in ("-r", lock))]
    audit += [word for accepted in load_file()["accepted"] for word in ("--ignore-vuln", accepted)]
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ours = ["--osv-url", f"http://127.0.0.1:{server.server_port}/v1/query"]
        done = subprocess.run([*audit, *([] if options.online else ours)], cwd=ROOT, check=False)
        server.shutdown()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
