"""``--connect-to``: its syntax, and which origins it matches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.errors import UsageError
from vedette.fetch.connect_to import ConnectOverride, Endpoint, find_endpoint, parse_override
from vedette.model import Origin, origin_of

HERE = Endpoint("127.0.0.1", 8080)


@pytest.mark.parametrize(
    ("text", "detour"),
    [
        ("example.org:443=127.0.0.1:8080", ConnectOverride("example.org", 443, HERE)),
        ("*:*=127.0.0.1:8080", ConnectOverride("*", None, HERE)),
        ("*.example.org:*=127.0.0.1:8080", ConnectOverride("*.example.org", None, HERE)),
        (" Example.ORG:80=[::1]:1 \n", ConnectOverride("example.org", 80, Endpoint("::1", 1))),
        ("[::1]:80=[0:0:0:0:0:0:0:2]:65535", ConnectOverride("[::1]", 80, Endpoint("::2", 65535))),
        ("[0:0::1]:80=127.0.0.1:8080", ConnectOverride("[::1]", 80, HERE)),
        ("bücher.example:80=127.0.0.1:8080", ConnectOverride("xn--bcher-kva.example", 80, HERE)),
    ],
)
def test_what_people_type(text: str, detour: ConnectOverride) -> None:
    """Hosts are normalized as in URLs, so that a rule matches its host however it was typed."""
    assert parse_override(text) == detour


@pytest.mark.parametrize(
    "text",
    [
        *("", "example.org", "example.org:80", "example.org=127.0.0.1", "example.org:80=127.0.0.1", ":80=127.0.0.1:1"),
        *("example.org:0=127.0.0.1:1", "example.org:80=127.0.0.1:65536", "example.org:99999=127.0.0.1:1"),
        *("example.org:80=localhost:1", "example.org:80=127.0.0.1:*", "a:80=::1:1", "a:\uff18\uff10=127.0.0.1:1"),
        *("a b:80=127.0.0.1:1", "*foo:80=127.0.0.1:1", "a*.test:80=127.0.0.1:1", "**:80=127.0.0.1:1"),
        *("[]:80=127.0.0.1:1", "a/b:80=127.0.0.1:1", "u@a:80=127.0.0.1:1", "\ud800:80=127.0.0.1:1"),
        "a:80=127.0.0.1:1=b:80=127.0.0.1:1",
    ],
)
def test_what_cannot_be_meant(text: str) -> None:
    """A rule that could never match is rejected, quoting the input."""
    with pytest.raises(UsageError) as caught:
        parse_override(text)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "url", "fits"),
    [
        ("example.org:443", "https://example.org/", True),
        ("example.org:443", "http://example.org/", False),
        ("example.org:*", "http://example.org:81/", True),
        ("example.org:*", "http://www.example.org/", False),
        ("*.example.org:80", "http://a.b.example.org/", True),
        ("*.example.org:80", "http://example.org/", False),
        ("*.example.org:80", "http://badexample.org/", False),
        ("*:80", "http://anything.test/", True),
        ("*:80", "https://anything.test/", False),
        ("[::1]:8080", "http://[::1]:8080/", True),
    ],
)
def test_for_whom_a_rule_counts(rule: str, url: str, fits: bool) -> None:  # noqa: FBT001 - a column of the table
    """Host and port must both match; a star before a dot matches at least one label."""
    detours = [parse_override(f"{rule}=127.0.0.1:8080")]
    assert (find_endpoint(origin_of(url), detours) == HERE) is fits


def test_the_first_that_fits() -> None:
    """The first matching rule applies; without one, nothing changes."""
    detours = [
        parse_override("a.test:80=127.0.0.1:1"),
        parse_override("*:80=127.0.0.1:2"),
        parse_override("a.test:*=127.0.0.1:3"),
    ]
    origins = [Origin("http", "a.test", 80), Origin("http", "b.test", 80), Origin("http", "a.test", 81)]
    assert [find_endpoint(origin, detours) for origin in origins] == [Endpoint("127.0.0.1", port) for port in (1, 2, 3)]
    assert find_endpoint(Origin("http", "b.test", 81), detours) is None


@given(st.text(max_size=40) | st.text("ab*.:=[]0123456789", max_size=40))
def test_whatever_is_typed(text: str) -> None:
    """Any text is either a rule or rejected with an error."""
    try:
        detour = parse_override(text)
    except UsageError:
        return
    assert 0 < detour.to.port < 65_536
