"""The scope of a site, and the ways to specify a site."""

from typing import cast

import pytest

from vedette.discover.urls.scope import MAX_URL_BYTES, SiteIndex, check_scope, find_refusal, find_site, read_site
from vedette.errors import SiteError
from vedette.model import Refusal, ScopeKind, Site


@pytest.mark.parametrize(
    ("scope", "start", "url"),
    [
        ("prefix", "https://example.org/docs/", "https://example.org/docs/a/b?c"),
        ("prefix", "https://example.org/docs/index.html?x=/y/", "https://example.org/docs/other"),
        ("prefix", "https://example.org/docs/", "https://user:word@example.org/docs/"),
        ("host", "https://example.org/docs/", "http://example.org:8080/"),
        ("host", "http://[::1]:8080/", "http://[::1]/a"),
        ("domain", "https://www.bbc.co.uk/", "https://news.bbc.co.uk/a"),
        ("domain", "https://www.bbc.co.uk/", "http://bbc.co.uk:81/"),
        ("domain", "http://192.0.2.1/", "http://192.0.2.1:8080/"),
        ("domain", "http://localhost:8080/", "http://localhost/"),
    ],
)
def test_what_lies_within_a_scope_belongs(scope: ScopeKind, start: str, url: str) -> None:
    """A prefix is an origin and a folder, a host is any scheme and port, and a domain is all its hosts."""
    assert check_scope(url, Site(start, scope)) is None


@pytest.mark.parametrize(
    ("scope", "start", "url"),
    [
        ("prefix", "https://example.org/docs/", "https://example.org/docs"),
        ("prefix", "https://example.org/docs/", "https://example.org/docs-old/"),
        ("prefix", "https://example.org/docs/", "http://example.org/docs/"),
        ("prefix", "https://example.org/docs/", "https://example.org:8443/docs/"),
        ("host", "https://example.org/", "https://www.example.org/"),
        ("host", "https://example.org/", "https://example.org@elsewhere.example/"),
        ("host", "https://example.org/", "https://elsewhere.example/https://example.org/"),
        ("domain", "https://example.org/", "https://notexample.org/"),
        ("domain", "https://a.co.uk/", "https://b.co.uk/"),
        ("domain", "https://co.uk/", "https://a.co.uk/"),
        ("domain", "https://www.amazonaws.com/", "https://somebody.s3.amazonaws.com/"),
        ("domain", "http://192.0.2.1/", "http://192.0.2.2/"),
    ],
)
def test_what_lies_outside_a_scope_does_not_belong(scope: ScopeKind, start: str, url: str) -> None:
    """Similar names, other names under a public suffix, and other ports of a prefix are outside."""
    assert check_scope(url, Site(start, scope)) is Refusal.OUT_OF_SCOPE


@pytest.mark.parametrize(
    ("pattern", "target", "fits"),
    [
        ("/private", "/private/a", True),
        ("/private", "/private-not", True),
        ("/private/", "/private", False),
        ("/*.pdf$", "/a/b.pdf", True),
        ("/*.pdf$", "/a/b.pdf?page=2", False),
        ("/*.pdf", "/a/b.pdf?page=2", True),
        ("*?*sort=", "/list?page=1&sort=up", True),
        ("/a$", "/a/", False),
        ("/straße", "/stra%C3%9Fe/12", True),
        ("/a.c", "/abc", False),
    ],
)
def test_patterns_read_as_in_robots_txt(pattern: str, target: str, *, fits: bool) -> None:
    """A pattern matches the beginning of path and query; ``*`` matches anything, and a final ``$`` the end."""
    url = f"https://example.org{target}"
    excluding = Site("https://example.org/", exclude=(pattern,))
    including = Site("https://example.org/", include=(pattern,))
    assert (check_scope(url, excluding) is Refusal.EXCLUDED) is fits
    assert (check_scope(url, including) is None) is fits


def test_an_exclude_wins_over_an_include() -> None:
    """If both match, the URL is excluded, even the start."""
    site = Site("https://example.org/docs/", include=("/docs/",), exclude=("/docs/",))
    assert check_scope("https://example.org/docs/a", site) is Refusal.EXCLUDED
    assert check_scope(site.start, site) is Refusal.EXCLUDED


def test_the_start_needs_no_include() -> None:
    """The start page leads to the included pages, so it is fetched even if no include matches it."""
    site = Site("https://example.org/", include=("/docs/",))
    assert check_scope("https://example.org/", site) is None
    assert check_scope("https://example.org/blog/", site) is Refusal.EXCLUDED


def test_a_pattern_of_many_stars_comes_to_an_end() -> None:
    """A pattern that would take a backtracking matcher very long is matched immediately."""
    site = Site("https://example.org/", exclude=("/" + "*a" * 60 + "b$",))
    assert check_scope("https://example.org/" + "a" * 1500, site) is None


def test_a_long_url_is_refused_and_the_longest_is_not() -> None:
    """The limit counts the bytes of the whole URL."""
    site = Site("https://example.org/")
    longest = site.start + "a" * (MAX_URL_BYTES - len(site.start))
    assert check_scope(longest, site) is None
    assert check_scope(longest + "a", site) is Refusal.TOO_LONG


def test_other_schemes_are_named_as_such() -> None:
    """A URL that isn't a web page is refused for that reason."""
    assert check_scope("ftp://example.org/", Site("https://example.org/")) is Refusal.NOT_HTTP
    assert find_refusal("ftp://example.org/", [Site("https://example.org/")]) is Refusal.NOT_HTTP


def test_the_first_site_that_takes_a_url_owns_it() -> None:
    """If two sites cover a URL, the first one gets it."""
    docs = Site("https://example.org/docs/", scope="prefix")
    host = Site("https://example.org/")
    assert find_site("https://example.org/docs/a", [docs, host]) is docs
    assert find_site("https://example.org/docs/a", [host, docs]) is host
    assert find_site("https://example.org/a", [docs, host]) is host
    assert find_site("https://example.com/", [docs, host]) is None


def test_the_refusal_of_the_nearest_site_is_told() -> None:
    """Being excluded by one site takes precedence over being outside another; without sites, everything is outside."""
    near = Site("https://example.org/", exclude=("/a",))
    far = Site("https://example.com/")
    for sites in ([near, far], [far, near]):
        assert find_refusal("https://example.org/a", sites) is Refusal.EXCLUDED
        assert find_refusal("https://example.net/a", sites) is Refusal.OUT_OF_SCOPE
        assert find_refusal("https://example.com/a", sites) is None
    assert find_refusal("https://example.org/", []) is Refusal.OUT_OF_SCOPE


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("example.org", "https://example.org/"),
        ("example.org/docs/?u=http://a/", "https://example.org/docs/?u=http://a/"),
        ("https://example.org/docs/", "https://example.org/docs/"),
        ("HTTP://Example.ORG:80/a/../b#c", "http://example.org/b"),
        ("localhost", "http://localhost/"),
        ("localhost:8080", "http://localhost:8080/"),
        ("docs.localhost/a", "http://docs.localhost/a"),
        ("127.0.0.1:80/x", "http://127.0.0.1/x"),
        ("192.0.2.1", "http://192.0.2.1/"),
        ("192.0.2.1:443", "https://192.0.2.1/"),
        ("[::1]", "http://[::1]/"),
        ("[::1]:8080", "http://[::1]:8080/"),
        ("example.org:8080", "http://example.org:8080/"),
        ("example.org:443", "https://example.org/"),
        ("bücher.example", "https://xn--bcher-kva.example/"),
        ("example.org?b=1&a=2&utm_source=x", "https://example.org/?a=2&b=1"),
    ],
)
def test_a_site_is_read_as_people_type_it(text: str, start: str) -> None:
    """A URL is kept; a bare name gets https; addresses, localhost and other ports get http."""
    assert read_site(text).start == start


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "exa mple",
            " example.org",
            "example.org\n",
            "/path",
            "-x",
            "--pages",
            ".",
            "..",
            "#",
            "?",
            "*.example.org",
        ),
        *(
            "ftp://x",
            "mailto:",
            "mailto:a@example.org",
            "a@example.org",
            "http://",
            "https:example.org",
            "https//example.org",
            "C:\\docs",
            "::1",
        ),
        *(
            "3",
            "127.1",
            "example.org:99999",
            "example.org:",
            "https://-x/",
            "a..b",
            "\ud800",
            "x" * 64 + ".example",
            "a/" * 2000,
        ),
    ],
)
def test_what_is_no_site_is_refused_with_what_to_type(text: str) -> None:
    """The error quotes what was typed and gives an example, on one line."""
    with pytest.raises(SiteError, match=r'^".*" is not a site: use .* such as https://example\.org/docs/$'):
        read_site(text)


def test_a_site_with_a_password_is_refused() -> None:
    """Credentials are never sent, and dropping them silently would surprise the user."""
    with pytest.raises(SiteError, match="remove them"):
        read_site("https://user:word@example.org/")


def test_settings_of_a_site_are_kept_and_checked() -> None:
    """A pattern that cannot match any path is an error, and so is an unknown scope."""
    site = read_site("example.org/?b&a", scope="domain", include=("/docs/",), sort_parameters=False, delay_s=2.0)
    assert site == Site("https://example.org/?b&a", "domain", include=("/docs/",), sort_parameters=False, delay_s=2.0)
    with pytest.raises(SiteError, match='"docs/" does not match any path: start it with'):
        read_site("example.org", exclude=("docs/",))
    with pytest.raises(SiteError, match="choose one of prefix, host, domain"):
        read_site("example.org", scope=cast("ScopeKind", "planet"))


def test_an_index_of_sites_names_the_site_that_a_search_through_all_names() -> None:
    """Each URL has the same site as with a full search, the first one if several match; look-alike hosts have none."""
    sites = [
        Site("https://example.org/docs/", scope="prefix"),
        Site("https://www.example.org/", scope="domain"),
        Site("https://example.org/"),
        Site("http://192.0.2.7:8080/"),
        Site("https://a.github.io/"),
    ]
    hosts = (
        "example.org",
        "www.example.org",
        "x.example.org",
        "myexample.org",
        "192.0.2.7",
        "192.0.2.7:8080",
        "github.io",
    )
    urls = [f"{scheme}://{host}{path}" for scheme in ("http", "https") for host in hosts for path in ("/", "/docs/a")]
    index = SiteIndex(sites)
    assert [index.find_site(url) for url in urls] == [find_site(url, sites) for url in urls]
    assert index.find_site("https://a.github.io/x") is sites[4]
    assert SiteIndex().find_site("https://example.org/") is None


def test_an_index_says_which_sites_may_have_urls_on_a_host() -> None:
    """A site with the scope domain counts for all hosts of the domain, any other only for its own host."""
    domain, host = Site("https://example.org/", scope="domain"), Site("https://www.example.org/")
    index = SiteIndex([domain, host])
    assert index.find_by_host("www.example.org") == (domain, host)
    assert index.find_by_host("other.example.org") == (domain,)
    assert index.find_by_host("example.com") == ()
