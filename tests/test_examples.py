"""The examples work: each one runs as described at its top, with real servers on loopback."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.tree_runs import PATIENCE_S
from tests.web.small_search import SmallSearch, made_key, served

from vedette.config import Rate, Serve
from vedette.runtime.alerts.webhooks import sign_body

EXAMPLES = Path(__file__).parents[1] / "examples"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
SECRET, KEY = made_key("assistant")


def run(script: str, *words: str, folder: Path) -> str:
    """Run an example to its end; return its output."""
    command = [sys.executable, str(EXAMPLES / script), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=folder, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("crawl_and_search.py", ("done: 3 pages", "ferry")),
        ("custom_policy.py", ("passes the conformance suite", "freshness")),
    ],
)
def test_crawling_and_the_lab(script: str, words: Sequence[str], tmp_path: Path) -> None:
    """These examples need nothing else."""
    printed = run(script, folder=tmp_path)
    assert all(word in printed for word in words)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server with a few pages, and a key."""
    with served(Serve(rate=Rate(0, 1.0)), lambda: [KEY], SmallSearch()) as (_, port):
        yield f"http://127.0.0.1:{port}"


def test_clients_search(server: str, tmp_path: Path) -> None:
    """This includes the API, with and without a key, and the Model Context Protocol."""
    found = run("search_client.py", server, "lag", folder=tmp_path)
    assert "pages match" in found
    assert "http" in found.partition("\n")[2]
    assert run("search_client.py", server, "lag", SECRET, folder=tmp_path) == found
    printed = run("mcp_client.py", server, SECRET, "lag", folder=tmp_path)
    assert printed.startswith("tools: ")
    assert set(printed.splitlines()[1:]) <= set(found.splitlines())
    assert len(printed.splitlines()) > 1


@contextmanager
def receiving(secret: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Run the webhook receiver on a free port, and yield its address."""
    command = [sys.executable, str(EXAMPLES / "webhook_receiver.py"), "0", secret]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as receiver:
        assert receiver.stdout is not None
        try:
            yield receiver.stdout.readline().split()[-1], receiver
        finally:
            receiver.terminate()


def post(url: str, body: bytes, signature: str) -> int:
    """Send a message; return the status of the response."""
    request = urllib.request.Request(url, body, {"X-Vedette-Signature": signature})  # noqa: S310 - our own receiver
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - as above
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_receiver_takes_what_is_signed_and_nothing_else() -> None:
    """A message that arrives twice is printed once; forged, old and unsigned ones are refused."""
    now_s, old_s = int(time.time()), int(time.time()) - 3600
    bodies = [
        json.dumps({"id": each, "items": [{"title": f"Page {each}", "url": "https://example.org/"}]}).encode()
        for each in ("1", "2")
    ]
    with receiving("whsec_00") as (url, receiver):
        assert post(url, bodies[0], sign_body("whsec_00", now_s, bodies[0])) == 204
        assert post(url, bodies[0], sign_body("whsec_00", now_s, bodies[0])) == 204
        refused = [sign_body("whsec_01", now_s, bodies[1]), sign_body("whsec_00", old_s, bodies[1]), "", "t=x,v1=\xe4"]
        assert [post(url, bodies[1], each) for each in refused] == [403] * 4
        assert post(url, bodies[1], sign_body("whsec_00", now_s, bodies[1])) == 204
        receiver.terminate()
        assert receiver.stdout is not None
        assert [line.split("  ")[0] for line in receiver.stdout.read().splitlines()] == ["Page 1", "Page 2"]
