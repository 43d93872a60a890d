"""The commands of a running crawl, as people type them: the real program against real servers on loopback."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.tree_runs import PATIENCE_S, patiently

from vedette.lab.judge.access_log import read_log
from vedette.lab.judge.politeness import judge_log
from vedette.lab.worlds.synthetic.server import start_server

SPEED = 600.0


def vedette(*arguments: str, cwd: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run the real program."""
    command = [sys.executable, "-m", "vedette", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=cwd, input=given
    )


def run_json(*arguments: str, cwd: Path) -> Any:
    """Return a command's JSON output: one object, nothing else, and exit code 0."""
    done = vedette(*arguments, "--json", cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def complaint(*arguments: str, cwd: Path, code: int = 2) -> str:
    """Return the one-line error of an invalid command."""
    done = vedette(*arguments, cwd=cwd)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


class _Web(BaseHTTPRequestHandler):
    """A few pages, a robots.txt with one rule, and a list of requests."""

    pages = {  # noqa: RUF012 - never changed
        "/robots.txt": "User-agent: *\nDisallow: /private/\n",
        "/": "<title>Home</title><a href=/a>a</a><a href=/private/x>x</a><a href='/b?utm_source=m'>b</a>",
        "/a": "<title>A \x1b]0;owned\x07</title><a href=/gone>gone</a>",
        "/b": "<title>B</title>",
        "/new": "<title>Unlinked</title>",
    }
    asked: list[str] = []  # noqa: RUF012 - emptied by the fixture
    agents: set[str] = set()  # noqa: RUF012 - emptied by the fixture

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.agents.add(self.headers["user-agent"])
        body = self.pages.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("content-type", "text/plain" if self.path == "/robots.txt" else "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do not log."""


@pytest.fixture
def site() -> Iterator[str]:
    """Run a real server on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    _Web.asked.clear()
    _Web.agents.clear()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def up(*arguments: str, cwd: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run ``vedette up`` until the block ends."""
    command = [sys.executable, "-m", "vedette", "up", "--listen", "127.0.0.1:0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def pages_kept(cwd: Path) -> int:
    """Return the number of pages in a folder; 0 if there is no folder."""
    done = vedette("status", "--json", cwd=cwd)
    return int(json.loads(done.stdout)["pages"]) if done.returncode == 0 else 0


POLITE = ("--allow-private", "--delay", "10ms")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "--listen", ""], "vedette up https://"),
        (["up", "127.0.0.1:9"], "--allow-private"),
        (["up", "exa mple"], "is not a site"),
        (["status"], "vedette up SITE"),
        (["status", "--dta", "x"], "did you mean --data?"),
        (["explain"], "URL"),
        (["explain", "https://example.org/"], "vedette up SITE"),
        (["explain", "ftp://example.org/"], "http(s) URL"),
        (["fetch"], "URL"),
        (["fetch", "https://example.org/"], "vedette up SITE"),
        (["fetch", "--no-wait", "https://example.org/"], "--no-wait"),
        (["sites"], "list, add, set"),
        (["sites", "frob"], "list"),
        (["sites", "list"], "vedette up SITE"),
        (["sites", "add", "exa mple"], "is not a site"),
        (["sites", "add", "127.0.0.1", "--delay", "2"], "2s"),
        (["sites", "add", "127.0.0.1", "--ignore-robots", "yes"], "I-OWN-THIS-SITE"),
        (["sites", "add", "127.0.0.1", "--secrets", "hunter2"], "env:NAME"),
        (["sites", "add", "127.0.0.1", "--change", "word"], "bytes, text, main, links"),
        (["sites", "add", "127.0.0.1", "--overrule", "trap,noindex"], "trap, copy, missing"),
        (["sites", "set", "127.0.0.1", "overrule=traps"], "trap, copy, missing"),
        (["sites", "set", "127.0.0.1", "delay=2s"], "sites add"),
        (["sites", "set", "127.0.0.1"], "KEY=VALUE"),
        (["sites", "remove", "127.0.0.1"], "sites add"),
        (["sites", "import", "missing.toml"], "missing.toml"),
    ],
)
def test_what_cannot_be_done_gets_one_line_and_leaves_no_folder(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    """Exit code 2, one line that says what to type, and nothing is created on disk."""
    assert message in complaint(*arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_up_prints_its_addresses_and_locks_its_folder(site: str, tmp_path: Path) -> None:
    """It prints folder, address, how to stop and what to try; a second one is refused; Ctrl-C prints a summary."""
    with up(site, *POLITE, "--data", "kept", cwd=tmp_path) as process:
        patiently((tmp_path / "kept" / "keeper.sock").exists)
        assert "in use by another vedette" in complaint("up", "--data", "kept", cwd=tmp_path, code=1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
    lines = out.splitlines()
    assert lines[0].split() == ["Data", "kept"]
    assert re.fullmatch(r"Search +http://127\.0\.0\.1:[0-9]+/", lines[1])
    assert [word for word in ("Ctrl-C", "vedette status --data kept", "vedette explain URL") if word not in out] == []
    assert lines[-1].startswith("Continue with  vedette up --data kept --listen 127.0.0.1:0 ")
    assert "--allow-private" in lines[-1]
    assert process.returncode == 0


def test_status_is_the_same_from_a_running_tree_and_from_its_folder(site: str, tmp_path: Path) -> None:
    """Pages, known URLs, refusals and sites agree, and each output says whether a crawl is running."""
    with up(site, *POLITE, cwd=tmp_path):
        patiently(lambda: pages_kept(tmp_path) == 3 and "/gone" in _Web.asked)
        # Numbers of the queue are written every second.
        patiently(lambda: (run_json("status", cwd=tmp_path)["now"] or {}).get("statuses") == {"200": 3, "404": 1})
        running = run_json("status", cwd=tmp_path)
    ended = run_json("status", cwd=tmp_path)
    assert (running["running"], ended["running"]) == (True, False)
    assert running["now"]["pages"] == 3
    for key in ("pages", "urls_known", "urls_waiting", "refusals", "sites", "archive"):
        assert running[key] == ended[key], key
    # Two of the known URLs are sitemap guesses that failed.
    assert ended["sites"] == [{"site": site, "paused": False, "known": 7, "pages": 3}]
    words = vedette("status", cwd=tmp_path).stdout
    assert "No crawl is running" in words
    assert "disallowed by robots.txt: 1" in words


def test_explain_shows_decisions_with_reasons(site: str, tmp_path: Path) -> None:
    """Pages are fetched, disallowed, unknown, on no site, or have a dropped parameter."""
    with up(site, *POLITE, cwd=tmp_path):
        patiently(lambda: "/gone" in _Web.asked)
        patiently(lambda: run_json("status", cwd=tmp_path)["urls_waiting"] == 0)
        running = run_json("explain", site + "a", cwd=tmp_path)
        running_words = vedette("explain", site + "private/x", cwd=tmp_path).stdout
    page = run_json("explain", site + "a", cwd=tmp_path)
    assert (page["page"]["status"], page["known"]["standing"], page["robots"]["verdict"]) == (200, "fetched", "allowed")
    assert page["page"] == running["page"]
    assert page["page"]["due_s"] > page["page"]["fetched_s"]
    assert "idle time" in page["page"]["rule"]
    assert (tmp_path / "vedette-data" / "warc" / page["page"]["archived"]["file"]).exists()
    assert "a poll must be worth" in run_json("explain", site, cwd=tmp_path)["page"]["rule"]
    tracked = run_json("explain", site + "b?utm_source=n", cwd=tmp_path)
    assert (tracked["known_as"], tracked["steps"]) == (site + "b", ["dropped parameters"])
    for words in (running_words, vedette("explain", site + "private/x", cwd=tmp_path).stdout):
        assert 'disallowed by "Disallow: /private/"' in words
        assert "Refused" in words
    assert "vedette fetch" in vedette("explain", site + "never-seen", cwd=tmp_path).stdout
    assert "vedette sites add" in vedette("explain", "https://example.org/", cwd=tmp_path).stdout


def test_control_characters_from_the_web_are_removed(site: str, tmp_path: Path) -> None:
    """Control characters in a title are removed."""
    vedette("sites", "add", site, cwd=tmp_path)
    fetched = vedette("fetch", site + "a", *POLITE, cwd=tmp_path).stdout
    explained = vedette("explain", site + "a", cwd=tmp_path).stdout
    assert "owned" in fetched
    assert "owned" in explained
    assert not [each for each in fetched + explained if each != "\n" and not each.isprintable()]


def test_fetch_without_a_running_crawler_requests_only_the_page(site: str, tmp_path: Path) -> None:
    """Only robots.txt and the page are requested; the second time the page is the same."""
    vedette("sites", "add", site, cwd=tmp_path)
    (first,) = run_json("fetch", site + "new", *POLITE, cwd=tmp_path)["urls"]
    assert (first["status"], first["title"], first["had"]) == (200, "Unlinked", False)
    (second,) = run_json("fetch", site + "new", *POLITE, cwd=tmp_path)["urls"]
    assert (second["status"], second["had"], second["changed"]) == (200, True, False)
    assert _Web.asked == ["/robots.txt", "/new", "/new"]
    assert run_json("explain", site, cwd=tmp_path)["known"]["standing"] == "waiting"


def test_fetch_explains_refusals(site: str, tmp_path: Path) -> None:
    """A disallowed page is refused with the line of robots.txt, an unknown site with how to add it, with exit codes."""
    vedette("sites", "add", site, cwd=tmp_path)
    refused = vedette("fetch", site + "private/x", *POLITE, cwd=tmp_path)
    assert refused.returncode == 1
    assert "Disallow: /private/" in refused.stdout
    assert "vedette sites add http://127.0.0.9/" in complaint("fetch", "http://127.0.0.9/", *POLITE, cwd=tmp_path)
    assert "--allow-private" in complaint("fetch", site, cwd=tmp_path)
    assert _Web.asked == ["/robots.txt"]


def test_sites_change_under_a_running_tree(site: str, tmp_path: Path) -> None:
    """Sites can be added, paused, resumed and removed while it runs; changes apply at once, and fetch obeys them."""
    vedette("sites", "add", "127.0.0.9", "--data", "d", cwd=tmp_path)
    vedette("sites", "pause", "127.0.0.9", "--data", "d", cwd=tmp_path)
    with up(*POLITE, "--data", "d", cwd=tmp_path):
        patiently((tmp_path / "d" / "keeper.sock").exists)
        assert run_json("sites", "add", site, "--data", "d", cwd=tmp_path)["running"]
        patiently(lambda: "/b" in _Web.asked)
        vedette("sites", "pause", site, "--data", "d", cwd=tmp_path)
        assert "sites resume" in complaint("fetch", site + "new", "--data", "d", cwd=tmp_path)
        assert "/new" not in _Web.asked
        vedette("sites", "resume", site, "--data", "d", cwd=tmp_path)
        (received,) = run_json("fetch", site + "new", "--data", "d", cwd=tmp_path)["urls"]
        assert (received["status"], received["title"]) == (200, "Unlinked")
        assert (
            run_json("fetch", site + "new", "--no-wait", "--data", "d", cwd=tmp_path)["urls"][0]["url"] == site + "new"
        )
        patiently(lambda: _Web.asked.count("/new") == 2)
        vedette("sites", "remove", site, "--data", "d", cwd=tmp_path)
        assert "sites add" in complaint("fetch", site + "new", "--data", "d", cwd=tmp_path)


def test_sites_survive_export_and_import(tmp_path: Path) -> None:
    """One folder's export can be imported into another, including settings, pauses and the location of secrets."""
    options = ["--scope", "prefix", "--exclude", "*.zip$", "--delay", "2s", "--hours", "22:00-06:00"]
    owned = ["--bytes-per-s", "100kB", "--ignore-robots", "I-OWN-THIS-SITE", "--secrets", "env:WIKI"]
    read = ["--change", "links", "--overrule", "spam,trap"]
    vedette("sites", "add", "127.0.0.1/docs/", *options, *owned, *read, cwd=tmp_path)
    vedette("sites", "add", "127.0.0.2", cwd=tmp_path)
    vedette("sites", "pause", "127.0.0.2", cwd=tmp_path)
    vedette("sites", "set", "127.0.0.2", "include=/a/*", "include=/b/*", "allow_private=yes", cwd=tmp_path)
    toml = vedette("sites", "export", cwd=tmp_path).stdout
    done = vedette("sites", "import", "-", "--data", "other", cwd=tmp_path, given=toml)
    assert done.returncode == 0, done.stderr
    before, after = (
        run_json("sites", "list", "--data", data, cwd=tmp_path)["sites"] for data in ("vedette-data", "other")
    )
    assert before == after
    assert [row["include"] for row in after] == [[], ["/a/*", "/b/*"]]
    assert [row["paused"] for row in after] == [False, True]
    assert [(row["change"], row["overrule"]) for row in after] == [("links", ["trap", "spam"]), ("queries", [])]
    assert "robots.txt" in vedette("sites", "add", "127.0.0.3", cwd=tmp_path).stdout


def test_settings_of_a_site_survive_another_up(site: str, tmp_path: Path) -> None:
    """Naming a site again neither resets its settings nor resumes it."""
    vedette("sites", "add", site, "--exclude", "/b*", cwd=tmp_path)
    vedette("sites", "pause", site, cwd=tmp_path)
    with up(site, *POLITE, cwd=tmp_path):
        patiently((tmp_path / "vedette-data" / "keeper.sock").exists)
        (row,) = run_json("sites", "list", cwd=tmp_path)["sites"]
    assert (row["exclude"], row["paused"]) == (["/b*"], True)
    assert _Web.asked == []


def test_requested_fetches_are_polite(tmp_path: Path) -> None:
    """Pages fetched on request during a crawl respect the host's delay."""
    log = tmp_path / "access.log"
    with start_server("made:tiny", seed=3, speed=SPEED, log_path=log) as web:
        (tmp_path / "hosts.txt").write_text("\n".join(web.connect_to_lines()))
        names = [name for name in web.hosts if not name.startswith("*.")]
        options = ["--connect-to", "@hosts.txt", "--allow-private", "--speed", str(SPEED)]
        with up(*(f"http://{name}/" for name in names), *options, cwd=tmp_path):
            patiently(lambda: pages_kept(tmp_path) > 20)
            wished = [f"http://{name}/" for name in names[:5]]
            while not (answer := fetched(wished, tmp_path)):
                """The crawler was too busy to take the wish, and said so."""
        web.stop()
    results = json.loads(answer)["urls"]
    assert [one["known_as"] for one in results] == wished
    assert any(one["standing"] == "fetched" for one in results)
    header, entries = read_log(log)
    judged = judge_log(entries, header, delay_s=1.0, address_delay_s=0.25)
    assert [each.detail for each in judged.violations] == []


def fetched(urls: list[str], cwd: Path) -> str:
    """Return the JSON output of ``vedette fetch``; nothing if the crawler is too busy."""
    return vedette("fetch", *urls, "--patience", "20s", "--json", cwd=cwd).stdout


def times(folder: Path) -> dict[str, int]:
    """Return when each file was last written, except temporary files that SQLite creates for readers."""
    return {entry.name: entry.stat().st_mtime_ns for entry in folder.iterdir() if "state.db-" not in entry.name}


def test_status_and_explain_of_a_finished_crawl_write_nothing(site: str, tmp_path: Path) -> None:
    """Neither status nor explain changes anything in the folder of a finished crawl."""
    vedette("sites", "add", site, cwd=tmp_path)
    vedette("fetch", site, *POLITE, cwd=tmp_path)
    folder = tmp_path / "vedette-data"
    before = times(folder)
    vedette("status", cwd=tmp_path)
    vedette("explain", site, cwd=tmp_path)
    assert times(folder) == before


def test_sites_of_the_file_are_crawled_and_follow_it(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a site in the file, no arguments are needed; a variable takes precedence; other settings stay."""
    file = tmp_path / "vedette.toml"
    file.write_text(f'[store]\ndata = "there"\n[[site]]\nstart = "{site}"\nallow_private = true\ndelay = "10ms"\n')
    monkeypatch.setenv("VEDETTE_STORE_DATA", "here")
    monkeypatch.setenv("VEDETTE_CRAWL_CONTACT", "ops@example.org")
    assert run_json("crawl", cwd=tmp_path)["data"] == "here"
    assert not (tmp_path / "there").exists()
    assert {agent.partition(" ")[2] for agent in _Web.agents} == {"(+mailto:ops@example.org)"}
    vedette("sites", "set", site, "hours=00:00-24:00", "delay=7s", cwd=tmp_path)
    assert run_json("crawl", cwd=tmp_path)["ending"] == "done"
    (row,) = run_json("sites", "list", cwd=tmp_path)["sites"]
    assert (row["delay_s"], row["hours"]) == (0.01, "00:00-24:00")


def test_a_contact_that_is_set_while_it_runs_is_sent(site: str, tmp_path: Path) -> None:
    """The next request contains it; a contact on the next command line replaces it."""
    with up(site, *POLITE, cwd=tmp_path):
        patiently(lambda: pages_kept(tmp_path) >= 3)
        assert vedette("set", "crawl.contact", "ops@example.org", cwd=tmp_path).returncode == 0
        vedette("fetch", f"{site}a", cwd=tmp_path)
        assert [agent for agent in _Web.agents if "+mailto:ops@example.org" in agent]
    vedette("crawl", site, *POLITE, "--contact", "new@example.org", "--patience", "1s", cwd=tmp_path)
    assert run_json("set", cwd=tmp_path)["chosen"] == []
