"""The real program through a minute of TLS faults, an hour of 503 and an hour without DNS: every page is fetched."""

import json
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

import pytest
from tests.tree_runs import PATIENCE_S

from vedette.adapters.crawl_store.store import CrawlStore

SPEED = 1200.0
PAGES = 30
BREAKS_AFTER = 10
MINUTE_S, HOUR_S = 60.0 / SPEED, 3600.0 / SPEED
# The program with a resolver that has no names while a file says so.
PROGRAM = """
import socket, sys
from pathlib import Path
from vedette.cli.main import main

def look_up(name, *_, **__):
    if Path(sys.argv[1]).exists():
        raise socket.gaierror(socket.EAI_NONAME, "no such name")
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

socket.getaddrinfo = look_up
sys.exit(main(sys.argv[2:]))
"""


class Site(ThreadingHTTPServer):
    """A home page and the pages it links to; it fails once, for a while, after some responses."""

    daemon_threads = True

    def __init__(self, fault: str, for_s: float, contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.fault, self.for_s, self.contexts = fault, for_s, contexts
        self.no_names: Path | None = None
        self.answered, self.refused = 0, 0
        self.until_s: float | None = None

    def is_down(self) -> bool:
        """Check whether the fault is active."""
        if self.answered >= BREAKS_AFTER and self.until_s is None:
            self.until_s = time.monotonic() + self.for_s
            if self.no_names is not None:
                self.no_names.touch()
                threading.Timer(self.for_s, self.no_names.unlink).start()
        down = self.until_s is not None and time.monotonic() < self.until_s
        self.refused += down
        return down

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """Wrap a connection in TLS, with a certificate for another name during the fault."""
        connection, address = super().get_request()
        if self.contexts is None:
            return connection, address
        context = self.contexts[self.is_down()]
        return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_: object) -> None:
        """Ignore connections that the crawler closed."""


class Handler(BaseHTTPRequestHandler):
    """Answer with a page, or with 503."""

    server: Site

    def do_GET(self) -> None:
        """Answer a request."""
        is_down = self.server.fault == "503" and self.server.is_down()
        missing = self.path == "/robots.txt"
        links = (
            "".join(f'<a href="/{number}">Page {number}</a> ' for number in range(PAGES)) if self.path == "/" else ""
        )
        rng = Random(f"{self.server.server_port}{self.path}")  # noqa: S311 - a text of its own for each page
        words = " ".join("".join(rng.choices("abcdefghijklmnop", k=7)) for _ in range(150))
        body = b"" if is_down or missing else f"<title>{words[:20]}</title><p>{words}</p>{links}".encode()
        self.send_response(503 if is_down else 404 if missing else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.answered += not is_down and not missing
        if self.server.fault == "name":
            self.server.is_down()
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Do not log."""


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """Serve a site in threads."""
    threading.Thread(target=site.serve_forever, daemon=True).start()
    try:
        yield site
    finally:
        site.shutdown()
        site.server_close()


def certify(folder: Path, host: str) -> ssl.SSLContext:
    """Return a server-side TLS context with a self-signed certificate for a host."""
    files = ("-keyout", f"{host}.key", "-out", f"{host}.pem", "-subj", f"/CN={host}")
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    more = ("-addext", f"subjectAltName=DNS:{host}")
    subprocess.run(["openssl", "req", *kind, *files, *more], cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{host}.pem", folder / f"{host}.key")
    return context


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl command is needed to make certificates")
def test_every_page_is_fetched_despite_outages(tmp_path: Path) -> None:
    """Three sites have different faults after ten pages; nothing is missing in the end."""
    contexts = certify(tmp_path, "secure.test"), certify(tmp_path, "other.test")
    (tmp_path / "vedette.toml").write_text(f'[crawl]\nca_file = "{tmp_path / "secure.test.pem"}"\n')
    with (
        serving(Site("tls", MINUTE_S, contexts)) as secure,
        serving(Site("503", HOUR_S)) as busy,
        serving(Site("name", HOUR_S)) as named,
    ):
        named.no_names = tmp_path / "no-names"
        ports = [site.server_address[1] for site in (secure, busy, named)]
        starts = ["https://secure.test/", "http://busy.test/", f"http://named.test:{ports[2]}/"]
        where = [f"secure.test:443=127.0.0.1:{ports[0]}", f"busy.test:80=127.0.0.1:{ports[1]}"]
        options = ["--allow-private", "--speed", f"{SPEED:g}", "--delay", "200s", "--patience", "10h", "--json"]
        options += ["--connect-to", where[0], "--connect-to", where[1], "--data", str(tmp_path / "data")]
        options += ["--config", str(tmp_path / "vedette.toml")]
        program = [sys.executable, "-c", PROGRAM, str(named.no_names), "crawl", *starts, *options]
        done = subprocess.run(program, capture_output=True, timeout=PATIENCE_S, check=True)
    told = json.loads(done.stdout)
    with closing(sqlite3.connect(tmp_path / "data" / "state.db")) as db:
        store = CrawlStore(db)
        pages = [url for url, page in store.iter_pages() if page.status == 200]
        assert store.count_retries().urls == 0
    assert [sum(url.startswith(start) for url in pages) for start in starts] == [PAGES + 1] * 3
    assert told["ending"] == "done"
    assert min(site.refused for site in (secure, busy, named)) > 0
