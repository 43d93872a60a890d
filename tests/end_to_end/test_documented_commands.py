"""Every command in the README and in First steps runs as printed, against a site on loopback.

``up`` and ``crawl`` get options that lead to that site; everything else is typed verbatim, in the order of the page.
``pipx install .`` runs in ``test_wheel.py``, and ``tests/contracts/test_deploying.py`` checks the container's commands.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.end_to_end.test_outages import certify
from tests.tree_runs import PATIENCE_S, kill_all, patiently

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/getting-started.md")
ELSEWHERE = ("make ", "pipx ", "podman ")
SEARCH = re.compile(r"^Search +(http://127\.0\.0\.1:\d+/)", re.MULTILINE)
TEXT = "The consumer lag of a group is how far it is behind. Install the tools to see it, and read on. " * 20
DOCS = {
    f"/docs/{name}": f"<title>{title}</title><p>{title}. {TEXT}</p><a href=/docs/intro>Intro</a>".encode()
    for name, title in (("", "Docs"), ("intro", "Consumer lag"))
}


class Site(BaseHTTPRequestHandler):
    """Pages of example.org; its robots.txt and everything else are missing."""

    def do_GET(self) -> None:
        """Answer one request."""
        body = DOCS.get(self.path, b"")
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do not log."""


def read_commands(page: str) -> list[str]:
    """Return the lines of a page's shell blocks, without their comments."""
    blocks = re.findall(r"^```\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [re.sub(r"\s+# .*", "", line) for block in blocks for line in block.splitlines() if line.strip()]


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """Serve example.org over TLS; yield its address."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command is needed to make certificates")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.socket = certify(tmp_path, "example.org").wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@contextmanager
def run_up(command: str, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run ``vedette up`` during the block, which starts once both pages are searchable."""
    printed = folder / "up.txt"
    with printed.open("wb") as file:
        words = shlex.split(command)
        tree = subprocess.Popen(words, cwd=folder, env=environment, stdout=file, stderr=file, start_new_session=True)
    try:
        patiently(lambda: SEARCH.search(printed.read_text()))
        address = SEARCH.findall(printed.read_text())[0]
        patiently(lambda: count_results(f"{address}api/v1/search?q=consumer") == len(DOCS))
        yield
    finally:
        kill_all(tree)


def count_results(url: str) -> int:
    """Return the number of results from the API, or 0 while it does not respond."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own server
            return len(json.load(answer)["results"])
    except OSError:
        return 0


def run_once(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a command to its end and return its output."""
    done = subprocess.run(
        shlex.split(command), cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_every_command_works(page: str, endpoint: str, tmp_path: Path) -> None:
    """Each exits without an error and prints something."""
    reach = f" --quiet --allow-private --connect-to '*:443={endpoint}'"
    environment = os.environ | {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "VEDETTE_CRAWL_CA_FILE": str(tmp_path / "example.org.pem"),
        "VEDETTE_SERVE_LISTEN": "127.0.0.1:0",
    }
    commands = [command for command in read_commands(page) if not command.startswith(ELSEWHERE)]
    (up,) = [command for command in commands if command.startswith("vedette up ")]
    crawls = [command for command in commands if command.startswith("vedette crawl ")]
    with run_up(up + reach, tmp_path, environment):
        for command in commands:
            if command not in (up, *crawls):
                assert run_once(command, tmp_path, environment), command
    for command in crawls:
        run_once(command + reach, tmp_path, environment)


def test_make_demo_crawls_politely(tmp_path: Path) -> None:
    """What ``make demo`` runs finishes with the documented options, and breaks no rule."""
    assert all("make demo" in read_commands(page) for page in PAGES)
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    words = [make, "--no-print-directory", "--dry-run", "demo", "PORT=0", "FOR=5s"]
    printed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    (command,) = [line.removeprefix(".venv/bin/") for line in printed if line.startswith(".venv/bin/vedette demo")]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    assert "none too soon, none disallowed" in run_once(command, tmp_path, environment)
