"""export, import, backup and restore as people type them: no data is lost, and errors are reported."""

import json
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.data_folders import BODIES, HOST, NOW_S, SITE, URLS, Fetches, opened, write_sample
from tests.tree_runs import PATIENCE_S

from vedette.adapters.archive.retention import Retention, RetentionPolicy
from vedette.adapters.archive.warc_reader import Damage, ImportedAnswer, read_answer, scan_warc
from vedette.adapters.archive.warc_record import Exchange
from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.adapters.crawl_store.store import SiteRow
from vedette.engine.messages import ArchiveLocation as Stood
from vedette.engine.ports import UrlCounts, UrlState
from vedette.model import Site

OTHER = Site("https://other.test/")
DATE_S = 1_700_000_000.0
HOLD = """
import sys
from pathlib import Path
from vedette.adapters.crawl_store.data_folder import lock_folder

lock = lock_folder(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
"""


def vedette(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the real program."""
    command = [sys.executable, "-m", "vedette", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, input=stdin)


def run_json(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the JSON object of a successful run."""
    assert done.returncode == 0, done.stderr
    numbers: dict[str, Any] = json.loads(done.stdout)
    return numbers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with the sample."""
    write_sample(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A data folder with sites only."""
    with opened(tmp_path / "empty") as state:
        for site in (SITE, OTHER):
            state.store.save_site(SiteRow(site, paused=False, added_s=NOW_S))
    return tmp_path / "empty"


def archive(
    folder: Path,
    *pages: tuple[str, bytes],
    at_s: float = DATE_S,
    head: bytes = b"HTTP/1.1 200 OK",
    method: bytes = b"GET",
) -> Path:
    """A WARC file from elsewhere."""
    folder.mkdir(exist_ok=True)
    with closing(WarcWriter(folder, "theirs", "test")) as writer:
        for url, body in pages:
            full = head + b"\r\nContent-Type: text/html\r\n\r\n"
            place = writer.append(Exchange(url, at_s, method + b" / HTTP/1.1\r\n\r\n", full, body, "192.0.2.1"))
    return folder / place.file


def copies(folder: Path) -> dict[str, bytes]:
    """Return the archived copy of every page."""
    found = {}
    with opened(folder) as state:
        for url, page in state.store.iter_pages():
            assert page.place is not None
            place = Stood(page.place.file, page.place.offset, page.place.length)
            found[url] = read_answer(folder / "warc", place).payload
    return found


# export


def test_urls_are_written_one_a_line(folder: Path, tmp_path: Path) -> None:
    """URLs are in the order of discovery, on standard output or in a file that is not overwritten."""
    target = tmp_path / "urls.txt"
    assert vedette("export", "urls", "--data", folder).stdout.splitlines() == list(URLS)
    assert vedette("export", "urls", "--data", folder, "--to", target).returncode == 0
    assert target.read_text().splitlines() == list(URLS)
    again = vedette("export", "urls", "--data", folder, "--to", target)
    assert again.returncode == 2
    assert "already exists" in again.stderr


def test_urls_as_json_have_their_state(folder: Path) -> None:
    """Each line is an object with state, times and reason, without unknown fields."""
    lines = [json.loads(line) for line in vedette("export", "urls", "--json", "--data", folder).stdout.splitlines()]
    assert [line["url"] for line in lines] == list(URLS)
    assert [line["state"] for line in lines] == ["fetched", "fetched", "refused", "failed", "waiting"]
    home, *_, failed, waiting = lines
    assert (home["status"], home["fetched_s"], home["title"]) == (200, NOW_S, "a title")
    assert failed["note"] == "too slow"
    assert not {"status", "fetched_s", "note"} & waiting.keys()


def test_a_url_that_waits_again_is_shown_as_waiting(folder: Path) -> None:
    """The latest state of a URL counts, even if it was fetched before."""
    with opened(folder) as state:
        state.urls.requeue(state.urls.find_ids(URLS[:1]).tolist(), priority=1)
    first = json.loads(vedette("export", "urls", "--json", "--data", folder).stdout.splitlines()[0])
    assert (first["state"], first["status"]) == ("waiting", 200)


def test_the_archive_is_one_valid_file(folder: Path, tmp_path: Path) -> None:
    """It contains everything acknowledged and nothing else, according to standard tools."""
    with opened(folder) as state, Fetches(state) as fetches:
        fetches.page(f"https://{HOST}/new", b"new")
    with next((folder / "warc").iterdir()).open("ab") as file:
        file.write(b"half a record that nobody acknowledged")
    target = tmp_path / "all.warc.gz"
    done = run_json(vedette("export", "warc", "--json", "--data", folder, "--to", target))
    assert (done["missing"], done["bytes"]) == ([], target.stat().st_size)
    found = list(scan_warc(target))
    assert [(record.url, record.payload) for record in found if isinstance(record, ImportedAnswer)] == [
        (URLS[0], BODIES[0]),
        (URLS[1], BODIES[1]),
        (f"https://{HOST}/new", b"new"),
    ]
    check = Path(sys.executable).with_name("warcio")
    assert subprocess.run([check, "check", target], capture_output=True, check=False).returncode == 0


def test_the_latest_versions_alone(folder: Path, tmp_path: Path) -> None:
    """If a page was fetched twice, only the second version is written."""
    with opened(folder) as state, Fetches(state) as fetches:
        state.urls.requeue(state.urls.find_ids(URLS[:1]).tolist(), priority=1)
        fetches.page(URLS[0], b"second version")
    target = tmp_path / "latest.warc.gz"
    assert run_json(vedette("export", "warc", "--latest", "--json", "--data", folder, "--to", target))["records"] == 2
    found = {record.url: record.payload for record in scan_warc(target) if isinstance(record, ImportedAnswer)}
    assert found == {URLS[0]: b"second version", URLS[1]: BODIES[1]}
    check = Path(sys.executable).with_name("warcio")
    assert subprocess.run([check, "check", target], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("latest", [(), ("--latest",)])
def test_items_missing_from_the_archive_are_listed(folder: Path, tmp_path: Path, latest: tuple[str, ...]) -> None:
    """Exit code 1, and a line for each missing item."""
    next((folder / "warc").iterdir()).unlink()
    done = vedette("export", "warc", *latest, "--data", folder, "--to", tmp_path / "x.warc.gz")
    assert done.returncode == 1
    assert "missing" in done.stderr


def test_a_copy_that_was_given_up_is_explained(folder: Path) -> None:
    """With a size limit, pages may lose their copy, and ``explain`` says why."""
    with opened(folder) as state, Fetches(state) as fetches:
        fetches.page(f"https://{HOST}/new", b"new")
        retention = Retention(state, RetentionPolicy(keep_s=0.0, max_bytes=1), "test")
        for _ in range(10):
            retention.step(NOW_S, NOW_S)
        retention.close()
    assert "store.max_size" in vedette("explain", URLS[0], "--data", folder).stdout


# import


def test_urls_of_sites_become_known(empty: Path, tmp_path: Path) -> None:
    """URLs of a site are queued once each, in normalized form; the others are counted."""
    path = tmp_path / "list.txt"
    lines = [*URLS[:2], "# a comment", "", f"{URLS[1]}&utm_source=x", "https://elsewhere.test/", "mailto:me", "\ufffd"]
    path.write_text("\n".join(lines))
    done = run_json(vedette("import", "urls", path, "--data", empty, "--json"))
    assert (done["urls"], done["pages"]) == (2, 0)
    assert done["passed_over"] == {"not an http(s) URL": 2, "outside every site": 1}
    with opened(empty) as state:
        assert state.urls.get_counts() == UrlCounts(known=2, waiting=2, leased=0, fetched=0, refused=0, failed=0)


def test_exported_urls_can_be_imported(folder: Path, empty: Path) -> None:
    """One folder's export can be imported into another, also from standard input, except for excluded URLs."""
    lines = vedette("export", "urls", "--data", folder).stdout
    assert run_json(vedette("import", "urls", "-", "--data", empty, "--json", stdin=lines))["urls"] == len(URLS) - 1
    again = run_json(vedette("import", "urls", "-", "--data", empty, "--json", stdin=lines))
    assert again["urls"] == 0


def test_pages_of_an_archive_become_pages(empty: Path, tmp_path: Path) -> None:
    """Copy, title, links, digest and date are as if fetched then; these URLs are not fetched again, others wait."""
    page = b"<title>Caf\xc3\xa9</title><a href=/linked>x</a><a href=https://elsewhere.test/>y</a>"
    path = archive(tmp_path / "theirs", (URLS[0], page), (f"{OTHER.start}b", b"b"), ("https://elsewhere.test/", b"c"))
    done = run_json(vedette("import", "warc", path, "--data", empty, "--json"))
    assert (done["pages"], done["damaged"], done["passed_over"]) == (2, 0, {"outside every site": 1})
    assert copies(empty) == {URLS[0]: page, f"{OTHER.start}b": b"b"}
    with opened(empty) as state:
        (home, linked) = state.urls.find_ids([URLS[0], f"https://{HOST}/linked"]).tolist()
        row = state.store.get_page(home)
        assert row is not None
        assert (row.title, row.fetched_s, row.status, row.kind) == ("Café", DATE_S, 200, "page")
        assert state.store.get_links(home) == (f"https://{HOST}/linked",)
        assert state.urls.find_state(home) == UrlState.FETCHED
        assert state.urls.get_counts().waiting == 1
        assert linked


def test_an_import_keeps_the_order_of_waiting_urls(empty: Path, tmp_path: Path) -> None:
    """An import does not reorder other URLs in a host's queue."""
    urls = [f"https://{HOST}/{number}" for number in range(10)]
    with opened(empty) as state, Fetches(state) as fetches:
        fetches.know(*urls)
    path = archive(tmp_path / "theirs", (urls[4], b"four"), (urls[7], b"seven"))
    run_json(vedette("import", "warc", path, "--data", empty, "--json"))
    with opened(empty) as state:
        (host,) = state.urls.intern_hosts([HOST])
        leased = [one.url for one in state.urls.lease([host] * 20, 0, NOW_S)]
        assert leased == [url for number, url in enumerate(urls) if number not in {4, 7}]
        state.urls.requeue_expired(float("inf"))


def test_an_import_replaces_only_older_versions(folder: Path, tmp_path: Path) -> None:
    """An older version does not replace a newer one; a newer one does, and a failed URL gets its page."""
    with opened(folder) as state:
        state.store.save_site(SiteRow(OTHER, paused=False, added_s=NOW_S))
    old = archive(tmp_path / "old", (URLS[0], b"old"))
    done = run_json(vedette("import", "warc", old, "--data", folder, "--json"))
    assert (done["pages"], done["passed_over"]) == (0, {"not newer than the stored page": 1})
    assert copies(folder)[URLS[0]] == BODIES[0]
    with opened(folder) as state:
        before = state.store.get_page(1)
        assert before is not None
        state.db.execute("UPDATE page SET fetched_s = ? WHERE id = 1", (DATE_S - 5,))
    new = archive(tmp_path / "new", (URLS[0], b"new"), (URLS[3], b"came at last"))
    assert run_json(vedette("import", "warc", new, "--data", folder, "--json"))["pages"] == 2
    assert copies(folder)[URLS[0]] == b"new"
    assert copies(folder)[URLS[3]] == b"came at last"
    with opened(folder) as state:
        assert state.urls.find_state(4) == UrlState.FETCHED
        assert state.store.get_note(4) is None


def test_a_damaged_archive_is_imported_as_far_as_possible(empty: Path, tmp_path: Path) -> None:
    """If one record is damaged and the end is missing, the other pages are imported, and each fault is listed."""
    noise = random.Random(1)  # noqa: S311 - filler
    pages = [(f"https://{HOST}/{number}", noise.randbytes(500)) for number in range(5)]
    path = archive(tmp_path / "theirs", *pages)
    places = [record.offset for record in scan_warc(path) if isinstance(record, ImportedAnswer)]
    data = bytearray(path.read_bytes())
    data[places[1] + 100 : places[1] + 200] = bytes(100)
    path.write_bytes(data[: places[4] + 150])
    done = vedette("import", "warc", path, "--data", empty, "--json")
    numbers = run_json(done)
    assert sorted(copies(empty).items()) == [pages[0], pages[2], pages[3]]
    assert numbers["pages"] == 3
    named = done.stderr.splitlines()
    assert len(named) == numbers["damaged"] >= 2
    assert all(line.startswith(path.name) for line in named)
    assert any(f"at {places[1]}:" in line for line in named)
    assert [
        found for file in (empty / "warc").glob("*.gz") for found in scan_warc(file) if isinstance(found, Damage)
    ] == []


@pytest.mark.parametrize("content", [b"", b"this is no archive\n" * 1000, b"\x1f\x8b\x08" + bytes(500)])
def test_a_file_that_is_no_archive(empty: Path, tmp_path: Path, content: bytes) -> None:
    """Nothing is imported and nothing fails; unusable content is listed, with exit code 1."""
    path = tmp_path / "odd.warc.gz"
    path.write_bytes(content)
    done = vedette("import", "warc", path, "--data", empty)
    assert done.returncode == (1 if content else 0)
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) == bool(content)


def test_answers_that_make_no_page_are_counted(empty: Path, tmp_path: Path) -> None:
    """This includes server errors, empty responses, future dates, and responses to a form."""
    failed = archive(tmp_path / "a", (URLS[0], b"sorry"), head=b"HTTP/1.1 503 Busy")
    same = archive(tmp_path / "b", (URLS[0], b""), head=b"HTTP/1.1 304 Not Modified")
    future = archive(tmp_path / "c", (URLS[0], b"x"), at_s=NOW_S * 3)
    bomb = archive(tmp_path / "d", (URLS[1], b"\x1f\x8bnot gzip"), head=b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip")
    form = archive(tmp_path / "e", (URLS[0], b"Thank you"), method=b"POST")
    done = run_json(vedette("import", "warc", failed, same, future, bomb, form, "--data", empty, "--json"))
    assert done["passed_over"] == {
        "status 503": 1,
        "status 304": 1,
        "dated in the future": 1,
        "response to POST, not a page": 1,
    }
    assert (done["pages"], done["damaged"]) == (0, 1)


def test_an_archived_robots_txt_is_no_page(empty: Path, tmp_path: Path) -> None:
    """Crawlers archive robots.txt with the pages; a file of that name in a folder is an ordinary page."""
    rules, page = (f"https://{HOST}/robots.txt", b"User-agent: *"), (f"https://{HOST}/docs/robots.txt", b"About it.")
    done = run_json(vedette("import", "warc", archive(tmp_path / "theirs", rules, page), "--data", empty, "--json"))
    assert (done["pages"], done["passed_over"]) == (1, {"robots.txt": 1})
    assert list(copies(empty)) == [page[0]]


def test_an_exported_archive_can_be_imported(empty: Path, tmp_path: Path) -> None:
    """An import of an exported archive has the same copies with the same dates."""
    theirs, path = tmp_path / "theirs", tmp_path / "round.warc.gz"
    with opened(theirs) as state, Fetches(state) as fetches:
        for number in range(300):
            fetches.page(f"https://{HOST}/{number}", f"<title>{number}</title>".encode() * 20, DATE_S + number)
    run_json(vedette("export", "warc", "--latest", "--json", "--data", theirs, "--to", path))
    assert run_json(vedette("import", "warc", path, "--data", empty, "--json"))["pages"] == 300
    assert copies(empty) == copies(theirs)
    with opened(empty) as state:
        assert {url: page.fetched_s for url, page in state.store.iter_pages()} == {
            f"https://{HOST}/{number}": DATE_S + number for number in range(300)
        }
        assert state.urls.get_counts().waiting == 0


def test_an_import_needs_the_folder_for_itself(empty: Path, tmp_path: Path) -> None:
    """If the folder is in use, one line says to stop the process; without sites, to add one."""
    path = tmp_path / "list.txt"
    path.write_text(URLS[0])
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(empty)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == b"ready\n"
        busy = vedette("import", "urls", path, "--data", empty)
        it.communicate()
    assert busy.returncode == 1
    assert "stop it, or choose another folder" in busy.stderr
    with opened(empty) as state:
        for site in (SITE, OTHER):
            state.store.delete_site(site.start)
    siteless = vedette("import", "urls", path, "--data", empty)
    assert siteless.returncode == 2
    assert "vedette sites add" in siteless.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export"], "urls or warc"),
        (["import"], "urls or warc"),
        (["export", "urls", "--data", "nowhere"], "nowhere is not a data folder"),
        (["export", "warc", "--data", "nowhere", "--json"], "--to"),
        (["import", "urls", "missing.txt"], "missing.txt"),
        (["import", "warc", "missing.warc"], "missing.warc"),
        (["backup", "copy", "--data", "nowhere"], "nowhere is not a data folder"),
        (["restore", "nothing"], "nothing is not a backup"),
        (["backup"], "DIR"),
    ],
)
def test_a_wrong_line_gets_one_line_that_helps(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only output is one line, and nothing is created."""
    monkeypatch.chdir(tmp_path)
    done = vedette(*arguments)
    assert done.returncode in {1, 2}
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


# backup


def test_a_backup_is_made_and_restored(folder: Path, tmp_path: Path) -> None:
    """Both commands report what they copied, and refuse to overwrite."""
    made = run_json(vedette("backup", tmp_path / "backup", "--data", folder, "--json"))
    put_back = run_json(vedette("restore", tmp_path / "backup", "--data", tmp_path / "new", "--json"))
    assert (made["pages"], made["missing"]) == (put_back["pages"], put_back["missing"]) == (2, [])
    assert copies(tmp_path / "new") == copies(folder)
    for again in (
        vedette("backup", tmp_path / "backup", "--data", folder),
        vedette("restore", tmp_path / "backup", "--data", tmp_path / "new"),
    ):
        assert again.returncode == 2
        assert again.stderr.count("\n") == 1
