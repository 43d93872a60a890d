"""Copies during a crawl: they are grouped, one represents them, and irrelevant parameters are learned."""

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, moved, robots, rules_for
from tests.engine.texts import text_of, text_page

from vedette.adapters.crawl_store.minhash_bands import BandTable
from vedette.engine.coordinator.duplicates import DuplicateDetector
from vedette.model import Site, origin_of

A = "https://a.test"
ITEMS = 40


def crawled(web: MemoryWeb, *sites: Site | str) -> Drive:
    """Crawl these sites to the end."""
    return Drive(web, rules_for(*(sites or (f"{A}/",)))).begin().run()


def chosen(drive: Drive, url: str) -> tuple[str, str, int]:
    """Return the canonical page of a page's group, the reason, and the group's size."""
    sql = (
        "SELECT canonical.url, why, members FROM copies JOIN content ON content.grp = copies.grp "
        "JOIN url ON url.id = content.id JOIN url AS canonical ON canonical.id = copies.canonical WHERE url.url = ?"
    )
    (row,) = drive.db.execute(sql, (url,)).fetchall()
    return row  # type: ignore[no-any-return]  # what SQLite has is only known when it runs


def spelled_shop() -> MemoryWeb:
    """Return items that each link to the next two, every time with an irrelevant parameter."""
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 50), *(f"/item/{n}?from=home" for n in range(3)))})
    for number in range(ITEMS):
        links = [f"/item/{(number + step) % ITEMS}?from={number}" for step in (1, 2)]
        for source in ("home", *map(str, range(ITEMS))):
            web.replies[f"{A}/item/{number}?from={source}"] = text_page(text_of(number, 200), *links)
        web.replies[f"{A}/item/{number}"] = text_page(text_of(number, 200), *links)
    return web


def items_asked(drive: Drive) -> list[str]:
    """List the requested items in order, with repetitions."""
    return [url.partition("?")[0] for url in drive.asked_urls() if "/item/" in url]


def test_copies_are_one_group_and_the_choice_is_explained() -> None:
    """Of three URLs with one text, the one the others declare is canonical, and the store says why."""
    text = text_of("same", 200)
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 90), "/copy/1", "/original", "/copy/2")})
    web.replies |= {
        f"{A}{path}": text_page(text, canonical="/original") for path in ("/copy/1", "/original", "/copy/2")
    }
    drive = crawled(web)
    for path in ("/copy/1", "/original", "/copy/2"):
        canonical, why, members = chosen(drive, A + path)
        assert (canonical, members) == (f"{A}/original", 3)
        assert "canonical" in why


@pytest.mark.parametrize("answer", [Reply(404), moved(f"{A}/elsewhere"), robots("Disallow: /original")])
def test_another_copy_becomes_canonical_when_the_first_is_gone(answer: Reply) -> None:
    """If the canonical page is gone, moved or disallowed, one of the remaining copies becomes canonical."""
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 90), "/copy/1", "/original", "/copy/2")})
    for path in ("/copy/1", "/original", "/copy/2"):
        web.replies[A + path] = text_page(text_of("same", 200), canonical="/original")
    drive = Drive(web, rules_for(f"{A}/", recrawl=True)).begin().run(3600.0)
    assert chosen(drive, f"{A}/copy/1")[0] == f"{A}/original"
    is_rule = answer.body.startswith(b"User-agent")
    web.replies[f"{A}/robots.txt" if is_rule else f"{A}/original"] = answer
    queued = drive.db.execute("SELECT max(seq) FROM news").fetchone()[0]
    if is_rule:
        drive.keeper.request_robots(origin_of(A + "/"))
    else:
        drive.keeper.request_urls([f"{A}/original"], drive.now_s)
    drive.run(600.0)
    assert chosen(drive, f"{A}/copy/1")[::2] == (chosen(drive, f"{A}/copy/2")[0], 2)
    assert chosen(drive, f"{A}/copy/1")[0] != f"{A}/original"
    sql = "SELECT url FROM news JOIN url ON url.id = page WHERE seq > ?"
    assert chosen(drive, f"{A}/copy/1")[0] in {url for (url,) in drive.db.execute(sql, (queued,))}


def test_a_page_that_is_almost_the_same_is_a_copy_and_another_one_is_not() -> None:
    """A page with one changed word is still a copy; one with a different text isn't."""
    words = text_of("long", 300).split()
    words[100] = "exchanged"
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 90), "/one", "/two", "/three")})
    web.replies |= {f"{A}/one": text_page(text_of("long", 300)), f"{A}/two": text_page(" ".join(words))}
    web.replies[f"{A}/three"] = text_page(text_of("other", 300))
    drive = crawled(web)
    groups = dict(drive.db.execute("SELECT url, grp FROM content JOIN url ON url.id = content.id").fetchall())
    assert groups[f"{A}/one"] == groups[f"{A}/two"] != groups[f"{A}/three"]


def groups_of(web: MemoryWeb) -> dict[str, int]:
    """Return the group of each page of a site, by path."""
    rows = crawled(web).db.execute("SELECT url, grp FROM content JOIN url ON url.id = content.id").fetchall()
    return {url.removeprefix(A): group for url, group in rows}


def titled(title: str, text: str) -> Reply:
    """Return a page with a title and a heading."""
    body = f"<title>{title}</title><main><h1>{title}</h1><p>{text}</p></main>"
    return Reply(200, (("content-type", "text/html"),), body.encode())


def test_pages_with_different_numbers_are_no_copies() -> None:
    """Room 1 and Room 2 are different pages, another URL of room 2 is a copy; two versions of a manual are copies."""
    paths = ["/room/1", "/room/2", "/again/room/2", "/docs/1.2/x", "/docs/1.3/x"]
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 90), *paths)})
    for path in paths:
        text = text_of("docs" if "docs" in path else "room", 120)
        web.replies[A + path] = titled(f"Guide to {path.split('/')[2]}" if "docs" in path else f"Room {path[-1]}", text)
    found = groups_of(web)
    assert found["/room/1"] != found["/room/2"] == found["/again/room/2"]
    assert found["/docs/1.2/x"] == found["/docs/1.3/x"]


def test_copies_in_one_report_find_each_other() -> None:
    """Pages reported at the same moment are compared with one another, too."""
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 300), *(f"/{name}" for name in "abcdef"))})
    web.replies |= {f"{A}/{name}": text_page(text_of("same", 300)) for name in "abcdef"}
    drive = crawled(web, Site(f"{A}/", overrule=("trap",), delay_s=0.001))
    assert chosen(drive, f"{A}/f")[2] == len("abcdef")


def test_a_parameter_that_makes_copies_is_learned() -> None:
    """After some pairs, its other spellings aren't requested, every item still is, and a reason is recorded."""
    drive = crawled(spelled_shop())
    asked = items_asked(drive)
    assert set(asked) == {f"{A}/item/{number}" for number in range(ITEMS)}
    assert len(asked) < 1.5 * ITEMS
    assert "from= is dropped" in " ".join(drive.given_up().values())


def test_an_operator_can_overrule_learned_copies() -> None:
    """If copies and traps are overruled, nothing is skipped."""
    drive = crawled(spelled_shop(), Site(f"{A}/", overrule=("copy", "trap")))
    assert len(items_asked(drive)) > 1.9 * ITEMS
    assert drive.given_up() == {}


def test_a_mirror_is_learned() -> None:
    """A second host of the same domain with the same pages is requested a few times, and then no more.

    Traps are overruled here: they would hold the mirror back before it was learned.
    """
    first, second = "https://www.shop.test", "https://mirror.shop.test"
    web = MemoryWeb({f"{host}/": text_page(text_of("home", 300), "/item/0") for host in (first, second)})
    for number in range(ITEMS):
        links = [f"{host}/item/{number + 1}" for host in (first, second)]
        web.replies |= {f"{host}/item/{number}": text_page(text_of(number, 200), *links) for host in (first, second)}
    drive = crawled(web, *(Site(f"{host}/", overrule=("trap",)) for host in (first, second)))
    asked = [url for url in drive.asked_urls() if "/item/" in url]
    assert {url.rpartition("/")[2] for url in asked} >= {str(number) for number in range(ITEMS)}
    assert len(asked) < 1.5 * ITEMS
    assert [rule.subject.kind for rule in drive.keeper.copies.copy_rules.rules] == ["origin"]


def test_a_rule_is_dropped_when_a_check_fails() -> None:
    """Once the parameter matters, fetches of covered URLs reveal it, and the rule is dropped."""
    web = spelled_shop()
    drive = crawled(web)
    assert drive.keeper.copies.copy_rules.apply(f"{A}/item/7?from=x")[1] is not None
    later = [f"{A}/item/{number}?from=later" for number in range(0, ITEMS, 4)]
    web.replies |= {url: text_page(text_of(url, 200)) for url in later}
    drive.keeper.request_urls(later, drive.now_s)
    drive.run()
    assert set(later) <= set(drive.asked_urls())
    assert drive.keeper.copies.copy_rules.apply(f"{A}/item/7?from=x") == (f"{A}/item/7?from=x", None)
    assert drive.keeper.copies.has_new_rules


def test_learned_rules_survive_a_restart() -> None:
    """Rules are stored as text: a coordinator that loads them applies the same rules."""
    before = crawled(spelled_shop())
    after = DuplicateDetector(
        BandTable(None, before.urls.secret), before.book, before.urls, before.keeper.copies.lessons.to_json()
    )
    assert after.copy_rules.apply(f"{A}/item/7?from=x")[0] == f"{A}/item/7"


def test_a_group_survives_the_loss_of_its_first_page() -> None:
    """If the first of several copies changes, the others stay a group without it."""
    story, other = text_page(text_of("story", 200)), text_page(text_of("other", 200))
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 90), "/a", "/b", "/c"), f"{A}/b": story, f"{A}/c": story})
    web.replies[f"{A}/a"] = lambda now_s: story if now_s < 2000.0 else other
    drive = Drive(web, rules_for(f"{A}/", recrawl=True)).begin()
    drive.run(for_s=900.0)
    ids = dict(zip("abc", drive.urls.find_ids([f"{A}/{name}" for name in "abc"]).tolist(), strict=True))
    first = {name: drive.book.get_contents([id_])[id_].group for name, id_ in ids.items()}
    assert len(set(first.values())) == 1
    drive.run(for_s=40 * 86_400.0, until=lambda: drive.asked_urls().count(f"{A}/a") > 1)
    drive.run(for_s=60.0)
    later = {name: drive.book.get_contents([id_])[id_].group for name, id_ in ids.items()}
    assert later["b"] == later["c"] != later["a"] == ids["a"]
    assert drive.book.get_canonical(later["b"]) in {ids["b"], ids["c"]}


def test_framesets_that_differ_in_their_query_only_are_one_page() -> None:
    """Old Javadoc lists every page again as a query of one frameset; after a few, the rest count as copies."""
    pages = [f"/api/org/Class{number}.html" for number in range(150)]
    frames = [f"/api/index.html?{path.removeprefix('/api/')}" for path in pages]
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 100), *pages)})
    web.replies |= {A + path: text_page(text_of(path, 60), frame) for path, frame in zip(pages, frames, strict=True)}
    frameset = b'<title>API</title><frameset><frame src="org/Class0.html"></frameset>'
    web.replies |= {A + frame: Reply(200, (("content-type", "text/html"),), frameset) for frame in frames}
    drive = Drive(web, rules_for(f"{A}/")).begin().run()
    asked = drive.asked_urls()
    assert {A + path for path in pages} <= set(asked)
    assert sum("?" in url for url in asked) < 12
    assert sum("the whole query is dropped below /api/" in why for why in drive.given_up().values()) > 120


def test_few_http_twins_go_out_before_they_are_known_to_be_copies() -> None:
    """A page that links to both spellings of a site adds it once, even within one batch."""
    paths = [f"/page-{number}" for number in range(60)]
    twins = [f"http://a.test{path}" for path in paths]
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 100), *paths, *twins)})
    web.replies |= {
        f"{origin}{path}": text_page(text_of(path, 60)) for path in paths for origin in (A, "http://a.test")
    }
    asked = Drive(web, rules_for(f"{A}/", delay_s=0.0, address_delay_s=0.0)).begin().run().asked_urls()
    assert {A + path for path in paths} <= set(asked)
    assert sum(url in twins for url in asked) < 10


def test_https_goes_first_where_a_host_serves_both() -> None:
    """If http links are found before https links, a few fetches are wasted, not a second crawl of the site."""
    paths, hubs = ([f"/{name}-{number}" for number in range(count)] for name, count in (("page", 120), ("hub", 30)))
    twins = [f"http://a.test{path}" for path in paths]
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 100), *twins, *hubs)})
    web.replies |= {A + hub: text_page(text_of(hub, 100), *paths[at :: len(hubs)]) for at, hub in enumerate(hubs)}
    web.replies |= {
        f"{origin}{path}": text_page(text_of(path, 60)) for path in paths for origin in (A, "http://a.test")
    }
    asked = Drive(web, rules_for(f"{A}/")).begin().run().asked_urls()
    assert {A + path for path in paths} <= set(asked)
    assert sum(url in twins for url in asked) < 20


def test_of_two_spellings_with_and_without_an_ending_one_is_fetched() -> None:
    """Once a few pairs were the same page, URLs with the ending wait, and are skipped."""
    bare = [f"/doc-{number}" for number in range(100)]
    ended = [f"{path}.html" for path in bare]
    web = _ending_web(bare, ended)
    drive = Drive(web, rules_for(f"{A}/")).begin().run()
    asked = set(drive.asked_urls())
    assert all({A + one, A + other} & asked for one, other in zip(bare, ended, strict=True))
    assert len(asked) < 130
    assert sum(".html makes no difference" in why for why in drive.given_up().values()) > 70


def test_no_page_is_lost_where_only_one_spelling_leads_to_it() -> None:
    """If one spelling is missing or redirects to a folder of the same name, the other is fetched."""
    bare = [f"/doc-{number}" for number in range(100)]
    ended = [f"{path}.html" for path in bare]
    web = _ending_web(bare, ended)
    for path in bare[40:60]:
        web.replies[A + path] = Reply(301, (("location", f"{path}/"),))
        web.replies[f"{A}{path}/"] = text_page(text_of(f"folder {path}", 60))
    web.replies |= {A + path: Reply(404) for path in (*bare[60:80], *ended[80:])}
    drive = Drive(web, rules_for(f"{A}/")).begin().run()
    needed = {A + path for path in (*ended[40:80], *bare[80:])} | {f"{A}{path}/" for path in bare[40:60]}
    assert needed <= drive.pages().keys()


def test_the_other_spelling_is_fetched_when_the_first_is_gone() -> None:
    """A page that moves to the spelling that was skipped is found there."""
    bare = [f"/doc-{number}" for number in range(30)]
    ended = [f"{path}.html" for path in bare]
    web = _ending_web(bare, ended)
    drive = Drive(web, rules_for(f"{A}/", recrawl=True)).begin()
    drive.run(for_s=3600.0)
    skipped = {url for url, why in drive.given_up().items() if ".html makes no difference" in why}
    assert len(skipped) > 10
    web.replies |= {url.removesuffix(".html"): Reply(404) for url in skipped}
    drive.run(for_s=60 * 86_400.0, until=lambda: bool(skipped & drive.pages().keys()))
    assert skipped & drive.pages().keys()


def _ending_web(bare: list[str], ended: list[str]) -> MemoryWeb:
    """Return a site whose pages have two URLs, with and without an ending, linked in varying order."""
    links = [path for at, pair in enumerate(zip(bare, ended, strict=True)) for path in pair[:: 1 if at % 2 else -1]]
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 100), *links)})
    web.replies |= {
        A + path: text_page(text_of(one, 60)) for one, other in zip(bare, ended, strict=True) for path in (one, other)
    }
    return web
