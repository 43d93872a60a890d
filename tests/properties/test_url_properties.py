"""Properties of every link, URL and site, for any input."""

from ada_url import URL
from hypothesis import assume, example, given
from hypothesis import strategies as st

from vedette.discover.urls.normalize import explain_normalize, normalize, resolve
from vedette.discover.urls.scope import check_scope, find_refusal, find_site, read_site
from vedette.errors import SiteError
from vedette.model import Refusal, ScopeKind, Site

ANYTHING = st.text(st.characters(codec=None, categories=None))  # lone surrogates too
PIECES = st.sampled_from(
    [
        *(
            "http:",
            "https:",
            "HTTP://",
            "https://",
            "//",
            "/",
            "\\",
            "..",
            ".",
            "%2e",
            "%2E",
            "%",
            "%zz",
            "?",
            "#",
            "&",
            "=",
            ";",
        ),
        *(
            "a",
            "b",
            "Z",
            "0",
            "-",
            "_",
            "~",
            "'",
            '"',
            "|",
            "^",
            "{",
            "[",
            "]",
            "<",
            ":",
            "@",
            "+",
            ",",
            "!",
            "$",
            "(",
            "*",
        ),
        *(
            " ",
            "\t",
            "\n",
            "\x00",
            "ü",
            "\u3002",
            "\ud800",
            "xn--",
            "xn--a",
            "example.org",
            "a.com",
            "1.2",
            "0x7f",
            ":80",
            ":443",
        ),
        *("utm_source=1", "jsessionid=2", ";jsessionid=3", "sid", "user:word@", "sc:", "file:", "127.0.0.1", "[::1]"),
    ]
)
LINKS = st.one_of(st.lists(PIECES, max_size=12).map("".join), ANYTHING)
BASES = st.one_of(
    st.none(),
    st.sampled_from(
        ["https://example.org/a/b?c#d", "http://u:p@a.com:8080/", "about:blank", "sc://x/y", "file:///a/b"]
    ),
    LINKS,
)
URLS = st.builds(resolve, LINKS, st.just("https://example.org/a/b?c")).filter(bool).map(str)
NAMES = st.sampled_from(["*", "a*", "*b", "jsessionid", "SID", "utm_*", "Z*a*0", ""])
SCOPES: st.SearchStrategy[ScopeKind] = st.sampled_from(["prefix", "host", "domain"])
SITES = st.builds(
    Site, URLS, SCOPES, sort_parameters=st.booleans(), drop_parameters=st.lists(NAMES, max_size=3).map(tuple)
)


def scalars(text: str) -> str:
    """The text with each lone surrogate replaced, unit by unit; pairs are joined first."""
    units = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    return "".join("\ufffd" if 0xD800 <= ord(unit) < 0xE000 else unit for unit in units)


def by_the_parser(link: str, base: str | None) -> str | None:
    """Return the standard's result without shortcuts."""
    try:
        url = URL(scalars(link), None if base is None else scalars(base))
    except ValueError:
        return None
    url.hash = ""
    return url.href if url.protocol in ("http:", "https:") else None


@given(LINKS, BASES)
@example("a#:", "https://example.org/")
@example("https://a.0x7f/", None)
@example("https://.com/", None)
def test_resolve_is_what_the_parser_says(link: str, base: str | None) -> None:
    """Shortcuts change nothing, and no text raises an error."""
    assert resolve(link, base) == by_the_parser(link, base)


@given(st.from_regex(r"(https?://([a-z0-9-]{1,9}\.){0,3}[a-z0-9]{1,5}/)?[!-~]{0,20}", fullmatch=True), BASES)
def test_resolve_is_what_the_parser_says_for_plain_looking_links(link: str, base: str | None) -> None:
    """The same is true for links that resemble those with a shortcut."""
    assert resolve(link, base) == by_the_parser(link, base)


@given(URLS, BASES)
def test_a_resolved_url_resolves_to_itself(url: str, base: str | None) -> None:
    """An absolute URL means the same on every page with a valid URL."""
    assume(base is None or resolve("https://example.org/", base) is not None)
    assert resolve(url, base) == url


@given(URLS, SITES)
def test_normalising_twice_is_normalising_once(url: str, site: Site) -> None:
    """The normal form is normal, and the parser does not change it."""
    once = normalize(url, site)
    assert normalize(once, site) == once
    assert resolve(once, None) == once


@given(URLS, SITES)
def test_normalising_keeps_scheme_host_and_port(url: str, site: Site) -> None:
    """A URL never moves to another origin, and no credentials are sent."""
    before, after = URL(url), URL(normalize(url, site))
    assert (after.protocol, after.host, after.username, after.password) == (before.protocol, before.host, "", "")


@given(URLS, SITES)
def test_normalising_invents_no_parameter(url: str, site: Site) -> None:
    """What is left of a query is some of its parts, byte for byte; parts with the same name keep their order."""
    before = URL(url).search.removeprefix("?").split("&")
    after = [part for part in URL(normalize(url, site)).search.removeprefix("?").split("&") if part]
    for name in dict.fromkeys(part.partition("=")[0] for part in after):
        same = [part for part in after if part.partition("=")[0] == name]
        assert same == [part for part in before if part and part.partition("=")[0] == name]


@given(URLS, SITES)
def test_an_explanation_ends_in_the_normal_form(url: str, site: Site) -> None:
    """The steps lead to the normal form, and each one changes something."""
    steps = explain_normalize(url, site)
    assert (steps[-1].after if steps else url) == normalize(url, site)
    assert all(step.before != step.after for step in steps)


@given(URLS, SITES)
def test_no_other_host_is_in_the_scope_of_a_host(url: str, site: Site) -> None:
    """Scopes ``prefix`` and ``host`` never leave the host; every scope contains its own start."""
    if site.scope != "domain" and check_scope(url, site) is None:
        assert URL(url).hostname == URL(site.start).hostname
    assert check_scope(site.start, site) is None


@given(URLS, st.lists(SITES, max_size=3))
def test_a_url_is_refused_exactly_when_no_site_takes_it(url: str, sites: list[Site]) -> None:
    """A URL is either refused or belongs to a site."""
    refused, site = find_refusal(url, sites), find_site(url, sites)
    assert (refused is None) == (site is not None)
    assert refused is None or isinstance(refused, Refusal)


@given(LINKS)
def test_what_a_person_types_is_a_site_or_a_one_line_error(text: str) -> None:
    """A site starts at a normalized URL without credentials.

    Other input gets a printable one-line error with advice.
    """
    try:
        site = read_site(text)
    except SiteError as error:
        message = str(error)
    else:
        message = ""
        assert normalize(site.start, site) == resolve(site.start, None) == site.start
        assert check_scope(site.start, site) is None
    assert message.isprintable()
