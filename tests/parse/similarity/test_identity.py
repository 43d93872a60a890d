"""What distinguishes pages with nearly the same text, and which URLs are editions of one page."""

import pytest

from vedette.parse.similarity.identity import are_editions

A = "https://a.example"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("/docs/3.2/x", "/docs/3.10/x", True),
        ("/tomee-9.0/examples/x.html", "/latest/examples/x.html", True),
        ("/tomee-9.0/pt/examples/x.html", "/tomee-10.0/examples/x.html", True),
        ("/docs/2.1.0-incubating/x", "/docs/x", True),
        ("/zh-cn/docs/1.2/x", "/docs/1.3/x", True),
        ("/room-12/x", "/room-13/x", False),
        ("/2020/11/x", "/2021/03/x", False),
        ("/2020/11/x", "/2020/12/x", True),
        ("/docs/1.2/x", "/docs/1.3/y", False),
        ("/guide/1.2/x", "/manual/1.3/x", False),
        ("/docs/1.2/x", "/docs/1.2/x", False),
    ],
)
def test_editions_differ_in_the_name_of_a_version_or_language(one: str, other: str, *, expected: bool) -> None:
    """A product may precede its version; dates and numbered things are not editions of each other."""
    assert are_editions(A + one, A + other) is are_editions(A + other, A + one) is expected
