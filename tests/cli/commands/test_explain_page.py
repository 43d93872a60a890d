"""What the operator sees and overrules about page content: the real program, a real server, one page of each kind."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.tree_runs import PATIENCE_S

from vedette.discover.urls.duplicate_rules import is_check

PLACES = ("old mill", "north light", "west gate", "quiet pier", "new dock", "deep bay", "long quay", "far cape")
SEA = ("anchor", "basin", "cable", "davit", "ensign", "fathom", "galley", "halyard", "island", "jetty", "keel", "mast")


def prose(thing: str) -> str:
    """Return a text that is unlike any other with a different topic."""
    return " ".join(f"The {thing} of the {place} stands behind a wall of {thing} and stone." for place in PLACES)


def item(number: int) -> str:
    """Return words that few other items have in this order."""
    step = 3 + number // len(SEA)
    return " ".join(f"{SEA[(number * 7 + i * step) % 12]} {SEA[(number * 3 + i * i) % 12]}" for i in range(60))


def pdf(text: str) -> bytes:
    """Return a document with one page."""
    shown = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources <</Font <</F1 3 0 R>>>> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(shown), shown),
    ]
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    return (
        bytes(out)
        + (
            f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}"
            f"trailer << /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
        ).encode()
    )


def linked(*paths: str) -> str:
    """Return links to these paths."""
    return "".join(f"<a href='{path}'>on</a> " for path in paths)


class _Web(BaseHTTPRequestHandler):
    """A page of each kind, an endless calendar, and a shop that links each item under two spellings."""

    pages: ClassVar[dict[str, str | bytes]] = {
        "/": f"<title>Home</title><p>{prose('lamp')}</p>"
        + linked(
            "/story", "/story?view=print", "/story/more", "/app", "/hidden", "/paper.pdf", "/lost", "/calendar/100"
        ),
        "/story": "<html lang=en><title>Story</title><meta name=description content='Boats, and walls.'>"
        f"<meta property='article:published_time' content='2026-03-01T10:00:00Z'><p>{prose('boat')}</p>",
        "/story?view=print": f"<title>Story</title><link rel=canonical href=/story><p>{prose('boat')}</p>",
        "/story/more": f"<title>Story</title><p>{prose('boat')} The end.</p>",
        "/app": "<title>App</title><body><div id=root></div>"
        "<noscript>You need to enable JavaScript to run this app.</noscript><script src=/main.js></script>",
        "/hidden": f"<title>Hidden</title><meta name=robots content='noindex, max-snippet:80'><p>{prose('rope')}</p>",
        "/lost": "<title>Page not found</title><h1>Page not found</h1><p>Sorry, there is nothing here.</p>",
        "/paper.pdf": pdf("A paper on lamps and boats, with more than twenty words in it, " + prose("net")[:300]),
        "/shop": f"<title>Shop</title><p>{prose('sail')}</p>"
        + linked(*(f"/item/{number}{query}" for number in range(16) for query in ("", "?ref=shop"))),
        **{
            f"/item/{number}{query}": f"<title>Item</title><p>{item(number)}</p>"
            for number in range(16)
            for query in ("", "?ref=shop")
        },
    }
    edition: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        body = self.pages.get(self.path, "")
        if self.path == "/story" and self.edition:
            body = str(body).replace(prose("boat"), prose("tent") + linked("/calendar/7"))
        if self.path.startswith("/calendar/"):
            day = int(self.path.rpartition("/")[2])
            body = f"<title>{day}</title><p>No events.</p>" + linked(f"/calendar/{day + 1}", f"/calendar/{day - 1}")
        sent = body.encode() if isinstance(body, str) else body
        self.send_response(200 if sent else 404)
        self.send_header("content-type", "application/pdf" if self.path.endswith(".pdf") else "text/html")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Do not log."""


@contextmanager
def served() -> Iterator[str]:
    """Run a real server on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    _Web.edition.clear()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def vedette(*arguments: str, cwd: Path) -> str:
    """Return the program's output for people."""
    command = [sys.executable, "-m", "vedette", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def run_json(*arguments: str, cwd: Path) -> Any:
    """Return its JSON output."""
    return json.loads(vedette(*arguments, "--json", cwd=cwd))


def crawl(start: str, cwd: Path, *more: str) -> None:
    """Crawl until nothing is left or the limit is reached, without delays, since the server is ours."""
    (cwd / "vedette.toml").write_text('[crawl]\ndelay = "1ms"\naddress_delay = "1ms"\nbrowser = "none"\n')
    vedette("crawl", start, "--allow-private", "--quiet", *more, cwd=cwd)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A folder in which each page was fetched once, and its running site; tests change neither."""
    folder = tmp_path_factory.mktemp("read")
    with served() as site:
        crawl(site, folder)
        yield site, folder


def objections(page: Any) -> list[str]:
    """Return the names of a page's objections to indexing."""
    return [each["name"] for each in page["index"]["objections"]]


def test_the_content_of_a_page_is_shown(read: tuple[str, Path]) -> None:
    """It shows language, charset, words, date and description of a page, and that it may be indexed."""
    site, cwd = read
    page = run_json("explain", f"{site}story", cwd=cwd)
    content = page["content"]
    assert (content["language"], content["description"]) == ("en", "Boats, and walls.")
    assert content["words"] == len(prose("boat").split())
    assert (content["marks"], content["needs_script"], page["index"]) == ([], False, {"would": True, "objections": []})
    words = vedette("explain", f"{site}story", cwd=cwd)
    assert "published 2026-03-01" in words
    assert "in the index: no objections" in words
    assert page["change"] is None


def test_copies_name_each_other_and_the_canonical_page(read: tuple[str, Path]) -> None:
    """The page that its copy names as canonical represents both, and the copy says why it is not indexed."""
    site, cwd = read
    original, copy = (run_json("explain", site + path, cwd=cwd) for path in ("story", "story?view=print"))
    assert copy["content"]["canonical"] == f"{site}story"
    assert (copy["copies"]["stands"], copy["copies"]["is_this"]) == (f"{site}story", False)
    assert (original["copies"]["is_this"], original["copies"]["others"][0]) == (True, f"{site}story?view=print")
    assert (objections(copy), copy["index"]["would"]) == (["copy", "author"], False)
    words = vedette("explain", f"{site}story?view=print", cwd=cwd)
    assert f"not in the index: it is a copy of another page: {site}story" in words
    assert "overrule" not in words
    assert f"a copy of {site}story (3 pages with the same content" in words
    assert "represents 2 copies" in vedette("explain", f"{site}story", cwd=cwd)


def test_a_near_copy_is_searchable_and_names_the_canonical_page(read: tuple[str, Path]) -> None:
    """A page with content of its own is indexed; only word-for-word copies are left out."""
    site, cwd = read
    page = run_json("explain", f"{site}story/more", cwd=cwd)
    assert page["copies"]["stands"] == f"{site}story"
    assert page["index"] == {"would": True, "objections": []}
    assert "in the index: no objections" in vedette("explain", f"{site}story/more", cwd=cwd)


def test_a_page_that_needs_javascript_is_explained(read: tuple[str, Path]) -> None:
    """The output has a plain reason, and a command that overrules every judgment against the page."""
    site, cwd = read
    words = vedette("explain", f"{site}app", cwd=cwd)
    assert "; text or links are missing without JavaScript" in words
    assert f"vedette sites set {site} overrule=script" in words
    assert run_json("explain", f"{site}app", cwd=cwd)["content"]["needs_script"]


def test_a_noindex_is_the_authors_word_and_not_ours_to_overrule(read: tuple[str, Path]) -> None:
    """The directives are shown, the reason is the author's, and no command is suggested."""
    site, cwd = read
    page = run_json("explain", f"{site}hidden", cwd=cwd)
    assert page["content"]["marks"] == ["noindex", "max-snippet:80"]
    assert page["index"]["would"] is False
    words = vedette("explain", f"{site}hidden", cwd=cwd)
    assert "its author asks search engines not to index it" in words
    assert "overrule" not in words


@pytest.mark.parametrize(("path", "kind", "against"), [("paper.pdf", "document", []), ("lost", "page", ["missing"])])
def test_documents_and_pages_that_are_not_there(
    read: tuple[str, Path], path: str, kind: str, against: list[str]
) -> None:
    """A PDF is read like a page; a page that says it does not exist counts as missing."""
    site, cwd = read
    page = run_json("explain", site + path, cwd=cwd)
    assert (page["page"]["status"], page["page"]["kind"]) == (200, kind)
    assert objections(page)[:1] == against
    assert page["content"]["words"] > 0


def list_held(cwd: Path) -> list[str]:
    """Return the URLs that are held back."""
    lines = vedette("export", "urls", "--json", cwd=cwd).splitlines()
    rows = [json.loads(line) for line in lines]
    return [row["url"] for row in rows if row["state"] == "refused" and "trap" in row["note"]]


def test_an_endless_calendar_is_held_back_and_explained(read: tuple[str, Path]) -> None:
    """The crawl ends; held-back URLs have a reason, the yield of similar pages, and a command."""
    site, cwd = read
    first, *_ = list_held(cwd)
    page = run_json("explain", first, cwd=cwd)
    assert (page["known"]["standing"], page["held"]["for_good"], page["page"]) == ("refused", False, None)
    assert page["held"]["brought"]["fetches"] > 0
    assert page["held"]["pattern"].startswith("/calendar/")
    words = vedette("explain", first, cwd=cwd)
    assert f"vedette sites set {site} overrule=trap" in words
    assert f"vedette fetch {first}" in words


def test_status_counts_findings_about_content(read: tuple[str, Path]) -> None:
    """Copies, objections and held-back URLs are counted for the folder, as text and as JSON."""
    _, cwd = read
    reading = run_json("status", cwd=cwd)["reading"]
    assert reading["held"] == len(list_held(cwd))
    assert reading["copies"] >= 1
    assert reading["objected"] >= len(("app", "hidden", "lost"))
    assert f"Held back {reading['held']} URLs" in vedette("status", cwd=cwd)


def test_folders_without_pages_have_no_line_about_content(tmp_path: Path) -> None:
    """A folder without pages has no such line, and a missing page has no content."""
    with served() as site:
        vedette("sites", "add", site, cwd=tmp_path)
        assert "Reading" not in vedette("status", cwd=tmp_path)
        vedette("fetch", f"{site}nowhere", "--allow-private", cwd=tmp_path)
        page = run_json("explain", f"{site}nowhere", cwd=tmp_path)
    assert page["page"]["status"] == 404
    assert [page[key] for key in ("content", "copies", "index", "change", "held", "spared")] == [None] * 6


def test_an_overruled_trap_is_fetched_on(tmp_path: Path) -> None:
    """Held-back URLs are queued at once, more of the calendar is fetched, and its objections no longer count."""
    with served() as site:
        crawl(site, tmp_path)
        before = list_held(tmp_path)
        assert "again" in vedette("sites", "set", site, "overrule=trap,thin", cwd=tmp_path)
        assert run_json("status", cwd=tmp_path)["reading"]["held"] == 0
        crawl(site, tmp_path, "--pages", str(len(before)))
        assert list_held(tmp_path) == []
        pages = [run_json("explain", url, cwd=tmp_path) for url in before]
    fetched = [page for page in pages if page["page"] is not None]
    assert fetched
    thin = [each for page in fetched for each in page["index"]["objections"] if each["name"] == "thin"]
    assert thin
    assert all(each["overruled"] for each in thin)


def test_the_last_change_is_shown_by_the_rule_of_the_site(tmp_path: Path) -> None:
    """With another text and one more link, it shows the changed share, the links, and what counts for this site."""
    with served() as site:
        vedette("sites", "add", site, "--change", "text", cwd=tmp_path)
        vedette("fetch", f"{site}story", "--allow-private", cwd=tmp_path)
        _Web.edition.append("second")
        vedette("fetch", f"{site}story", "--allow-private", cwd=tmp_path)
        change = run_json("explain", f"{site}story", cwd=tmp_path)["change"]
    assert change["rule"] == "text"
    assert 0 < change["share"] <= 1
    assert "1 links added" in change["why"] or "1 link added" in change["why"]


def test_a_learned_rule_is_shown_and_can_be_overruled(tmp_path: Path) -> None:
    """After some pairs of copies the parameter is known to be irrelevant, and the other spelling is fetched."""
    with served() as site:
        vedette("sites", "add", f"{site}shop", "--overrule", "trap", cwd=tmp_path)
        crawl(f"{site}shop", tmp_path)
        # A few URLs, chosen by a hash that covers the port, are fetched despite the rule, to verify it.
        new = next(url for number in range(99, 999) if not is_check(url := f"{site}item/{number}?ref=shop"))
        spared = run_json("explain", new, cwd=tmp_path)["spared"]
        assert spared["instead"] == new.removesuffix("?ref=shop")
        assert "ref=" in spared["rule"]
        words = vedette("explain", new, cwd=tmp_path)
        assert f"vedette sites set {site}shop overrule=trap,copy" in words
        vedette("sites", "set", f"{site}shop", "overrule=trap,copy", cwd=tmp_path)
        assert run_json("explain", new, cwd=tmp_path)["spared"] is None
