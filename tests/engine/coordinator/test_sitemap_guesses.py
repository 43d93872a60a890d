"""Sitemaps from robots.txt, from a site's settings, and guessed ones."""

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, moved, page, robots, rules_for

from vedette.model import Site

START = "https://a.test/"


def sitemap(*paths: str) -> Reply:
    """A sitemap with these pages."""
    listed = "".join(f"<url><loc>{path}</loc></url>" for path in paths)
    return Reply(200, (("content-type", "application/xml"),), f"<urlset>{listed}</urlset>".encode())


def crawl(replies: dict[str, Reply], site: Site | str = START, *, guess: bool = True) -> Drive:
    """Return a crawl of a site with these replies."""
    return Drive(MemoryWeb({START: page(), **replies}), rules_for(site, guess_sitemaps=guess)).begin().run()


def test_a_sitemap_in_its_usual_place_is_found() -> None:
    """Guesses are made if robots.txt names no sitemap; one hit is enough."""
    drive = crawl({f"{START}sitemap.xml": sitemap("/hidden"), f"{START}hidden": page(title="Hidden")})
    assert drive.pages()[f"{START}hidden"].title == "Hidden"
    assert f"{START}sitemap_index.xml" not in drive.asked_urls()


def test_a_guess_that_misses_is_no_page() -> None:
    """Both locations are tried once; a miss stores nothing, isn't a failure, and has a reason."""
    drive = crawl({f"{START}sitemap.xml": page(title="Oops, nothing here")})
    assert sorted(drive.asked_urls()) == [START, f"{START}sitemap.xml", f"{START}sitemap_index.xml"]
    assert list(drive.pages()) == [START]
    assert (drive.keeper.tally.failures, drive.keeper.tally.refusals, drive.keeper.tally.statuses) == ({}, {}, {200: 1})
    assert drive.keeper.tally.requests == 4
    hosts = [each.keeper.trap_filter.traps.hosts["a.test"] for each in (drive, crawl({}, guess=False))]
    assert hosts[0].debt == hosts[1].debt
    assert hosts[0].fetched == hosts[1].fetched
    assert drive.given_up()[f"{START}sitemap_index.xml"] == "no sitemap in this usual place: status 404"
    again = drive.after(clean=True).run()
    assert again.asked_urls() == []


def test_one_guess_for_both_schemes() -> None:
    """A host that redirects from http to https is requested once, and the redirect is followed."""
    plain = "http://a.test/"
    replies = {
        plain: moved(START),
        f"{plain}robots.txt": moved(f"{START}robots.txt"),
        f"{plain}sitemap.xml": moved(f"{START}sitemap.xml"),
        f"{START}sitemap.xml": moved("/wp-sitemap.xml"),
        f"{START}wp-sitemap.xml": sitemap("/hidden"),
        f"{START}hidden": page(),
    }
    drive = crawl(replies, Site(plain))
    assert f"{START}hidden" in drive.pages()
    assert len([url for url in drive.asked_urls() if "sitemap_index" in url]) == 0


def test_an_unknown_host_of_a_domain_has_to_prove_itself_first() -> None:
    """Otherwise a farm of hosts would cost endless guesses; the www twin of a start URL counts as known."""
    replies = {
        START: page("https://farm.a.test/", "https://www.a.test/"),
        "https://farm.a.test/": page(),
        "https://www.a.test/": page(),
    }
    asked = crawl(replies, Site(START, scope="domain")).asked_urls()
    guessed = [url for url in asked if "sitemap" in url]
    assert sorted(guessed) == sorted(
        f"https://{host}/{name}.xml" for host in ("a.test", "www.a.test") for name in ("sitemap", "sitemap_index")
    )


@pytest.mark.parametrize("line", ["/maps/all.xml", "maps/all.xml", f"{START}maps/all.xml"])
def test_a_sitemap_line_may_be_relative(line: str) -> None:
    """It counts like one with the host, and nothing else is guessed."""
    replies = {
        f"{START}robots.txt": robots(f"Sitemap: {line}"),
        f"{START}maps/all.xml": sitemap("/hidden"),
        f"{START}hidden": page(),
    }
    assert sorted(crawl(replies).asked_urls()) == [START, f"{START}hidden", f"{START}maps/all.xml"]


def test_a_site_names_its_sitemaps() -> None:
    """Sitemaps may be anywhere; listed pages are added if they belong to the site, and nothing is guessed."""
    there = "https://maps.test/a.xml"
    site = Site(f"{START}docs/", scope="prefix", sitemap=("/all.xml", there))
    replies = {
        f"{START}docs/": page(),
        f"{START}all.xml": sitemap("/docs/hidden", "/other"),
        there: sitemap(f"{START}docs/far", "https://maps.test/b"),
        f"{START}docs/hidden": page(),
        f"{START}docs/far": page(),
    }
    asked = crawl(replies, site).asked_urls()
    assert sorted(asked) == sorted([there, *(START + path for path in ("all.xml", "docs/", "docs/far", "docs/hidden"))])


def test_a_guess_that_missed_can_be_named_later() -> None:
    """If the operator names a sitemap, it is fetched after all."""
    drive = crawl({})
    drive.web.replies |= {f"{START}sitemap.xml": sitemap("/late"), f"{START}late": page()}
    drive.rule(rules_for(Site(START, sitemap=("/sitemap.xml",)), guess_sitemaps=True))
    assert f"{START}late" in drive.run().pages()


def test_guessing_can_be_turned_off() -> None:
    """The operator can turn off guesses."""
    assert crawl({}, guess=False).asked_urls() == [START]
