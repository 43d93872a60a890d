"""From the state to the index: fetched pages are found, deleted ones are not, and nothing is lost.

Pages take the same path as fetched responses; archive, state and index are real.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.data_folders import NOW_S, opened
from tests.tree_runs import patiently

from vedette.adapters.archive.replay import ImportedResponse
from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.store import CrawlStore, SiteRow
from vedette.adapters.exchange.canonical_store import CanonicalStore
from vedette.adapters.exchange.link_store import create_exchange_tables
from vedette.adapters.index_store.generations import Generations
from vedette.engine.coordinator.shard import ForeignCanonical
from vedette.index.fields import MANY_PAGES
from vedette.index.query.retrieval import Term, TermSet
from vedette.model import Headers, Site
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.commands.importer import Importer
from vedette.runtime.indexing.indexer import Indexer, RebuildJob, catch_up, open_indexer, rebuild
from vedette.runtime.indexing.pagerank import compute_importance
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.slate import SearchRequest, SearchResult
from vedette.web.commands.commands import AddRules, Command, RemoveRules, RemoveSite, Rule, SetSite, Undo

SITE = Site("http://www.example.org/")
HTML: Headers = (("content-type", "text/html; charset=utf-8"),)
FILLER = "Ordinary words fill the rest of this page so that it is long enough to be worth reading for anybody. " * 3


def page(title: str, text: str, head: str = "", links: str = "") -> str:
    """Return a page with a unique main text."""
    main = f"<main><h1>{title}</h1><p>{text} {FILLER}</p>{links}</main>"
    return f"<html><head><title>{title}</title>{head}</head><body>{main}</body></html>"


@dataclass
class Web:
    """A folder that receives responses as if they had been fetched one after the other."""

    folder: Path
    now_s: float = NOW_S

    def answers(self, path: str, body: str = "", status: int = 200, headers: Headers = HTML) -> None:
        """Let one URL return this response."""
        self.all_answer({path: body}, status, headers)

    def all_answer(self, bodies: dict[str, str], status: int = 200, headers: Headers = HTML) -> None:
        """Let several URLs return this response at the same time."""
        self.now_s += 60
        with self.state() as state, self.importer(state) as importer:
            importer._save_pages(
                [
                    ImportedResponse(f"{SITE.start}{path}", self.now_s, status, headers, body.encode(), "test")
                    for path, body in bodies.items()
                ]
            )

    @contextmanager
    def importer(self, state: State) -> Iterator[Importer]:
        """Import responses into the state."""
        with closing(Importer(state, "test", self.now_s, 1 << 20)) as importer:
            yield importer

    def ordered(self, order: Command) -> int:
        """Run an operator command and return the number of the action."""
        with self.state() as state:
            return execute_command(order, state, self.now_s, "a test").action

    @contextmanager
    def state(self) -> Iterator[State]:
        """Open the state, and close it cleanly."""
        with opened(self.folder, self.now_s) as state:
            state.db.execute("BEGIN IMMEDIATE")
            yield state
            state.commit()

    def index(self) -> LiveIndexSnapshot:
        """Process all changes, and return the index as a reader sees it."""
        catch_up(self.folder, start_clock(self.now_s, 1.0))
        generation = Generations(self.folder).current()
        assert generation is not None
        return LiveIndexSnapshot(generation)

    def found(self, word: str, field: str = "body") -> list[str]:
        """Return the paths of the pages with a word, in order."""
        shelf = self.index()
        return paths(shelf, Term(field, word))


def paths(shelf: LiveIndexSnapshot, node: Term | TermSet) -> list[str]:
    """Return the paths of the results."""
    stored = shelf.get_stored(shelf.finder.find(node, 100).ids)
    assert all(stored)
    return sorted(one.url.removeprefix(SITE.start) for one in stored if one)


@pytest.fixture
def web(tmp_path: Path) -> Web:
    """An empty folder with one site."""
    web = Web(tmp_path / "data")
    with web.state() as state:
        state.store.save_site(SiteRow(SITE, paused=False, added_s=NOW_S))
    return web


def test_what_was_fetched_is_found_by_every_field(web: Web) -> None:
    """Title, headings, body, URL, language, kind, site and dates all find the page."""
    web.answers("guide/setup", page("Installation", "Unpack the zeppelin first.", '<html lang="en">'))
    shelf = web.index()
    for field, word in (
        ("title", "installation"),
        ("headings", "installation"),
        ("body", "zeppelin"),
        ("url", "setup"),
    ):
        assert paths(shelf, Term(field, word)) == ["guide/setup"]
    for field, value in (
        ("site", "www.example.org"),
        ("site", "example.org"),
        ("site", "www.example.org/guide"),
        ("kind", "html"),
        ("language", "en"),
        ("access", "public"),
    ):
        assert paths(shelf, TermSet(field, (value,))) == ["guide/setup"]
    assert shelf.finder.newest(TermSet("kind", ("html",)), 5).ids.tolist() == shelf.table.indexed.tolist()


def test_a_changed_page_is_found_by_its_new_words_only(web: Web) -> None:
    """It is in the index once."""
    web.answers("a", page("First", "zeppelin"))
    assert web.found("zeppelin") == ["a"]
    web.answers("a", page("Second", "submarine"))
    assert web.found("zeppelin") == []
    assert web.found("submarine") == ["a"]


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (404, HTML, "gone"),
        (410, HTML, "gone"),
        (301, (("location", "http://www.example.org/b"),), ""),
        (200, HTML, page("Here", "zeppelin", '<meta name="robots" content="noindex">')),
        (200, (*HTML, ("x-robots-tag", "noindex")), page("Here", "zeppelin")),
    ],
)
def test_what_went_away_is_not_found(web: Web, status: int, headers: Headers, body: str) -> None:
    """Deleted, moved and noindex pages leave the results, and come back when they are restored."""
    web.answers("a", page("Here", "zeppelin"))
    assert web.found("zeppelin") == ["a"]
    web.answers("a", body, status, headers)
    assert web.found("zeppelin") == []
    web.answers("a", page("Here again", "zeppelin"))
    assert web.found("zeppelin") == ["a"]


def test_a_page_that_names_another_leaves_the_results_for_it(web: Web) -> None:
    """This only happens once the other page can be found: an unreachable canonical URL hides nothing."""
    canonical = '<link rel="canonical" href="/whole">'
    web.answers("print", page("For the printer", "zeppelin", canonical))
    assert web.found("zeppelin") == ["print"]
    web.answers("whole", page("The whole story", "zeppelin and much besides, told at length."))
    web.answers("print", page("For the printer", "zeppelin once more", canonical))
    assert web.found("zeppelin") == ["whole"]


def test_a_page_gives_way_to_its_canonical_in_another_shard(web: Web) -> None:
    """As long as that shard says that the canonical can be shown."""
    canonical = "https://elsewhere.example/whole"
    web.answers("print", page("For the printer", "zeppelin", f'<link rel="canonical" href="{canonical}">'))
    assert web.found("zeppelin") == ["print"]
    for is_there, found in ((True, []), (False, ["print"])):
        with web.state() as state:
            create_exchange_tables(state.db)
            store = CanonicalStore(state.db, lambda url: int(state.urls.find_ids([url])[0]))
            store.save_answer(ForeignCanonical(canonical, f"{SITE.start}print", is_there))
        assert web.found("zeppelin") == found


def test_a_copy_word_for_word_is_left_out_and_a_near_copy_is_in_its_group(web: Web) -> None:
    """A copy that differs in a number can be found by it; both are in one group, to be folded."""
    text = "The release brings many improvements to the engine and fixes what was reported since the last one. " * 4
    web.answers("one", page("Release 7", f"Version 3001 {text}"))
    web.answers("two", page("Release 7", f"Version 3001 {text}"))
    web.answers("three", page("Release 7", f"Version 3002 {text}"))
    shelf = web.index()
    assert paths(shelf, Term("body", "3001")) == ["one"]
    assert paths(shelf, Term("body", "3002")) == ["three"]
    groups = shelf.get_signals(shelf.table.indexed).group.tolist()
    assert len(groups) == 2
    assert len(set(groups)) == 1


def test_what_others_call_a_page_finds_it(web: Web) -> None:
    """Anchor texts from before and after the fetch count, as do those of redirects to it."""
    web.answers("hub", page("Hub", "links", links='<a href="/target">the blue manual</a><a href="/old">antique</a>'))
    web.answers("target", page("Target", "zeppelin"))
    assert web.found("manual", "anchors") == ["target"]
    web.answers("late", page("Late", "more links", links='<a href="/target">yellow handbook</a>'))
    assert web.found("handbook", "anchors") == ["target"]
    web.answers("old", "", 301, (("location", "http://www.example.org/target"),))
    assert web.found("antique", "anchors") == ["target"]


def test_what_the_operator_conceals_is_found_by_nobody_until_he_takes_it_back(web: Web) -> None:
    """This works for a URL, a prefix and a domain; it survives a refresh and a new index, and can be undone."""
    for path in ("a", "drafts/1", "drafts/2"):
        web.answers(path, page(f"Page {path}", f"zeppelin {path}"))
    web.ordered(AddRules((Rule("conceal", "", f"{SITE.start}a"),)))
    prefix = web.ordered(AddRules((Rule("conceal", "", f"{SITE.start}drafts/*"),)))
    assert web.found("zeppelin") == []
    web.answers("a", page("Page a again", "zeppelin once more"))
    web.answers("drafts/3", page("A new draft", "zeppelin as well"))
    assert web.found("zeppelin") == []
    rebuild(web.folder, start_clock(web.now_s, 1.0), lambda _done, _of: None)
    assert web.found("zeppelin") == []
    web.ordered(Undo(prefix))
    assert web.found("zeppelin") == ["drafts/1", "drafts/2", "drafts/3"]
    block = web.ordered(AddRules((Rule("block", "", "example.org"),)))
    assert web.found("zeppelin") == []
    web.ordered(Undo(block))
    web.ordered(RemoveRules((Rule("conceal", "", f"{SITE.start}a"),)))
    assert web.found("zeppelin") == ["a", "drafts/1", "drafts/2", "drafts/3"]


def test_a_domain_that_is_raised_or_lowered_moves(web: Web) -> None:
    """Of two similar pages, the one on the raised domain comes first, with the reason."""
    other = Site("http://www.example.net/")
    with web.state() as state:
        state.store.save_site(SiteRow(other, paused=False, added_s=NOW_S))
        with web.importer(state) as importer:
            importer._save_pages(
                [
                    ImportedResponse(
                        f"{site.start}x",
                        NOW_S,
                        200,
                        HTML,
                        page(f"Zeppelin {n}", f"zeppelin number {n}").encode(),
                        "test",
                    )
                    for n, site in enumerate((SITE, other))
                ]
            )

    def first() -> SearchResult:
        web.index()
        return FolderSearch(web.folder, start_clock(web.now_s, 1.0)).search(SearchRequest("zeppelin")).results[0]

    for raised in ("example.net", "www.example.org"):
        web.ordered(AddRules((Rule("raise", "", raised),)))
        assert first().site.endswith(raised)
        assert any("raised" in reason.feature and reason.contribution > 0 for reason in first().why)
        web.ordered(AddRules((Rule("lower", "", raised),)))
        assert not first().site.endswith(raised)
        web.ordered(RemoveRules((Rule("lower", "", raised),)))


def test_forgotten_pages_and_overruled_judgements_count_at_once(web: Web) -> None:
    """Changes to a site apply to the index without another fetch."""
    web.answers("thin", "<title>Tiny</title><p>zeppelin</p>")
    assert web.found("zeppelin") == []
    with web.state() as state:
        execute_command(SetSite(SITE.start, {"overrule": ("thin",)}, "overrule=thin"), state, web.now_s, "a test")
    assert web.found("zeppelin") == ["thin"]
    with web.state() as state:
        execute_command(RemoveSite(SITE.start, with_pages=True), state, web.now_s, "a test")
    assert web.found("zeppelin") == []


def test_pages_that_share_one_title_are_called_by_their_headings(web: Web) -> None:
    """A title that all pages share says nothing about them."""
    bodies = {
        f"p{number}": page("The Site", f"text {number}").replace("<h1>The Site", f"<h1>Chapter {number}")
        for number in range(MANY_PAGES)
    }
    web.all_answer(bodies)
    shelf = web.index()
    assert paths(shelf, Term("title", str(MANY_PAGES - 1))) == [f"p{MANY_PAGES - 1}"]
    assert paths(shelf, Term("title", "0")) == []


def test_an_index_that_was_lost_is_built_from_state_and_archive(web: Web) -> None:
    """With only the index folder missing, everything is found again, including documents."""
    web.answers("a", page("First", "zeppelin", links='<a href="/b">other</a>'))
    web.answers("notes.md", "# Balloon\n\nSee [the gondola](c).", headers=(("content-type", "text/plain"),))
    web.answers("b", page("Second", "submarine"))
    web.index()
    generation = Generations(web.folder).current()
    assert generation is not None
    drop_news(web)
    for path in sorted((web.folder / "index").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert web.found("zeppelin") == ["a"]
    assert web.found("balloon", "headings") == ["notes.md"]
    assert paths(web.index(), TermSet("kind", ("md",))) == ["notes.md"]
    assert web.found("other", "anchors") == ["b"]


def test_a_new_generation_is_built_beside_the_one_that_serves(web: Web) -> None:
    """The old one serves until the switch; the new one has the same pages, and later changes follow."""
    web.answers("a", page("First", "zeppelin"))
    old = web.index()
    drop_news(web)
    steps: list[tuple[int, int]] = []
    assert rebuild(web.folder, start_clock(web.now_s, 1.0), lambda done, of: steps.append((done, of))) == 1
    assert steps[-1] == (1, 1)
    assert paths(old, Term("body", "zeppelin")) == ["a"]
    current = Generations(web.folder).current()
    assert current is not None
    assert current != old.generation
    assert paths(LiveIndexSnapshot(current), Term("body", "zeppelin")) == ["a"]
    web.answers("b", page("Second", "submarine"))
    assert web.found("submarine") == ["b"]
    assert not old.generation.exists()


def test_a_crash_at_any_step_loses_nothing(web: Web) -> None:
    """If an indexer dies without a commit, the next one processes the changes, with the same result."""
    for number in range(6):
        web.answers(f"p{number}", page(f"Page {number}", f"zeppelin{number}", links='<a href="/p0">name</a>'))
    crashed = open_indexer(web.folder, start_clock(web.now_s, 1.0))
    crashed.step()
    let_go(crashed)
    assert [web.found(f"zeppelin{number}") for number in range(6)] == [[f"p{number}"] for number in range(6)]
    shelf = web.index()
    assert len(shelf.finder) == len(shelf.table.indexed) == 6
    assert web.found("name", "anchors") == ["p0"]


def test_links_make_importance(web: Web) -> None:
    """The page that all others link to is the most important."""
    for number in range(5):
        web.answers(f"p{number}", page(f"Page {number}", f"text {number}", links='<a href="/hub">hub</a>'))
    web.answers("hub", page("Hub", "centre"))
    shelf = web.index()
    assert compute_importance(shelf.generation) == 6
    shelf.refresh()
    ids = shelf.table.indexed
    best = ids[np.argmax(shelf.get_signals(ids).importance)]
    stored = shelf.table.read_stored(int(best))
    assert stored is not None
    assert stored.url.endswith("/hub")


def let_go(indexer: Indexer) -> None:
    """Exit like a killed process: nothing is committed, and locks are released."""
    builder = indexer.builder
    builder._writer._writer.rollback()
    builder.close()


def drop_news(web: Web) -> None:
    """Drop changes as the coordinator does once they are indexed."""
    taken = Generations(web.folder).min_indexed_seq()
    assert taken is not None
    with closing(sqlite3.connect(web.folder / "state.db", isolation_level=None)) as db:
        CrawlStore(db).delete_indexed(taken)
        assert db.execute("SELECT count(*) FROM news").fetchone() == (0,)


def test_an_index_that_is_mostly_unused_is_built_anew_by_itself(web: Web) -> None:
    """Unreferenced text is dropped with the old generation; a small or tidy index is left alone."""
    for version in range(4):
        web.answers("a", page("First", f"zeppelin{version}"))
        web.index()
    shelf = web.index()
    clock = start_clock(web.now_s, 1.0)
    with closing(RebuildJob(web.folder, clock)) as untroubled:
        untroubled.step(shelf.table, 100.0)
        assert untroubled.is_ready(100.0)
    with closing(RebuildJob(web.folder, clock, least_bytes=1)) as renewal:
        renewal.step(shelf.table, 100.0)
        patiently(lambda: Generations(web.folder).current() != shelf.generation)
    renewed = web.index()
    assert renewed.table.unused_share() == 0
    assert paths(renewed, Term("body", "zeppelin3")) == ["a"]


def test_an_index_that_is_being_built_says_so(web: Web) -> None:
    """Users see that results may be incomplete until all pages are indexed."""
    web.answers("a", page("First", "zeppelin"))
    clock = start_clock(web.now_s, 1.0)
    search = FolderSearch(web.folder, clock)
    assert "no index yet" in search.get_incomplete_reason()
    indexer = open_indexer(web.folder, clock)
    indexer.step()
    indexer.builder.commit(0)
    assert FolderSearch(web.folder, clock).get_incomplete_reason() == "the index is being built"
    while indexer.step():
        pass
    indexer.close()
    assert FolderSearch(web.folder, clock).get_incomplete_reason() == ""


def test_a_copy_is_shown_unless_the_owner_minds(web: Web) -> None:
    """A fetched page is returned from the archive unchanged, unless it is noarchive or missing."""
    web.answers("open", page("Open", "zeppelin"))
    web.answers("closed", page("Closed", "submarine", '<meta name="robots" content="noarchive">'))
    shelf = web.index()
    ids = {stored.title: id_ for id_ in shelf.table.indexed.tolist() if (stored := shelf.table.read_stored(id_))}
    search = FolderSearch(web.folder, start_clock(web.now_s, 1.0))
    copy = search.find_copy(ids["Open"], ())
    assert copy is not None
    assert copy.body.decode() == page("Open", "zeppelin")
    assert (copy.url, copy.content_type) == ("http://www.example.org/open", "text/html; charset=utf-8")
    assert search.find_copy(ids["Closed"], ()) is None
    assert search.find_copy(10**9, ()) is search.find_copy(-1, ()) is None


def test_a_page_is_found_by_its_address(web: Web) -> None:
    """Only the normalized URL finds the page, and not that of a deleted one."""
    web.answers("open", page("Open", "zeppelin"))
    web.answers("gone", page("Gone", "submarine"))
    web.index()
    web.answers("gone", "", 404)
    shelf = web.index()
    (id_,) = shelf.table.indexed.tolist()
    search = FolderSearch(web.folder, start_clock(web.now_s, 1.0))
    assert search.find_page("http://www.example.org/open", ()) == id_
    assert search.find_page("http://www.example.org/Open", ()) is None
    assert search.find_page("http://www.example.org/gone", ()) is None
    assert (
        FolderSearch(web.folder / "elsewhere", start_clock(web.now_s, 1.0)).find_page("http://a.example/", ()) is None
    )
