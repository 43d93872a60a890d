"""New pages for people, feed readers and programs, on the real application with a few in-memory items."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest
from starlette.testclient import TestClient
from tests.web.small_search import NOW_S, PRIVATE, SmallSearch, bearer, made_key

from vedette.adapters.alerts.alert_store import AlertItem
from vedette.config import Rate, Serve
from vedette.discover.formats.feeds import parse_feed
from vedette.web.app import create_app
from vedette.web.auth.keys import Key
from vedette.web.public.new_page_ports import ItemBatch
from vedette.web.rendering import Branding

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = "<script>alert('x')</script> \x00\x0b ]]> & \ud800 \"'"


def item(seq: int, host: str = "docs.example.org", title: str = "A title", **changed: object) -> AlertItem:
    """Return a new page."""
    url = f"https://{host}/{seq}"
    made = AlertItem(seq, seq, url, title, "Some text", NOW_S - 600, "feed", f"https://{host}/feed", None, NOW_S - 590)
    return made._replace(**changed)  # type: ignore[arg-type]  # each test names real fields


class SmallNews:
    """Items in memory; the alert "odd" has those with odd numbers."""

    def __init__(self, items: Sequence[AlertItem]) -> None:
        self.items = items

    def has_alert(self, name: str) -> bool:
        """Check whether the watch exists."""
        return name == "odd"

    def list_after(self, cursor: int | None, most: int, watch: str, allowed: tuple[str, ...]) -> ItemBatch:
        """Return the oldest first."""
        newest = max((one.seq for one in self.items), default=0)
        cursor = newest if cursor is None else cursor
        found = [one for one in self._seen(watch, allowed) if one.seq > cursor]
        last = found[most - 1].seq if len(found) > most else newest
        return ItemBatch(tuple(found[:most]), last, len(found) > most, missed=0 < cursor < 2)

    def list_latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> ItemBatch:
        """Return the newest first."""
        found = [one for one in self._seen(watch, allowed)[::-1] if before is None or one.seq < before]
        return ItemBatch(tuple(found[:most]), found[:most][-1].seq if found else 0, len(found) > most)

    def _seen(self, watch: str, allowed: tuple[str, ...]) -> list[AlertItem]:
        wanted = [one for one in self.items if not watch or one.seq % 2]
        return [one for one in wanted if not one.private or one.private in allowed]


def client(items: Sequence[AlertItem], keys: Sequence[Key] = (), access: str = "open") -> TestClient:
    """A client of a server with these items."""
    serve = Serve(rate=Rate(0, 1.0), access=access)  # type: ignore[arg-type]  # each test names a real one
    app = create_app(
        SmallSearch(), serve, Branding("Herald", "https://search.example.org"), lambda: keys, news=SmallNews(items)
    )
    return TestClient(app, "http://127.0.0.1:8080", follow_redirects=False)


def entries(text: bytes) -> list[ET.Element]:
    """Return the entries of a well-formed feed."""
    return ET.fromstring(text).findall(f"{ATOM}entry")  # noqa: S314 - our own feed


def test_the_feed_is_whole_atom() -> None:
    """Every element that RFC 4287 requires is there once, and our own feed parser can read it."""
    born = item(2, born_s=NOW_S - 7800)
    answer = client([item(1), born]).get("/new.atom")
    assert answer.headers["content-type"] == "application/atom+xml; charset=utf-8"
    feed = ET.fromstring(answer.content)  # noqa: S314 - our own feed
    for name in ("id", "title", "updated", "author"):
        assert len(feed.findall(f"{ATOM}{name}")) == 1
    assert feed.findtext(f"{ATOM}author/{ATOM}name") == "Herald"
    links = {link.get("rel"): link.get("href") for link in feed.findall(f"{ATOM}link")}
    assert links == {"self": "https://search.example.org/new.atom", "alternate": "https://search.example.org/new"}
    newest = entries(answer.content)[0]
    for name in ("id", "title", "updated", "published", "summary"):
        assert len(newest.findall(f"{ATOM}{name}")) == 1
    via = {link.get("rel"): link.get("href") for link in newest.findall(f"{ATOM}link")}
    assert via == {"alternate": born.url, "via": born.via}
    assert "after its date." in (newest.findtext(f"{ATOM}summary") or "")
    ids = [entry.findtext(f"{ATOM}id") for entry in entries(answer.content)]
    assert len(set(ids)) == 2
    read = parse_feed(answer.content, "https://search.example.org/new.atom")
    assert [(entry.link, entry.published_s) for entry in read.entries] == [
        (born.url, NOW_S - 7800),
        (item(1).url, NOW_S - 600),
    ]


def test_hostile_titles_and_texts_stay_text() -> None:
    """Characters that XML can't contain are dropped, and HTML is escaped."""
    pages = client([item(1, title=HOSTILE, snippet=HOSTILE, via="javascript:alert(1)")])
    (entry,) = entries(pages.get("/new.atom").content)
    assert (entry.findtext(f"{ATOM}title") or "").startswith("<script>alert('x')</script>")
    shown = pages.get("/new").text
    assert "<script>alert" not in shown
    assert 'href="javascript:' not in shown
    assert pages.get("/api/v1/new").status_code == 200


def test_an_unchanged_feed_is_not_sent_again() -> None:
    """The ETag matches; a new item changes it."""
    pages = client([item(1)])
    tag = pages.get("/new.atom").headers["etag"]
    assert pages.get("/new.atom", headers={"if-none-match": tag}).status_code == 304
    assert client([item(1), item(2)]).get("/new.atom", headers={"if-none-match": tag}).status_code == 200


def test_an_empty_feed_is_a_feed() -> None:
    """The page says why there are no items."""
    pages = client([])
    assert entries(pages.get("/new.atom").content) == []
    assert "first crawl are not listed" in pages.get("/new").text
    assert pages.get("/api/v1/new").json() == {"items": [], "cursor": "0", "more": False, "missed": False}


def test_a_cursor_returns_each_item_once() -> None:
    """Without a cursor it gets the latest; with one, each item once, oldest first."""
    pages = client([item(seq) for seq in range(1, 6)])
    first = pages.get("/api/v1/new?n=2").json()
    assert [one["cursor"] for one in first["items"]] == ["4", "5"]
    assert pages.get(f"/api/v1/new?since={first['cursor']}").json()["items"] == []
    seen, cursor, more = [], "0", True
    while more:
        report = pages.get(f"/api/v1/new?since={cursor}&n=2").json()
        seen += [one["cursor"] for one in report["items"]]
        cursor, more = report["cursor"], report["more"]
    assert seen == ["1", "2", "3", "4", "5"]
    assert pages.get("/api/v1/new?since=1").json()["missed"] is True


def test_a_watch_has_its_own_feed_page_and_answer() -> None:
    """A missing alert is reported, to people as a page."""
    pages = client([item(seq) for seq in range(1, 4)])
    assert len(entries(pages.get("/new.atom?watch=odd").content)) == 2
    assert [one["cursor"] for one in pages.get("/api/v1/new?watch=odd&since=0").json()["items"]] == ["1", "3"]
    shown = pages.get("/new?watch=odd").text
    assert 'rel="alternate" type="application/atom+xml" href="/new.atom?watch=odd"' in shown
    for path in ("/new.atom?watch=even", "/api/v1/new?watch=even"):
        answer = pages.get(path)
        assert (answer.status_code, answer.json()["error"]["parameter"]) == (404, "watch")
    for path in ("/new?watch=even", "/new?watch=%00", "/new?before=x"):
        assert pages.get(path).status_code == 404


@pytest.mark.parametrize("query", ["since=x", "since=-1", "n=0", "n=101", "watch=A%20b", "since=1&since=2", "sinc=1"])
def test_wrong_parameters_are_refused_with_advice(query: str) -> None:
    """Errors are the same as everywhere in the API."""
    answer = client([item(1)]).get(f"/api/v1/new?{query}")
    assert answer.status_code == 400
    assert json.loads(answer.text)["error"]["message"]


def test_older_items_are_on_the_next_page() -> None:
    """Older items are on the next page, each once."""
    pages = client([item(seq, title=f"Number {seq}.") for seq in range(1, 41)])
    first = pages.get("/new").text
    assert "Number 40." in first
    assert "Number 10." not in first
    older = pages.get("/new?before=11").text
    assert "Number 10." in older
    assert "Number 11." not in older
    assert 'href="/new?before=11"' in first


def test_private_items_are_visible_to_their_readers_only() -> None:
    """A key opens them in the feed as well, also as a parameter; a limited key shows only its sites."""
    private = item(1, "wiki.example.org", private=PRIVATE.start)
    public = item(2)
    ann, ann_key = made_key("ann", "search", "private")
    docs, docs_key = made_key("docs", "search", sites=("docs.example.org",))
    wiki, wiki_key = made_key("elsewhere", "search", sites=("wiki.example.org",))
    pages = client([private, public], [ann_key, docs_key, wiki_key])
    assert len(entries(pages.get("/new.atom").content)) == 1
    assert len(entries(pages.get("/new.atom", headers=bearer(ann)).content)) == 2
    assert len(entries(pages.get(f"/new.atom?key={ann}").content)) == 2
    assert ann not in pages.get(f"/new.atom?key={ann}").text
    assert len(entries(pages.get(f"/new.atom?key={docs}").content)) == 1
    assert entries(pages.get(f"/new.atom?key={wiki}").content) == []
    assert pages.get("/api/v1/new?since=0", headers=bearer(wiki)).json()["items"] == []
    assert pages.get("/new.atom", headers=bearer(ann)).headers["cache-control"] == "private, no-store"


def test_feeds_of_a_private_server_need_a_key() -> None:
    """A feed reader gets an error, and a person the sign-in page."""
    pages = client([item(1)], access="token")
    assert pages.get("/new.atom").status_code == 401
    assert pages.get("/api/v1/new").status_code == 401
    assert pages.get("/new").status_code == 303
