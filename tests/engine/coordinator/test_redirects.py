"""Redirects that browsers follow, and dead ends."""

from itertools import count

from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, Server, moved, page, rules_for

from vedette.model import Site

START = "https://a.test/"
WALL = "https://a.test/wall"


def wall(location: str, *, passes_after: int, cookie: str = "seen={}; Path=/; Secure") -> Server:
    """Return a page that sets a cookie and redirects this many times before it responds."""
    number = count()

    def serve(_now_s: float) -> Reply:
        turn = next(number)
        if turn >= passes_after:
            return page(title="Inside")
        return Reply(302, (("location", location), ("set-cookie", cookie.format(turn))))

    return serve


def cookies_sent(drive: Drive) -> list[tuple[str, str]]:
    """Return the cookie of each request for the page."""
    pages = [asked for asked in drive.log if asked.purpose == "page"]
    return [(asked.url.removeprefix(START), dict(asked.headers).get("cookie", "")) for asked in pages]


def test_a_page_that_sets_a_cookie_and_leads_to_itself_is_read() -> None:
    """The cookie is only sent back in this redirect chain, and the target is stored."""
    replies: dict[str, Served | Server] = {
        START: page("/wall", "/other"),
        WALL: wall("/wall?PHPSESSID=1", passes_after=1),
        f"{START}other": page(),
    }
    drive = Drive(MemoryWeb(replies), rules_for(START)).begin().run()
    assert sorted(cookies_sent(drive)) == [("", ""), ("other", ""), ("wall", ""), ("wall", "seen=0")]
    assert (drive.pages()[WALL].title, drive.given_up()) == ("Inside", {})


def test_a_page_that_checks_the_cookie_leads_back() -> None:
    """A chain through another page of the host keeps the cookies of all its redirects."""
    check = f"{START}check"
    replies: dict[str, Served | Server] = {
        START: page("/wall"),
        WALL: wall("/check", passes_after=1),
        check: Reply(302, (("location", "/wall"), ("set-cookie", "checked=1"))),
    }
    drive = Drive(MemoryWeb(replies), rules_for(START)).begin().run()
    assert cookies_sent(drive)[1:] == [("wall", ""), ("check", "seen=0"), ("wall", "seen=0; checked=1")]
    assert drive.pages()[WALL].title == "Inside"


def test_an_endless_cookie_wall_is_reported() -> None:
    """It is given up soon, with a reason; without a cookie, it counts as a redirect loop."""
    replies: dict[str, Served | Server] = {
        START: page("/wall", "/more", "/circle"),
        WALL: wall("/wall", passes_after=99, cookie="a=1"),
        f"{START}more": wall("/more", passes_after=99),
        f"{START}circle": moved("/circle"),
    }
    drive = Drive(MemoryWeb(replies), rules_for(START)).begin().run()
    asked = [path for path, _ in cookies_sent(drive)]
    assert (asked.count("wall"), asked.count("more"), asked.count("circle")) == (2, 6, 1)
    why = {url.removeprefix(START): why for url, why in drive.given_up().items()}
    assert why["wall"].startswith("a cookie wall: it redirects to itself")
    assert why["more"] == "more than 5 redirects, perhaps a cookie wall"
    assert why["circle"] == "it redirects to itself"


def test_cookies_stay_on_their_host() -> None:
    """A redirect to another host of the site takes no cookies along, and cookies for another domain are ignored."""
    replies: dict[str, Served | Server] = {
        START: Reply(302, (("location", "https://b.a.test/"), ("set-cookie", "a=1; Domain=a.test"))),
        "https://b.a.test/": Reply(302, (("location", "/in"), ("set-cookie", "b=1; Domain=other.test"))),
        "https://b.a.test/in": page(title="In"),
    }
    drive = Drive(MemoryWeb(replies), rules_for(Site(START, scope="domain"))).begin().run()
    assert [cookie for _, cookie in cookies_sent(drive)] == ["", "", ""]
    assert drive.pages()["https://b.a.test/in"].title == "In"
