"""Command line errors: one line that says what to type, and exit code 2."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

import pytest
from tests.tree_runs import PATIENCE_S

from vedette.cli.main import COMMANDS, Command


def vedette(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the real program."""
    command = [sys.executable, "-m", "vedette", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=cwd)


def complaint(arguments: Sequence[str], cwd: Path) -> str:
    """Return the one-line error of a wrong command line."""
    done = vedette(*arguments, cwd=cwd)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "vedette up https://"),
        (["frob"], "crawl"),
        (["crawl"], "SITE"),
        (["crawl", "exa mple"], "is not a site"),
        (["crawl", "ftp://example.org/"], "http(s) URL"),
        (["crawl", "nobody.invalid"], "nobody.invalid does not exist"),
        (["crawl", "127.0.0.1:9"], "--allow-private"),
        (["crawl", "8.8.8.8"], "--contact"),
        (["crawl", "8.8.8.8", "--pagse", "3"], "did you mean --pages?"),
        (["crawl", "8.8.8.8", "--pages", "0"], "above 0"),
        (["crawl", "8.8.8.8", "--delay", "3"], "3s"),
        (["crawl", "8.8.8.8", "--contact", "nobody"], "email"),
        (["crawl", "8.8.8.8", "--connect-to", "x=y"], "HOST:PORT=ADDR:PORT"),
        (["crawl", "8.8.8.8", "--connect-to", "@missing"], "missing"),
        (["crawl", "8.8.8.8", "--config", "missing.toml"], "missing.toml"),
        (["crawl", "8.8.8.8", "--speed", "-1"], "above 0"),
        (["crawl", "8.8.8.8", "--patience", "long"], "unit"),
        (["lab"], "serve or judge"),
        (["lab", "serve", "made:huge"], "small"),
        (["lab", "judge", "missing.log"], "missing.log"),
        (["lab", "replay", "missing.jsonl"], "VEDETTE_DECISIONS"),
        (["lab", "run", "order", "--as-live"], "order-joined"),
        (["demo", "--for", "soon"], "unit"),
        (["demo", "--world", "nothing"], "made:"),
    ],
)
def test_a_wrong_command_line_gets_one_line_that_helps(arguments: list[str], words: str, tmp_path: Path) -> None:
    """Exit code 2, nothing on standard output, and one line that says what to type."""
    assert words in complaint(arguments, tmp_path)


def test_an_unknown_key_in_the_settings_names_the_nearest(tmp_path: Path) -> None:
    """vedette.toml is found automatically, and a misspelled key is an error."""
    (tmp_path / "vedette.toml").write_text('[crawl]\ndelai = "2s"\n')
    assert "did you mean crawl.delay?" in complaint(["crawl", "127.0.0.1:9", "--allow-private"], tmp_path)


def test_a_contact_in_the_settings_is_enough(tmp_path: Path) -> None:
    """With crawl.contact set, a public host is not refused (here, a bad page count is)."""
    (tmp_path / "vedette.toml").write_text('[crawl]\ncontact = "ops@example.org"\n')
    assert "--contact" not in complaint(["crawl", "8.8.8.8", "--pages", "x"], tmp_path)


def test_version_is_printed() -> None:
    """The version is that of the package, with whether hot modules are compiled."""
    from vedette import __version__
    from vedette.compiled import get_form

    assert vedette("--version").stdout == f"vedette {__version__} ({get_form()})\n"


class _Site(BaseHTTPRequestHandler):
    """A home page, one more page, and no robots.txt."""

    pages = {"/": "<title>Home</title><a href=/b>b</a><a href=/b?utm_source=x>b</a>", "/b": "<title>B</title>"}  # noqa: RUF012 - never changed

    def do_GET(self) -> None:
        body = self.pages.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do not log."""


@pytest.fixture
def site() -> Iterator[str]:
    """Run a real server on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_json_is_a_single_object(site: str, tmp_path: Path) -> None:
    """A crawl with --json prints a single JSON object; a URL with a tracking parameter is the same page."""
    done = vedette("crawl", site, "--allow-private", "--delay", "0s", "--json", cwd=tmp_path)
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    # Two more URLs are sitemap guesses that failed.
    assert (report["ending"], report["pages"], report["urls_known"]) == ("done", 2, 4)


def test_a_second_crawl_fetches_nothing_twice(site: str, tmp_path: Path) -> None:
    """A second run has nothing left to fetch."""
    vedette("crawl", site, "--allow-private", "--delay", "0s", "--pages", "1", "--json", cwd=tmp_path)
    second = json.loads(vedette("crawl", site, "--allow-private", "--delay", "0s", "--json", cwd=tmp_path).stdout)
    third = json.loads(vedette("crawl", site, "--allow-private", "--delay", "0s", "--json", cwd=tmp_path).stdout)
    assert (second["pages"], third["requests"]) == (1, 0)


def test_a_crawl_leaves_the_settings_of_a_site_as_they_are(site: str, tmp_path: Path) -> None:
    """Settings of an existing site still apply after a crawl that names it."""
    vedette("sites", "add", site, "--allow-private", "--delay", "10ms", "--hours", "00:00-24:00", cwd=tmp_path)
    vedette("crawl", site, "--exclude", "/b", "--json", "--allow-private", cwd=tmp_path)
    exported = vedette("sites", "export", cwd=tmp_path).stdout
    assert all(word in exported for word in ('delay = "10ms"', 'hours = "00:00-24:00"', "allow_private = true", '"/b"'))


def test_a_site_that_does_not_answer_ends_with_a_reason(tmp_path: Path) -> None:
    """If nothing listens, the crawl does not hang, reports the host, and fails."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        done = vedette("crawl", f"127.0.0.1:{port}", "--allow-private", "--patience", "1s", "--quiet", cwd=tmp_path)
    assert done.returncode == 1
    assert "Gave up waiting for 127.0.0.1 (robots.txt: no connection)" in done.stdout


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    """`vedette --help | head -1` exits without an error."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "vedette", "lab", "judge", str(tmp_path / "x")]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False)
    os.close(writer)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "imported"),
    [
        (["--version"], set()),
        (["--help"], set()),
        (["frob"], set()),
        (["sites", "--help"], {"vedette.cli.commands.sites"}),
    ],
)
def test_only_the_command_that_is_typed_is_imported(arguments: list[str], imported: set[str]) -> None:
    """``--version``, ``--help`` and an unknown command import no command and nothing heavy."""
    code = (
        "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        "from vedette.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    modules = set(done.stderr.splitlines()[-1].split())
    assert modules & {command.module for command in COMMANDS} == imported
    if not imported:
        assert not modules & {"numpy", "rich", "tantivy", "starlette", "vedette.api", "vedette.config"}
        assert {name for name in modules if name.startswith("vedette")} == {
            *("vedette", "vedette.cli", "vedette.cli.main", "vedette.compiled", "vedette.errors", "vedette.version"),
        }


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_row_of_the_table_is_a_command(command: Command) -> None:
    """Its module exists, and has what the program calls."""
    module = import_module(command.module)
    assert module.DESCRIPTION
    assert callable(module.add_arguments)
    assert callable(module.run)
