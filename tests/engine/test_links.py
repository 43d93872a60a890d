"""Links are cached by their absolute text; the cache must not change their targets."""

from hypothesis import given
from hypothesis import strategies as st

from vedette.discover.urls.normalize import normalize, resolve
from vedette.discover.urls.scope import SiteIndex
from vedette.engine import links as links_module
from vedette.engine.links import LinkResolver
from vedette.model import Site

SITES = SiteIndex(
    [Site("https://a.test/"), Site("http://b.test/x/", scope="prefix"), Site("https://c.test/", scope="domain")]
)
BASES = (
    "https://a.test/",
    "https://a.test/q/w?x=/y/",
    "http://b.test/x/y",
    "https://c.test:444/a/b/c/",
    "http://[::1]/",
    "https://a.test/a;jsessionid=1/b",
)
BEGINNINGS = (
    *("http://a.test", "https://a.test/", "//b.test/", "/", "/x/", "../", "./", "?", "#", "https://c.test:8/"),
    *("HTTPS://A.test/", "https:/a.test/", "https:a", "/\\", "/\t/", "mailto:", ""),
)

ends = st.text("abAZ/:?#.\\ \t\n%2e&=@;-_~!é[]|0<\x00\x0b'", max_size=14)
hrefs = st.builds(lambda beginning, end: beginning + end, st.sampled_from(BEGINNINGS), ends)


def followed(href: str, base: str) -> str | None:
    """Resolve one link without the cache."""
    url = resolve(href, base)
    site = SITES.find_site(url) if url is not None else None
    return normalize(url, site) if site is not None and url is not None else None


@given(st.lists(hrefs, max_size=4), st.sampled_from(BASES))
def test_cached_links_resolve_to_the_same_urls(found: list[str], base: str) -> None:
    """Neither the fast path for absolute URLs nor the cache changes where a link leads."""
    links = LinkResolver(SITES)
    expected = [followed(href, base) for href in found]
    assert links.resolve_each(found, base) == expected
    assert links.resolve_each(found, base) == expected


def test_the_memory_is_bounded() -> None:
    """Whatever pages link to, no more than two halves of texts are kept, and no text that is very long."""
    links = LinkResolver(SITES)
    half = links_module.CACHE_HALF
    links.resolve_each((f"/{number}" for number in range(3 * half)), "https://a.test/")
    links.resolve_each(["/" + "x" * 100_000], "https://a.test/")
    kept = [*links._young, *links._old]
    assert len(kept) <= 2 * half
    assert max(map(len, kept)) < 1000
