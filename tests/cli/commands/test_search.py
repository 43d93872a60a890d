"""``vedette search`` over pages that the real program crawled from a real server on loopback."""

import json
import os
import pty
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import chdir, closing, contextmanager, redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tree_runs import PATIENCE_S, patiently

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.crawl_store.search_store import UserKeyRow
from vedette.cli.commands.search import slate_lines
from vedette.cli.main import main
from vedette.errors import StoreCorrupt
from vedette.runtime.commands.search_commands import key_from_row
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.slate import Reason, SearchRequest, SearchResult, Slate, Snippet
from vedette.web.auth.keys import find_key

WORDS = "The harbour master keeps a ledger of every vessel that ties up, with its draught, its cargo and its crew."
PROMPT = ("--allow-private", "--delay", "1ms")


def page(title: str, text: str, *links: str) -> str:
    """Return a small page that is worth indexing."""
    onward = "".join(f"<a href='{link}'>to {link.strip('/')}</a> " for link in links)
    return f"<html lang=en><title>{title}</title><main><h1>{title}</h1><p>{text} {onward}</p></main>"


class _Web(BaseHTTPRequestHandler):
    """Pages with distinctive words; one is hostile and one too thin to be indexed."""

    pages: ClassVar[dict[str, str]] = {
        "/": page("Harbour", f"{WORDS} Start here.", "/lamp", "/evil", "/thin", "/buoy"),
        "/lamp": page("Lamps of the pier", f"A paraffin lamp burns at the end of the pier all night. {WORDS[::-1]}"),
        "/evil": page(
            "Own\x1b]0;ed\x07", f"A kraken \x1b[31mrises\x9b2J from the deep. {'Beware of the kraken. ' * 9}"
        ),
        "/thin": "<title>Thimble</title><p>Thimble.</p>",
        "/buoy": page("Buoys", f"A beacon floats on every sandbank of this coast. {'Mind the tide there. ' * 9}"),
    }

    def do_GET(self) -> None:
        body = self.pages.get(self.path, "").encode("latin-1")
        self.send_response(200 if body else 404)
        self.send_header("content-type", "text/html; charset=latin-1")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do not log."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Run a real server on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


class Done(NamedTuple):
    """The result of a command line."""

    returncode: int
    stdout: str
    stderr: str


def vedette(*arguments: str, cwd: Path, given: str = "") -> Done:
    """Run a command line in this process, to save the startup time."""
    out, err, before = StringIO(), StringIO(), sys.stdin
    sys.stdin = StringIO(given)
    try:
        with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
            code = main(arguments)
    finally:
        sys.stdin = before
    return Done(code, out.getvalue(), err.getvalue())


def run_text(*arguments: str, cwd: Path, given: str = "", code: int = 0) -> str:
    """Return its output for people."""
    done = vedette(*arguments, cwd=cwd, given=given)
    notes = done.stderr.replace("Updating the index first …\n", "")  # said if it takes a second: on a busy machine
    assert (done.returncode, notes) == (code, ""), done.stderr
    return done.stdout


def run_json(*arguments: str, cwd: Path, code: int = 0) -> Any:
    """Return its JSON output: one object."""
    return json.loads(run_text(*arguments, "--json", cwd=cwd, code=code))


def complaint(*arguments: str, cwd: Path, given: str = "") -> str:
    """Return the one-line error of an invalid command."""
    done = vedette(*arguments, cwd=cwd, given=given)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


def search_urls(query: str, cwd: Path, *more: str) -> list[str]:
    """Return the URLs that a search finds; if there are none, the exit code is 1."""
    done = vedette("search", query, "--json", *more, cwd=cwd)
    results = json.loads(done.stdout)["results"]
    assert done.returncode == (0 if results else 1), done.stderr
    return [result["url"] for result in results]


def actions(cwd: Path) -> str:
    """Return the action log."""
    with closing(sqlite3.connect(cwd / "vedette-data" / "state.db")) as db:
        return "\n".join(row[0] for row in db.execute("SELECT what FROM action ORDER BY id"))


@pytest.fixture(scope="module")
def crawled(site: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the site was crawled once; it is copied, never changed."""
    folder = tmp_path_factory.mktemp("crawled")
    (folder / "vedette.toml").write_text('[crawl]\naddress_delay = "1ms"\n')
    command = [sys.executable, "-m", "vedette", "crawl", site, *PROMPT, "--quiet"]
    subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True, cwd=folder)
    return folder


@pytest.fixture
def cwd(crawled: Path, tmp_path: Path) -> Path:
    """A copy of this folder, without a running process."""
    shutil.copytree(crawled, tmp_path / "here")
    return tmp_path / "here"


@contextmanager
def up(cwd: Path) -> Iterator[None]:
    """Run ``vedette up`` until the block ends."""
    command = [sys.executable, "-m", "vedette", "up", *PROMPT, "--quiet", "--listen", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=cwd)
    try:
        patiently((cwd / "vedette-data" / "keeper.sock").exists)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def on_a_terminal(*arguments: str, cwd: Path) -> str:
    """Return the program's output on a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "vedette", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, cwd=cwd, env=environment):
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    return shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side is closed
        return b""


# searching


def test_search_works_without_a_running_crawler(site: str, cwd: Path) -> None:
    """It shows title, URL, age and the matching words; JSON is that of the API, without links to a server."""
    words = run_text("search", "paraffin", "pier", cwd=cwd)
    title, address, facts, snippet, *_ = words.splitlines()
    assert (title, address) == ("Lamps of the pier", f"{site}lamp")
    assert facts.startswith("fetched ")
    assert "A paraffin lamp burns" in snippet
    answer = run_json("search", "paraffin lamp", cwd=cwd)
    assert answer["query"] == "paraffin lamp"
    assert answer["results"][0]["url"] == f"{site}lamp"
    assert "cached_url" not in answer["results"][0]
    assert answer["results"][0]["why"]


def test_why_is_a_table_whose_contributions_are_those_of_the_api(cwd: Path) -> None:
    """There is one line per feature, the largest contribution first, and a sentence."""
    first = run_json("search", "lamp", cwd=cwd)["results"][0]
    words = run_text("search", "lamp", "--why", cwd=cwd)
    assert first["sentence"] in words
    head = next(line for line in words.splitlines() if "contribution" in line)
    assert head.split() == ["feature", "value", "weight", "contribution"]
    rows = words.split(head)[1].splitlines()[1:]
    most = max(first["why"], key=lambda reason: abs(reason["contribution"]))
    assert rows[0].strip().startswith(most["feature"])


def test_filters_narrow_and_pages_go_on(site: str, cwd: Path) -> None:
    """This includes a host without results, a type, a language, dates, and one result per page."""
    host = site.removeprefix("http://").rstrip("/").partition(":")[0]
    assert search_urls("pier", cwd, "--site", "example.org") == []
    assert f"{site}lamp" in search_urls("pier", cwd, "--site", host)
    assert search_urls("pier", cwd, "--type", "pdf") == []
    assert search_urls("pier", cwd, "--after", "2999-01-01") == []
    assert search_urls("pier", cwd, "--before", "1999-01-01") == []
    first, second = (search_urls("harbour OR beacon", cwd, "--n", "1", "--page", number) for number in "12")
    assert len(first) == len(second) == 1
    assert first != second


def test_no_results_give_exit_code_1_and_advice(cwd: Path) -> None:
    """It repeats the query and suggests what may help; with a filter, that the filter may be the reason."""
    words = run_text("search", "zeppelin", cwd=cwd, code=1)
    assert 'No results for "zeppelin"' in words
    assert "vedette status" in words
    assert "without --type" in run_text("search", "lamp", "--type", "pdf", cwd=cwd, code=1)
    assert run_json("search", "zeppelin", cwd=cwd, code=1)["results"] == []


def test_a_page_cannot_write_to_the_terminal(site: str, cwd: Path) -> None:
    """Bold is ours; nothing in a page moves the cursor or sets a title or color."""
    shown = on_a_terminal("search", "kraken", cwd=cwd)
    assert f"{site}evil" in shown
    assert "\x1b[1m" in shown
    rest = shown.replace("\x1b[1m", "").replace("\x1b[0m", "").replace("\r\n", "")
    assert [each for each in rest if not each.isprintable()] == []
    plain = run_text("search", "kraken", cwd=cwd)
    assert [each for each in plain.replace("\n", "") if not each.isprintable()] == []


@given(st.text(max_size=60), st.lists(st.tuples(st.integers(-5, 70), st.integers(-5, 70)), max_size=4))
def test_only_printable_text_is_shown(text: str, marks: list[tuple[int, int]]) -> None:
    """Title, snippet, note and suggestion with any characters: every line is printable except for bold."""
    why = (Reason(text or "x", 1.0, float("nan"), float("-inf")),)
    result = SearchResult(
        1, text, text, Snippet(text, tuple(marks)), text, "html", "en", 0.0, 0.0, 1e18, 1.0, why, text, text
    )
    slate = Slate(SearchRequest(text), 1, (result,), (text,), text, (text,))
    for bold in (False, True):
        shown = "".join(slate_lines(slate, 0.0, why=True, bold=bold))
        rest = shown.replace("\x1b[1m", "").replace("\x1b[0m", "") if bold else shown
        assert [each for each in rest if not each.isprintable()] == []


def test_searching_beside_a_running_tree(site: str, cwd: Path) -> None:
    """The tree indexes and the search reads; rules and keys go through the coordinator and apply at once."""
    with up(cwd):
        patiently(lambda: search_urls("beacon", cwd) == [f"{site}buoy"])
        assert run_json("rules", "synonym", "Fanal", "beacon", cwd=cwd)["running"] is True
        assert search_urls("fanal", cwd) == [f"{site}buoy"]
        secret = run_json("keys", "create", "wiki", cwd=cwd)["secret"]
        assert "wiki" in run_text("keys", "list", cwd=cwd)
        assert "already a key" in complaint("keys", "create", "wiki", cwd=cwd)
        assert run_json("reindex", cwd=cwd)["pages"] >= 3
        patiently(lambda: search_urls("beacon", cwd) == [f"{site}buoy"])
    assert "created the key" in actions(cwd)
    assert secret not in (cwd / "vedette-data" / "state.db").read_bytes().decode("latin-1")


def test_reindex_reports_the_number_of_searchable_pages(cwd: Path) -> None:
    """This works even after the index was lost, with the same results as before."""
    before = search_urls("harbour", cwd)
    shutil.rmtree(cwd / "vedette-data" / "index")
    words = run_text("reindex", cwd=cwd)
    assert "indexed in" in words
    assert search_urls("harbour", cwd) == before != []
    assert run_json("reindex", cwd=cwd)["pages"] == int(words.split()[0])


def test_an_overruled_judgment_changes_the_results(site: str, cwd: Path) -> None:
    """A thin page is left out until the operator overrules that, and again when that is undone."""
    assert search_urls("thimble", cwd) == []
    run_text("sites", "set", site, "overrule=thin", cwd=cwd)
    assert search_urls("thimble", cwd) == [f"{site}thin"]
    run_text("sites", "set", site, "overrule=", cwd=cwd)
    assert search_urls("thimble", cwd) == []


def test_the_owner_of_the_folder_finds_private_pages(site: str, tmp_path: Path) -> None:
    """They were fetched with a secret, so a reader without a name finds nothing, but the operator does."""
    (tmp_path / "vedette.toml").write_text('[crawl]\naddress_delay = "1ms"\n')
    run_text("sites", "add", site, "--secrets", "env:HARBOUR", "--allow-private", cwd=tmp_path)
    command = [sys.executable, "-m", "vedette", "crawl", site, *PROMPT, "--quiet"]
    environment = {**os.environ, "HARBOUR": "X-Token: a"}
    subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True, cwd=tmp_path, env=environment)
    assert search_urls("beacon", tmp_path) == [f"{site}buoy"]
    anybody = FolderSearch(tmp_path / "vedette-data", start_clock(time.time(), 1.0))
    assert anybody.search(SearchRequest("beacon")).results == ()


# keys


def keys_of(cwd: Path) -> list[UserKeyRow]:
    """Return the stored data of keys."""
    with open_state_reader(cwd / "vedette-data") as view:
        return view.store.list_user_keys()


def test_a_key_is_shown_once_and_grants_its_scopes(cwd: Path) -> None:
    """The secret is recognized by its digest until it is revoked; then the name can be used again."""
    words = run_text(
        "keys", "create", "wiki", "--scope", "search,private", "--rate", "60/min", "--site", "a.test/x/", cwd=cwd
    )
    secret = words.splitlines()[0]
    assert words.count(secret) == 1
    assert "will not be shown again" in words
    [key] = [key_from_row(row) for row in keys_of(cwd)]
    assert find_key([key], secret) is key
    assert (key.scopes, key.sites) == (("search", "private"), ("a.test/x/",))
    assert key.rate is not None
    assert (key.rate.requests, key.rate.per_s) == (60, 60.0)
    assert "revoke it first" in complaint("keys", "create", "wiki", cwd=cwd)
    run_text("keys", "revoke", "wiki", cwd=cwd)
    assert find_key([key_from_row(row) for row in keys_of(cwd)], secret) is None
    [listed] = run_json("keys", "list", cwd=cwd)["keys"]
    assert (listed["name"], listed["revoked_s"] is None) == ("wiki", False)
    assert "already revoked" in complaint("keys", "revoke", "wiki", cwd=cwd)
    assert run_json("keys", "create", "wiki", cwd=cwd)["secret"] != secret
    assert find_key([key_from_row(row) for row in keys_of(cwd)], secret) is None


def test_actions_on_keys_are_logged_without_the_secret(cwd: Path) -> None:
    """The log shows who got a key and when it was revoked, but not the key."""
    secret = run_json("keys", "create", "shop", cwd=cwd)["secret"]
    run_text("keys", "revoke", "shop", cwd=cwd)
    log = actions(cwd)
    assert 'created the key "shop"' in log
    assert 'revoked the key "shop"' in log
    assert secret not in log
    assert secret not in run_text("keys", "list", cwd=cwd)


@pytest.mark.parametrize(
    "settings",
    [{}, {"scopes": 1, "rate": None, "sites": []}, {"scopes": [], "rate": "fast", "sites": []}],
)
def test_a_damaged_key_is_reported(settings: dict[str, object]) -> None:
    """A damaged key grants no access, and the message names it."""
    with pytest.raises(StoreCorrupt, match="wiki"):
        key_from_row(UserKeyRow("wiki", "00", settings, 0.0))


# rules


def test_rules_change_the_results_of_a_query(site: str, cwd: Path) -> None:
    """Synonyms work both ways, a pin comes first, hidden pages are not shown; each can be undone."""
    run_text("rules", "synonym", "Fanal!", "beacon", cwd=cwd)
    assert search_urls("fanal", cwd) == [f"{site}buoy"]
    assert "Rule exists already" in run_text("rules", "synonym", "beacon", "fanal", cwd=cwd)
    run_text("rules", "pin", "Harbour", f"{site}lamp", cwd=cwd)
    assert search_urls("harbour", cwd)[0] == f"{site}lamp"
    run_text("rules", "hide", "harbour", site, cwd=cwd)
    assert site not in search_urls("HARBOUR", cwd)
    kept = run_json("rules", "list", cwd=cwd)["rules"]
    assert [(rule["kind"], rule["query"]) for rule in kept] == [
        ("synonym", "fanal"),
        ("pin", "harbour"),
        ("hide", "harbour"),
    ]
    run_text("rules", "remove", "hide", "harbour", site, cwd=cwd)
    run_text("rules", "remove", "synonym", "beacon", "fanal", cwd=cwd)
    assert site in search_urls("harbour", cwd)
    assert search_urls("fanal", cwd) == []
    assert "rule removed" in actions(cwd)


def test_exported_rules_can_be_imported(site: str, cwd: Path) -> None:
    """A folder that lost its rules gets the same ones; existing ones are not duplicated."""
    run_text("rules", "synonym", "k8s", "kubernetes", "cube", cwd=cwd)
    run_text("rules", "pin", 'time "off" é', f"{site}?a=1&b=2", cwd=cwd)
    written = run_text("rules", "export", cwd=cwd)
    run_text("rules", "remove", "synonym", "k8s", "cube", cwd=cwd)
    assert "added 1 of 3" in run_text("rules", "import", "-", cwd=cwd, given=written).lower()
    again = run_text("rules", "export", cwd=cwd)
    assert sorted(again.strip().split("\n\n")) == sorted(written.strip().split("\n\n"))


# readers, and what cannot be done


def test_readers_of_a_site_are_kept_and_travel_with_it(site: str, cwd: Path) -> None:
    """They are set, shown, exported and imported like every other setting."""
    run_text("sites", "set", site, "readers=alice, wiki,alice", cwd=cwd)
    [listed] = run_json("sites", "list", cwd=cwd)["sites"]
    assert listed["readers"] == ["alice", "wiki"]
    written = run_text("sites", "export", cwd=cwd)
    run_text("sites", "set", site, "readers=", cwd=cwd)
    run_text("sites", "import", "-", cwd=cwd, given=written)
    assert run_json("sites", "list", cwd=cwd)["sites"][0]["readers"] == ["alice", "wiki"]
    run_text("sites", "add", "example.test", "--readers", "*", cwd=cwd)
    assert run_json("sites", "list", cwd=cwd)["sites"][1]["readers"] == ["*"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["search"], "WORDS"),
        (["search", "x"], "vedette up SITE"),
        (["search", "x", "--n", "0"], "1 to 50"),
        (["search", "x", "--n", "50", "--page", "21"], "20"),
        (["search", "x", "--after", "yesterday"], "2026-01-31"),
        (["search", "x", "--lang", "german"], "language"),
        (["search", "x", "--sit", "a"], "did you mean --site?"),
        (["reindex"], "vedette up SITE"),
        (["keys"], "create, list or revoke"),
        (["keys", "list"], "vedette up SITE"),
        (["keys", "create", "wiki"], "vedette up SITE"),
        (["keys", "create", "a,b"], "comma"),
        (["keys", "create", "wiki", "--scope", "root"], "search, private"),
        (["keys", "create", "wiki", "--rate", "fast"], "/min"),
        (["keys", "create", "wiki", "--site", "http://x"], "docs.example.org"),
        (["rules"], "synonym"),
        (["rules", "list"], "vedette up SITE"),
        (["rules", "synonym", "one"], "OTHER"),
        (["rules", "synonym", "Äpfel", "apfel"], "already treats"),
        (["rules", "pin", "!!", "https://example.org/"], "no word"),
        (["rules", "pin", "x", "ftp://example.org/"], "http(s) URL"),
        (["rules", "remove", "pun", "x", "y"], "pin"),
        (["rules", "import", "missing.toml"], "missing.toml"),
        (["sites", "set", "127.0.0.1", "readers=a,,b"], "names"),
    ],
)
def test_what_cannot_be_done_gets_one_line_and_leaves_no_folder(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    """Exit code 2, one line that says what to type, and nothing is created on disk."""
    assert words in complaint(*arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
