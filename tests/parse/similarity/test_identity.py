"""What distinguishes pages with nearly the same text, and which URLs are editions of one page."""

import pytest

from vedette.parse.similarity.identity import are_editions, build_identity

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


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("1 a 2 b 3", 2, True),
        ("a 1 b 2", 2, False),
        ("1.2.3 a b", 2, False),
        ("1.2:3 a 4 b 5-6", 2, True),
        ("1 2 3" + 28 * " a", 28, False),
        ("1 2 3" + 27 * " a", 27, True),
        ("\u0663 \u0664 \u0665 é", 1, False),
        ("é1é2é3", 3, True),
    ],
)
def test_only_texts_with_many_numbers_have_a_sketch_of_them(text: str, words: int, *, expected: bool) -> None:
    """At least three, and a tenth of all words; several runs of digits can be one number."""
    assert bool(build_identity("", (), text, words).numbers) is expected
