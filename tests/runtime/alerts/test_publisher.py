"""From a fetched page to an item: published once it is searchable, for the matching alerts, and never twice."""

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.runtime.indexing.test_index_builder import SITE, Web, page

from vedette.adapters.alerts.alert_store import AlertReader, AlertStore
from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.store import SiteRow
from vedette.engine.ports import ChangeSignal, Discovery
from vedette.model import Site
from vedette.runtime.alerts.publisher import AlertMatcher
from vedette.runtime.alerts.service import FolderNewPages
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.indexing.indexer import rebuild
from vedette.web.commands.alert_text import parse_alert
from vedette.web.commands.commands import AddAlert, AddRules, RemoveAlert, Rule, Undo

WORDS = "Unlike any other page it speaks of {} and nothing but {}, at some length, so that no two of them are alike."


def text(word: str) -> str:
    """Return a unique main text."""
    return " ".join(f"{word}{letter}" for letter in "abcdefghijklmnopqrstuvwxyz") + " " + WORDS.format(word, word)


@pytest.fixture
def web(tmp_path: Path) -> Web:
    """A folder with one site whose first crawl is over."""
    web = Web(tmp_path / "data")
    with web.state() as state:
        state.store.save_site(SiteRow(SITE, paused=False, added_s=web.now_s))
    web.answers("home", page("Home", text("home")))
    return web


def appears(web: Web, path: str, body: str, how: str = "page") -> None:
    """Let a page be found on the home page as new, and fetch it."""
    web.answers(path, body)
    with web.state() as state:
        (id_,) = state.urls.find_ids([f"{SITE.start}{path}"]).tolist()
        state.store.save_discoveries([Discovery(id_, 1, how, 0)])


def tell(web: Web) -> None:
    """Update the index, and publish all new pages."""
    web.index()
    with closing(AlertStore(web.folder)) as book:
        telling = AlertMatcher(web.folder, start_clock(web.now_s, 1.0), book)
        while telling.step():
            pass


def paths(web: Web, watch: str = "", allowed: tuple[str, ...] = ()) -> list[str]:
    """Return the published items, in order."""
    items = FolderNewPages(web.folder).list_after(0, 100, watch, allowed).items
    return [item.url.removeprefix(SITE.start) for item in items]


def test_a_new_page_is_reported_with_its_details(web: Web) -> None:
    """Title, an excerpt, where and when it was found, and the delay since publication."""
    born = '<meta property="article:published_time" content="2027-01-15T07:00:00Z">'
    appears(web, "a", page("Apples", text("apple"), born), "feed")
    tell(web)
    (item,) = FolderNewPages(web.folder).list_after(0, 10, "", ()).items
    assert (item.title, item.how, item.via) == ("Apples", "feed", f"{SITE.start}home")
    assert item.snippet.startswith("Apples applea")
    assert item.born_s is not None
    assert item.delay_s == item.found_s - item.born_s
    assert item.told_s >= item.found_s


def test_pages_of_a_first_crawl_are_not_reported(web: Web) -> None:
    """A page that was not new when it was found is not new when it becomes searchable."""
    web.answers("old", page("Old", text("old")))
    tell(web)
    assert paths(web) == []


def test_near_copies_are_not_reported(web: Web) -> None:
    """A site that was rebuilt under other URLs has the same content as before."""
    long = " ".join(map(text, ("apple", "pear", "plum", "quince")))
    web.answers("a", page("Apples", long))
    appears(web, "new/a", page("Apples", f"{long} today"))
    tell(web)
    assert paths(web) == []


def test_the_target_of_a_move_is_not_reported(web: Web) -> None:
    """Even if a link led to it before the old page did."""
    web.answers("a", page("Apples", text("apple")))
    web.index()
    web.answers("a", "", 301, (("location", f"{SITE.start}b"),))
    web.index()
    appears(web, "b", page("Bears", text("bear")))
    tell(web)
    assert paths(web) == []


def test_a_rebuilt_index_reports_nothing_again(web: Web) -> None:
    """Nor does a page that changes, disappears or comes back."""
    appears(web, "a", page("Apples", text("apple")))
    tell(web)
    rebuild(web.folder, start_clock(web.now_s, 1.0), lambda _done, _pages: None)
    tell(web)
    web.answers("a", "gone", 404)
    web.index()
    web.answers("a", page("Apples", text("pear")))
    tell(web)
    assert paths(web) == ["a"]


def test_pages_are_reported_once_they_are_searchable(web: Web) -> None:
    """The notifier may be faster than the index, and a kill between the two loses nothing."""
    appears(web, "a", page("Apples", text("apple")))
    web.index()
    with closing(AlertStore(web.folder)) as book:
        (noted,) = book.list_new_pages(10)
        book.add_new_pages([noted._replace(print=7, page=10**6)], (), (), web.now_s)
        telling = AlertMatcher(web.folder, start_clock(web.now_s, 1.0), book)
        assert (telling.step(), telling.step()) == (1, 0)
        assert [one.print for one in book.list_new_pages(10)] == [7]
    assert paths(web) == ["a"]


def test_watches_by_place_and_by_query(web: Web) -> None:
    """Each alert gets what matches: the real query language decides, and all words are required."""
    wanted = {
        "everything": parse_alert("everything", "*"),
        "folder": parse_alert("folder", "http://www.example.org/news/"),
        "elsewhere": parse_alert("elsewhere", "example.net"),
        "either": parse_alert("either", query="applea OR bearb"),
        "phrase": parse_alert("phrase", query='"applea appleb" -bearb'),
        "title": parse_alert("title", "example.org", "intitle:bears"),
        "loose": parse_alert("loose", query="applea zeppelin"),
    }
    for watch in wanted.values():
        web.ordered(AddAlert(watch))
    appears(web, "news/a", page("Apples", text("apple")))
    appears(web, "b", page("Bears", text("bear")))
    tell(web)
    assert {name: paths(web, name) for name in wanted} == {
        "everything": ["news/a", "b"],
        "folder": ["news/a"],
        "elsewhere": [],
        "either": ["news/a", "b"],
        "phrase": ["news/a"],
        "title": ["b"],
        "loose": [],
    }


def test_the_longest_query_can_be_watched_for(web: Web) -> None:
    """Any query that can be typed finds a page or none, without an error."""
    for number, query in enumerate((" ".join("abcdefghijklmnopqrstuvwxyz" * 9), "(a OR b) " * 50, "-a " * 100 + "b")):
        web.ordered(AddAlert(parse_alert(f"w{number}", query=query[:500])))
    for number in range(3):
        appears(web, f"{number}", page(f"Page {number}", text("abcdefgh"[number])))
    tell(web)
    assert paths(web) == ["0", "1", "2"]


def test_a_restored_alert_keeps_its_items(web: Web) -> None:
    """Undo restores it with its id."""
    web.ordered(AddAlert(parse_alert("all", "*")))
    appears(web, "a", page("Apples", text("apple")))
    tell(web)
    action = web.ordered(RemoveAlert("all"))
    assert not FolderNewPages(web.folder).has_alert("all")
    web.ordered(Undo(action))
    assert paths(web, "all") == ["a"]


def test_private_and_hidden_pages_are_reported_to_their_readers_only(web: Web) -> None:
    """The time of reading decides; a webhook gets private pages only if its user may see them."""
    private = Site(SITE.start, secrets="env:X", readers=("ann",))
    for name, reader in (("public", ""), ("ann", "ann"), ("bob", "bob")):
        web.ordered(AddAlert(parse_alert(name, "*", webhook=f"https://hooks.example.org/{name}", reader=reader)))
    appears(web, "a", page("Apples", text("apple")))
    appears(web, "b", page("Bears", text("bear")))
    with web.state() as state:
        state.store.save_site(SiteRow(private, paused=False, added_s=web.now_s))
        id_ = state.urls.find_ids([f"{SITE.start}a"]).tolist()[0]
        state.db.execute("UPDATE content SET private = ? WHERE id = ?", (SITE.start, id_))
    tell(web)
    assert paths(web) == ["b"]
    assert paths(web, allowed=(SITE.start,)) == ["a", "b"]
    watches = FolderNewPages(web.folder).load_alerts()
    names = {watch.alert_id: name for name, watch in watches.items()}
    sent = {names[one.watch]: one.last - one.first + 1 for one in AlertReader(web.folder).list_deliveries(10)}
    assert sent == {"public": 1, "ann": 2, "bob": 1}
    web.ordered(AddRules((Rule("conceal", "", f"{SITE.start}b"),)))
    assert paths(web, allowed=(SITE.start,)) == ["a"]


def test_the_cursor_passes_pages_that_a_reader_must_not_see(web: Web) -> None:
    """However many private pages lie between two public ones, the next request continues after them."""
    for number in range(6):
        appears(web, f"{number}", page(f"Page {number}", text("abcdef"[number])))
    tell(web)
    with web.state() as state:
        state.db.execute("UPDATE content SET private = 'x' WHERE id BETWEEN 3 AND 6")
    news, cursor, seen = FolderNewPages(web.folder), 0, []
    for _ in range(10):
        batch = news.list_after(cursor, 1, "", ())
        cursor = batch.cursor
        seen += [item.url.removeprefix(SITE.start) for item in batch.items]
    assert seen == ["0", "5"]


def test_commands_are_refused_with_reasons_and_can_be_undone(web: Web) -> None:
    """This includes duplicate and unknown names."""
    web.ordered(AddAlert(parse_alert("all", "*")))
    with web.state() as state:
        with pytest.raises(Exception, match="already"):
            execute_command(AddAlert(parse_alert("all", "*")), state, web.now_s, "a test")
        with pytest.raises(Exception, match='did you mean "all"'):
            execute_command(RemoveAlert("alll"), state, web.now_s, "a test")
        undo = json.dumps([row.action.undo for row in state.store.list_actions(1)])
    assert "remove_watch" in undo


def test_the_date_of_a_page_is_its_own_or_that_of_the_list_that_named_it(web: Web) -> None:
    """A feed's date is used if the page states none; a precise date of the page comes first."""
    own_s = web.now_s - 7200.5
    stamp = datetime.fromtimestamp(own_s, UTC).isoformat()
    appears(web, "silent", page("Silent", text("silent")), "feed")
    meta = f'<meta property="article:published_time" content="{stamp}">'
    dated = page("Dated", text("dated"), meta)
    appears(web, "dated", dated, "feed")
    with web.state() as state:
        ids = state.urls.find_ids([f"{SITE.start}silent", f"{SITE.start}dated"]).tolist()
        state.store.save_births([ChangeSignal(id_, web.now_s - 3600.0, "feed") for id_ in ids])
    tell(web)
    items = {item.title: item.born_s for item in FolderNewPages(web.folder).list_after(0, 9, "", ()).items}
    assert items == {"Silent": web.now_s - 3600.0, "Dated": pytest.approx(own_s, abs=1.0)}
