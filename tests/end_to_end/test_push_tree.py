"""Push through the whole tree: a real hub pushes, a site pings, a promise is kept, and a wrong key is refused."""

from concurrent.futures import Future
from pathlib import Path
from urllib.parse import urlencode

from tests.push_hub import Hub
from tests.search_runs import Leaf, page, small_web, up
from tests.tree_runs import patiently

HOME = "http://news.test"
FEED, LATE, PINGED, STILL = f"{HOME}/feed.xml", f"{HOME}/late", f"{HOME}/pinged", f"{HOME}/still"
KEY = "0123456789abcdef"
ATOM = (("Content-Type", "application/atom+xml"),)


def atom(hub: str, *links: str) -> str:
    """A hub's feed with these entries."""
    entries = "".join(f'<entry><link href="{link}"/><updated>2030-01-01T00:00:00Z</updated></entry>' for link in links)
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="{hub}"/>{entries}</feed>'


def test_hubs_and_pings_deliver_new_pages_and_promises_are_kept(tmp_path: Path) -> None:
    """Unlinked pages are fetched because a hub or a ping named them, and a quiet page as often as promised."""
    port: Future[int] = Future()
    with Hub(calls_port=port) as hub:
        pages = {
            f"{HOME}/": page("News", "of the day", {"/still": "a quiet page", "/feed.xml": "the feed"}),
            FEED: Leaf(atom(hub.url), headers=ATOM),
            LATE: page("Late", "a page that only the hub knows"),
            PINGED: page("Pinged", "a page that only a ping names"),
            STILL: page("Still", "nothing ever changes here"),
            f"{HOME}/{KEY}.txt": Leaf(KEY, headers=(("Content-Type", "text/plain"),)),
        }
        with small_web(pages) as web, up(web, tmp_path, f"{HOME}/", serve='public_url = "http://us.test"') as running:
            port.set_result(running.port)
            patiently(lambda: bool(hub.readers))
            assert hub.publish(FEED, atom(hub.url, LATE).encode()) == [202]
            patiently(lambda: web.visited(LATE))

            def pinged(key: str) -> int:
                return running.get(f"/indexnow?{urlencode({'url': PINGED, 'key': key})}").status

            assert pinged("a-wrong-key") == pinged(KEY) == 202
            patiently(lambda: web.visited(PINGED))
            patiently(lambda: pinged("a-wrong-key") == 403 and pinged(KEY) == 200)
            assert running.get("/push/guessed?hub.mode=subscribe&hub.challenge=x").status == 404

            before = len(web.visited(STILL))
            running.vedette("sites", "set", f"{HOME}/", "promise=/still=2s")
            patiently(lambda: len(web.visited(STILL)) >= before + 3)
            assert "promised" in running.vedette("explain", STILL)
