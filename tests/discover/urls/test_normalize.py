"""Links are resolved as in browsers, and equal URLs of a site become one."""

import pytest

from vedette.discover.urls.normalize import RewriteStep, explain_normalize, matches_wildcard, normalize, resolve
from vedette.model import Site

RFC_BASE = "http://a/b/c/d;p?q"
SITE = Site("https://example.org/")
UNTOUCHED = Site("https://example.org/", sort_parameters=False, drop_parameters=())


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g/"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"),
        ("g?y#s", "http://a/b/c/g?y"),
        (";x", "http://a/b/c/;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/../x", "http://a/b/c/g"),
        ("http:g", "http://a/b/c/g"),
    ],
)
def test_the_examples_of_rfc_3986_lead_where_a_browser_goes(link: str, expected: str) -> None:
    """The examples of RFC 3986, section 5.4, resolve as given, and the last one as its compatibility note says."""
    assert resolve(link, RFC_BASE) == expected


@pytest.mark.parametrize(
    "link", ["mailto:a@example.org", "javascript:void(0)", "data:,x", "ftp://example.org/", "http://"]
)
def test_what_is_no_web_page_has_no_url(link: str) -> None:
    """Other schemes and failures give None, whatever the base."""
    assert resolve(link, None) is None
    assert resolve(link, "https://example.org/") is None


@pytest.mark.parametrize("base", ["", "no url", "http://[", "//example.org/"])
def test_a_base_that_fails_takes_absolute_links_with_it(base: str) -> None:
    """The standard parses the base first; if that fails, the result is a failure."""
    assert resolve("https://example.org/a", base) is None


@pytest.mark.parametrize("base", ["about:blank", "mailto:a@example.org", "sc://host/path", "file:///etc/"])
def test_a_base_that_is_no_web_page_still_carries_absolute_links(base: str) -> None:
    """An absolute link ignores the base; a relative one follows it."""
    assert resolve("https://example.org/a", base) == "https://example.org/a"
    assert resolve("a", base) is None


def test_relative_links_inherit_the_port_and_credentials_of_the_base() -> None:
    """Everything before the path is kept, however the link is composed."""
    base = "http://user:word@example.org:8080/x/y?z"
    assert resolve("/a", base) == "http://user:word@example.org:8080/a"
    assert resolve("b", base) == "http://user:word@example.org:8080/x/b"


def test_lone_surrogates_are_replacement_characters() -> None:
    """The standard works on scalar values: a lone surrogate is U+FFFD, a pair is its character."""
    replaced = "https://example.org/%EF%BF%BD"
    assert resolve("\ud800", "https://example.org/") == replaced
    assert resolve("/\udfff?", "https://example.org/\ud800") == f"{replaced}?"
    assert resolve("\ud83d" + "\udca9", "https://example.org/") == "https://example.org/%F0%9F%92%A9"


@pytest.mark.parametrize(
    "unit",
    [
        "a/",
        "a/../",
        "/.",
        "%2e%2e/",
        "\t",
        " ",
        "@",
        "a:b@",
        "ü",
        ".",
        "xn--a.",
        "?",
        "&",
        "#",
        "\\",
        "\ud800",
        ":",
        "[",
        "1.",
    ],
)
def test_half_a_megabyte_of_anything_come_to_an_end(unit: str) -> None:
    """No repeated piece makes parsing or normalization hang, in the path or in the host."""
    many = unit * (500_000 // len(unit))
    for link in (many, f"http://{many}", f"http://example.org/{many}", f"http://example.org/?{many}"):
        url = resolve(link, "https://example.org/")
        assert url is None or normalize(url, SITE).startswith("http")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org/?b=1&a=2&b=0", "https://example.org/?a=2&b=1&b=0"),
        ("https://example.org/?a=&a&a=%41", "https://example.org/?a=&a&a=%41"),
        ("https://example.org/?utm_source=x&UTM_Medium=y&q=1", "https://example.org/?q=1"),
        ("https://example.org/?utm%5Fsource=x", "https://example.org/"),
        ("https://example.org/?utmost=1", "https://example.org/?utmost=1"),
        ("https://example.org/?", "https://example.org/"),
        ("https://example.org/?&&", "https://example.org/"),
        ("https://example.org/??", "https://example.org/??"),
        ("https://example.org/?b&&a", "https://example.org/?a&b"),
        ("https://user:word@example.org:8443/@a", "https://example.org:8443/@a"),
        ("https://user@example.org/", "https://example.org/"),
        ("https://example.org/a;jsessionid=1A2B?x=1", "https://example.org/a?x=1"),
        ("https://example.org/a;JSessionID=1/b;v=2", "https://example.org/a/b;v=2"),
        ("https://example.org/a;b", "https://example.org/a;b"),
        ("https://example.org/?u=/a;jsessionid=1", "https://example.org/?u=/a;jsessionid=1"),
    ],
)
def test_a_site_s_rules_give_one_name(url: str, expected: str) -> None:
    """Order, tracking, sessions, empty parts and credentials don't affect the page; all other bytes are kept."""
    assert normalize(url, SITE) == expected


def test_a_host_that_looks_like_a_session_stays() -> None:
    """The standard allows ``;`` and ``=`` in host names, and the host never changes."""
    url = "http://example.org;jsessionid=1/a"
    assert resolve(url, None) == normalize(url, SITE) == url


def test_removing_a_session_never_makes_a_dot_segment() -> None:
    """If removing a session would leave ``..`` in the path, the URL is unchanged."""
    for url in ("https://example.org/a/..;jsessionid=1/b", "https://example.org/a/%2e;jsessionid=1"):
        assert normalize(url, SITE) == url


def test_a_site_can_switch_its_rules_off() -> None:
    """Without sorting and patterns, parameters and paths keep their order and their sessions."""
    url = "https://example.org/a;jsessionid=1?sid=2&b=1&a=2"
    assert normalize(url, UNTOUCHED) == url


def test_patterns_of_a_site_are_its_own() -> None:
    """A ``*`` may be anywhere in the name of a parameter."""
    site = Site("https://example.org/", drop_parameters=("*token", "x*y*z", "page"))
    url = "https://example.org/?CsrfToken=1&tokens=2&x-y-z=3&xz=4&page=5&sid=6"
    assert normalize(url, site) == "https://example.org/?sid=6&tokens=2&xz=4"


def test_each_rule_that_changed_something_is_told() -> None:
    """The steps form a chain from the URL to its normal form, and a URL in normal form has none."""
    url = "https://user@example.org/a;jsessionid=1?&b=1&gclid=2&a=3"
    steps = explain_normalize(url, SITE)
    assert [step.rule for step in steps] == [
        "credentials",
        "session in the path",
        "empty parameters",
        "dropped parameters",
        "order of parameters",
    ]
    assert steps[-1] == RewriteStep(
        "order of parameters", "https://example.org/a?b=1&a=3", "https://example.org/a?a=3&b=1"
    )
    assert [step.before for step in steps] == [url, *(step.after for step in steps[:-1])]
    assert explain_normalize(steps[-1].after, SITE) == ()


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "a-c-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("*ab*ab*", "ab", False),
        ("*ab*ab*", "xabab", True),
        ("**a**", "bab", True),
    ],
)
def test_a_star_stands_for_anything(pattern: str, text: str, *, expected: bool) -> None:
    """Parts are found one after the other and never overlap."""
    assert matches_wildcard(pattern, text) is expected
