"""Held-back URLs during a crawl: traps are held back, short pages are not, and nothing for longer than necessary."""

from dataclasses import replace
from itertools import product

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, page, rules_for
from tests.engine.texts import text_of, text_page

from vedette.model import Failure, Site

A = "https://a.test"
PAGES = 250
TRAP = 150
HTML = (("content-type", "text/html"),)


def listed(paths: list[str], text: str = "") -> MemoryWeb:
    """Return a site whose home page links to all others."""
    return MemoryWeb({f"{A}/": text_page(text, *paths)})


def crawled(web: MemoryWeb, site: Site | str = f"{A}/", **settings: object) -> Drive:
    """Crawl the site to its end."""
    return Drive(web, rules_for(site, **settings)).begin().run()


def restarted(before: Drive, site: Site | str = f"{A}/") -> Drive:
    """Return the next run over the same database, with the accounts that a coordinator leaves there."""
    after = Drive(before.web, rules_for(site), start_s=before.now_s, db=before.db)
    old, new = before.keeper.trap_filter.traps, after.keeper.trap_filter.traps
    for name in old.hosts:
        new.from_json(name, old.to_json(name))
    names, robots = after.urls.host_names_with_work(), after.book.load_robots()
    after.keeper.start(names, robots, after.now_s, held=after.book.count_held(), clean=True)
    return after


def stuck(drive: Drive) -> list[str]:
    """List held-back URLs that should be released."""
    keeper = drive.keeper
    return [
        place
        for host in keeper.hosts.values()
        for place in host.held_back
        if keeper.trap_filter.count_releasable(place)
    ]


def month_path(number: int) -> str:
    """Return the path of a month, counted from the year 2000."""
    return f"/calendar/{2000 + number // 12}/{number % 12 + 1}"


def trap_web() -> MemoryWeb:
    """Return a site of rich pages with a calendar far larger than the rest, whose months link to their neighbors."""
    articles = [f"/article/{number}" for number in range(60)]
    web = listed([*articles, month_path(0)], text_of("home", 100))
    web.replies |= {f"{A}{path}": text_page(text_of(path, 400)) for path in articles}
    for number in range(TRAP):
        near = [month_path(other) for other in (number - 1, number + 1) if 0 <= other < TRAP]
        web.replies[A + month_path(number)] = text_page(text_of(f"month {number}", 12), *near)
    return web


def test_a_site_of_short_pages_is_fetched_whole() -> None:
    """Fifteen words per page are few, but if every page is like that, none is a trap."""
    paths = [f"/word/{number}" for number in range(PAGES)]
    web = listed(paths, text_of("home", 15))
    web.replies |= {f"{A}{path}": text_page(text_of(path, 15)) for path in paths}
    drive = crawled(web)
    assert set(drive.asked_urls()) == set(web.replies)
    assert not drive.book.count_held()


def test_a_site_of_one_text_is_not() -> None:
    """Hundreds of URLs with the same text are given up after a few, with a reason that names them."""
    paths = [f"/word/{number}" for number in range(PAGES)]
    web = listed(paths, text_of("home", 15))
    web.replies |= {f"{A}{path}": text_page(text_of("always", 15)) for path in paths}
    drive = crawled(web)
    assert len(drive.asked_urls()) < PAGES / 6
    held = drive.given_up()[f"{A}/word/{PAGES - 1}"]
    assert "repeated known text" in held or "/word/#" in held


def test_a_trap_is_held_back_and_the_site_is_not() -> None:
    """Next to an endless calendar, all articles are fetched, and hardly any of the days."""
    web = trap_web()
    drive = crawled(web)
    asked = drive.asked_urls()
    assert {url for url in web.replies if "/article/" in url} <= set(asked)
    assert 0 < sum("/calendar/" in url for url in asked) < TRAP / 10
    assert stuck(drive) == []


def test_little_is_no_reason_to_give_up() -> None:
    """Short pages next to rich ones wait until nothing else does, and are then all fetched."""
    articles, notes = [f"/article/{number}" for number in range(60)], [f"/note/{number}/1" for number in range(TRAP)]
    web = listed(articles + notes, text_of("home", 100))
    web.replies |= {f"{A}{path}": text_page(text_of(path, 400)) for path in articles}
    web.replies |= {f"{A}{path}": text_page(text_of(path, 12)) for path in notes}
    asked = crawled(web).asked_urls()
    assert set(asked) == set(web.replies)
    assert asked.index(f"{A}/note/{TRAP - 1}/1") > max(asked.index(A + path) for path in articles)


@pytest.mark.parametrize("at", ["https://a.test:8443", "https://b.test"])
def test_urls_of_a_dead_port_or_host_keep_nothing_held_back(at: str) -> None:
    """Unreachable URLs wait for weeks; held-back ones on the same or another host do not wait for them."""
    articles, notes = [f"/article/{number}" for number in range(60)], [f"/note/{number}/1" for number in range(TRAP)]
    web = listed([*articles, *notes, *(f"{at}/{number}" for number in range(90))], text_of("home", 100))
    web.replies |= {f"{A}{path}": text_page(text_of(path, 400)) for path in articles}
    web.replies |= {f"{A}{path}": text_page(text_of(path, 12)) for path in notes}
    alive = set(web.replies)
    web.replies[f"{at}/robots.txt"] = Failure.CONNECT
    drive = Drive(web, rules_for(f"{A}/", "https://b.test/x/")).begin().run(4 * 3600.0)
    assert set(drive.asked_urls()) - {"https://b.test/x/"} == alive
    assert drive.book.count_held() == []
    if at.endswith("8443"):
        ((name, host),) = ((host.name, host) for host in drive.keeper.hosts.values() if host.trouble)
        assert (name, host.trouble.endswith("its other pages are fetched")) == ("a.test", True)


def test_a_reference_that_grows_is_fetched_whole() -> None:
    """Thin pages that differ, each linking to three more, are not a trap, because they come to an end."""
    articles, reference = [f"/article/{number}" for number in range(40)], [f"/api/html/{at}.htm" for at in range(200)]
    web = listed([*articles, reference[0]], text_of("home", 100))
    web.replies |= {f"{A}{path}": text_page(text_of(path, 400)) for path in articles}
    for at, path in enumerate(reference):
        web.replies[A + path] = text_page(text_of(path, 20), *reference[3 * at + 1 : 3 * at + 4])
    assert set(crawled(web).asked_urls()) == set(web.replies)


def test_a_manual_in_many_versions_and_languages_is_fetched_whole() -> None:
    """If most pages are the same in all versions, and each links to all others of its version, that isn't a trap."""
    versions = [f"app-{number}.0" for number in range(3, 9)] + ["latest"]
    editions = [f"/{version}{language}" for version in versions for language in ("", "/pt", "/es")]
    web = listed([f"{edition}/topics/a1.html" for edition in editions], text_of("home", 100))
    for edition in editions:
        topics = [f"{edition}/topics/a{number}.html" for number in range(12)]
        web.replies |= {A + path: text_page(text_of(path.rpartition("/")[2], 200), *topics) for path in topics}
    assert set(crawled(web).asked_urls()) == set(web.replies)


@pytest.mark.parametrize("copies", [30, 4])
@pytest.mark.parametrize("folder", ["/guide/", "/guide/of-an-older-release/"])
def test_a_release_with_renamed_pages_is_fetched_whole(folder: str, copies: int) -> None:
    """Its first page links to all others, and the first of these are renamed copies: that is not a trap."""
    articles = [f"/article/{number}" for number in range(200)]
    names = [f"{folder}{letter}{other}" for letter in "abcdef" for other in "uvwxyz"]
    web = listed([*articles, names[0]], text_of("home", 100))
    web.replies |= {f"{A}{path}": text_page(text_of(path, 400)) for path in articles}
    for at, path in enumerate(names):
        text = text_of(articles[at] if at < copies else path, 400)
        web.replies[A + path] = text_page(text, *names)
    drive = crawled(web)
    assert set(drive.asked_urls()) == set(web.replies)
    assert stuck(drive) == []


def test_copies_that_lead_to_more_copies_are_left() -> None:
    """A maze of folders whose pages repeat those of the site is given up, even if the host has wasted little so far."""
    articles = [f"/article/{number}" for number in range(400)]
    web = listed([*articles, "/maze/of-copies/a"], text_of("home", 100))
    web.replies |= {f"{A}{path}": text_page(text_of(path, 400)) for path in articles}
    names = ["".join(letters) for letters in product("abcd", repeat=5)]
    for at, name in enumerate(names):
        ahead = [f"/maze/of-copies/{names[next_]}" for next_ in (2 * at + 1, 2 * at + 2) if next_ < len(names)]
        web.replies[f"{A}/maze/of-copies/{name}"] = text_page(text_of(articles[at % 400], 400), *ahead)
    web.replies[f"{A}/maze/of-copies/a"] = text_page(text_of("maze", 400), f"/maze/of-copies/{names[0]}")
    assert 4 < sum("/maze/" in url for url in crawled(web).asked_urls()) < 64


def test_held_back_urls_wait_under_a_budget() -> None:
    """With a budget, held-back URLs wait; the operator sees how many there are, and can release them."""
    web = listed([f"/note/{number}/1" for number in range(TRAP)] + ["/article"], text_of("home", 400))
    web.replies[f"{A}/article"] = text_page(text_of("article", 400))
    web.replies |= {f"{A}/note/{number}/1": text_page(text_of(f"note {number}", 12)) for number in range(TRAP)}
    assert crawled(web, budget_per_s=1.0).book.count_held()


@pytest.mark.parametrize("differ_by", ["title", "numbers", "one number"])
def test_pages_that_differ_in_numbers_only_are_pages(differ_by: str) -> None:
    """Rooms with a number in the title or text, and tables of measurements under one title, are all fetched."""
    paths = [f"/room/{number}" for number in range(80)]
    web = listed(paths, text_of("home", 200))
    for number, path in enumerate(paths):
        title = f"Room {number}" if differ_by == "title" else "Measurements"
        rows = " ".join(f"hour {hour} {(number * 24 + hour) * 7919 % 9973}" for hour in range(24))
        text = rows if differ_by == "numbers" else text_of("room", 60) + f" {number}" * (differ_by == "one number")
        web.replies[A + path] = Reply(200, HTML, f"<title>{title}</title><h1>{title}</h1><p>{text}</p>".encode())
    assert set(crawled(web).asked_urls()) == set(web.replies)


def test_images_and_dead_links_do_not_count_as_a_trap() -> None:
    """A hundred images and dead links around a page add no debt: its neighbors are fetched."""
    images = [f"/image/{number}.png" for number in range(50)]
    paths = [f"/photo/{number}" for number in range(50)]
    web = listed([*images, *(f"/gone/{number}" for number in range(50)), *paths], text_of("home", 300))
    web.replies |= {A + path: Reply(200, (("content-type", "image/png"),), b"\x89PNG") for path in images}
    web.replies |= {A + path: text_page(text_of(path, 12)) for path in paths}
    assert set(web.replies) <= set(crawled(web).asked_urls())


def test_many_at_once_are_no_reason_to_give_up() -> None:
    """At first, only some URLs of an unknown pattern are requested; the rest follow once those yielded something."""
    paths = [f"/{name}/{number}" for name in ("a", "b", "c", "d") for number in range(30)]
    web = listed(paths, text_of("home", 300))
    web.replies |= {f"{A}{path}": text_page(text_of(path, 300)) for path in paths}
    drive = crawled(web, delay_s=0.01)
    assert set(drive.asked_urls()) == set(web.replies)
    assert not drive.book.count_held()


def test_failures_release_held_back_urls() -> None:
    """Requests without a result prove nothing, so URLs held back behind them are requested."""
    broken, good = [f"/item/{number}" for number in range(20)], [f"/item/{number}" for number in range(20, 40)]
    web = listed(broken + good, text_of("home", 300))
    web.replies |= {f"{A}{path}": Failure.TOO_LARGE for path in broken}
    web.replies |= {f"{A}{path}": text_page(text_of(path, 300)) for path in good}
    drive = crawled(web)
    assert {f"{A}{path}" for path in good} <= set(drive.pages())
    assert stuck(drive) == []


def test_held_back_urls_survive_a_restart() -> None:
    """The next run requests nothing that was held back before, and still knows why."""
    first = crawled(trap_web())
    held = sorted(first.book.count_held())
    assert held
    second = restarted(first).run()
    assert second.asked_urls() == []
    assert sorted(second.book.count_held()) == held


def test_overruling_a_trap_in_a_later_run_releases_its_urls() -> None:
    """If the operator overrules the judgment, the whole calendar is fetched, each page once."""
    web = trap_web()
    first = crawled(web)
    second = restarted(first, Site(f"{A}/", overrule=("trap",))).run()
    assert set(first.asked_urls()) | set(second.asked_urls()) == set(web.replies)
    assert not set(first.asked_urls()) & set(second.asked_urls())
    assert not second.book.count_held()


def test_overruling_a_trap_during_a_run_releases_its_urls() -> None:
    """The same while the coordinator runs."""
    web = trap_web()
    drive = crawled(web)
    drive.rule(replace(drive.rules, sites=(Site(f"{A}/", overrule=("trap",)),)))
    drive.run()
    assert set(drive.asked_urls()) == set(web.replies)
    assert not drive.book.count_held()


def test_an_overruled_trap_is_crawled_from_the_start() -> None:
    """If the operator overruled it before the crawl, everything is fetched."""
    web = trap_web()
    drive = crawled(web, Site(f"{A}/", overrule=("trap",)))
    assert set(drive.asked_urls()) == set(web.replies)


def test_a_requested_page_is_fetched_even_if_it_resembles_a_trap() -> None:
    """A requested URL is fetched although similar ones are held back."""
    drive = crawled(trap_web())
    wanted = A + month_path(TRAP - 1)
    assert wanted not in drive.asked_urls()
    drive.keeper.request_urls([wanted], drive.now_s)
    assert wanted in drive.run().asked_urls()


def test_pages_without_text_are_no_copies_of_each_other() -> None:
    """A chain of pages with only a link is followed for a while, because it may lead to something."""
    web = MemoryWeb({f"{A}/": page("/1")})
    web.replies |= {f"{A}/{number}": page(f"/{number + 1}") for number in range(1, 20)}
    web.replies[f"{A}/20"] = text_page(text_of("at last", 300))
    assert f"{A}/20" in crawled(web).pages()


def test_a_named_host_keeps_its_credit_after_a_crash() -> None:
    """If a crash loses the accounts, a host that the operator named keeps its credit."""
    paths = [f"/note/{number}" for number in range(60)]
    web = MemoryWeb({f"{A}/": text_page(text_of("home", 40), *paths)})
    web.replies |= {A + path: text_page(text_of(path, 15)) for path in paths}
    drive = Drive(web, rules_for(f"{A}/")).begin().run(for_s=10.0)
    assert 0 < len(drive.pages()) < len(paths)
    assert set(drive.after(clean=False).run().pages()) == set(web.replies)
