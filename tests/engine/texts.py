"""Pages with content for webs in memory: words by seed, so that two pages are similar only on purpose."""

from random import Random

from tests.engine.memory_web import Reply

__all__ = ["text_of", "text_page"]

_SYLLABLES = ("ba", "den", "fir", "go", "hul", "ka", "lor", "mi", "nat", "pe", "rus", "sol", "tam", "vo", "wen", "zi")


def text_of(seed: object, words: int) -> str:
    """Generate this many words, always the same ones for a seed."""
    drawn = Random(str(seed)).choices(_SYLLABLES, k=3 * words)  # noqa: S311 - a text, no secret
    return " ".join(map("".join, zip(drawn[::3], drawn[1::3], drawn[2::3], strict=True)))


def text_page(text: str, *links: str, canonical: str = "") -> Reply:
    """A page with one paragraph and some links."""
    head = f'<link rel="canonical" href="{canonical}">' if canonical else ""
    anchors = "".join(f'<li><a href="{link}">on</a></li>' for link in links)
    body = f"<title>A page</title>{head}<main><p>{text}</p></main><nav><ul>{anchors}</ul></nav>"
    return Reply(200, (("content-type", "text/html; charset=utf-8"),), body.encode())
