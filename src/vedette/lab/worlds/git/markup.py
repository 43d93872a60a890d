r"""What a page says and where it leads, where it is written in Markdown or reStructuredText.

No reader of the languages: it finds links as they are usually written, and takes the marks off the words. Everything is
one pass of patterns that are bounded and never try the same piece twice, so that no text takes long.
"""

import re
from typing import NamedTuple

__all__ = ["Marked", "read_markdown", "read_restructured"]

MOST_LINKS = 5000
_SHORT, _LONG = 300, 2000  # of a link's words, and of its address

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n.*?\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
_FENCE = re.compile(r"^[ ]{0,3}(```|~~~)[^\n]{0,200}\n(.*?)(?:^[ ]{0,3}\1[^\n]{0,200}$|\Z)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(rf"!?\[([^\[\]]{{0,{_SHORT}}})\]\(\s{{0,9}}<?([^\s()<>]{{1,{_LONG}}}+)>?[^()\n]{{0,{_SHORT}}}+\)")
_NAMED = re.compile(
    rf"^[ ]{{0,3}}\[[^\[\]\n]{{1,{_SHORT}}}\]:[ \t]{{0,9}}<?([^\s<>]{{1,{_LONG}}}+)>?[^\n]{{0,{_SHORT}}}+$",
    re.MULTILINE,
)
_BARE = re.compile(rf"<(https?://[^\s<>]{{1,{_LONG}}})>")
_HREF = re.compile(rf"\bhref\s{{0,3}}=\s{{0,3}}[\"']([^\"'\s<>]{{1,{_LONG}}})[\"']", re.IGNORECASE)
_TAG = re.compile(r"<[/!a-zA-Z][^<>]{0,500}>|\{[%{][^{}\n]{0,500}[%}]\}")
_MARKS = re.compile(r"^[ \t]{0,20}(?:#{1,6}|>+|[-*+]|\d{1,9}[.)]|[=~^-]{3,})(?=\s|$)|[*_`|]{1,3}", re.MULTILINE)

_ROLE = re.compile(rf":doc:`(?:[^`<]{{0,{_SHORT}}}<([^`<>\s]{{1,{_LONG}}})>|([^`<>\s]{{1,{_LONG}}}))`")
_QUOTED = re.compile(rf"`([^`<]{{0,{_SHORT}}})<([^`<>\s]{{1,{_LONG}}})>`__?")
_TARGET = re.compile(rf"^\.\. _[^:\n]{{1,{_SHORT}}}:[ \t]{{1,9}}([^\s]{{1,{_LONG}}})[ \t]*$", re.MULTILINE)
_TREE = re.compile(r"^([ \t]{0,40})\.\. toctree::[^\n]*\n((?:\1[ \t]+[^\n]*\n?|[ \t]*\n)*)", re.MULTILINE)
_ENTRY = re.compile(
    rf"^[ \t]{{1,40}}+(?:[^:\n<][^\n<]{{0,{_SHORT}}}<([^<>\s]{{1,{_LONG}}})>|([^:\s<][^\s<]{{0,{_LONG}}}+))[ \t]*$",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r"^[ \t]{0,40}(?:\.\. [^\n]*|:[\w -]{1,40}:[^\n]*|[=~^\"'`#*+-]{3,}[ \t]*)$", re.MULTILINE)
_ROLE_MARK = re.compile(r":[\w:-]{1,40}:(?=`)|[`*|]{1,2}_{0,2}")
_LINES = re.compile(r"\n\s*\n+")


class Marked(NamedTuple):
    """The words without their marks, and the addresses as written, in the order of the page as far as that is cheap."""

    text: str
    links: tuple[str, ...]


def read_markdown(source: str) -> Marked:
    r"""What a Markdown file says.

    >>> read_markdown("---\ntitle: x\n---\n# A *page*\n\nSee [this one](b.md#top \"B\") and <https://example.org/>.\n")
    Marked(text='A page\nSee this one and .', links=('b.md#top', 'https://example.org/'))
    """
    body = _FRONT_MATTER.sub("", source.replace("\r\n", "\n"), count=1)
    prose = _FENCE.sub("\n", body)
    links = [match[2] for match in _INLINE.finditer(prose) if not match[0].startswith("!")]
    links += [match[1] for pattern in (_NAMED, _BARE, _HREF) for match in pattern.finditer(prose)]
    plain = _NAMED.sub("", _FENCE.sub(r"\n\2\n", body))
    text = _MARKS.sub("", _TAG.sub("", _INLINE.sub(r"\1", plain)))
    return Marked(_folded(text), tuple(links[:MOST_LINKS]))


def read_restructured(source: str) -> Marked:
    r"""What a reStructuredText file says.

    >>> read_restructured("Title\n=====\n\nSee :doc:`/b/c` and `it <https://example.org/>`_.\n\n.. toctree::\n\n   d\n")
    Marked(text='Title\nSee /b/c and it .', links=('/b/c', 'https://example.org/', 'd'))
    """
    body = source.replace("\r\n", "\n")
    links = [match[1] or match[2] for match in _ROLE.finditer(body)]
    links += [match[2] for match in _QUOTED.finditer(_ROLE.sub("", body))]
    links += [match[1] for match in _TARGET.finditer(body)]
    links += [one[1] or one[2] for tree in _TREE.finditer(body) for one in _ENTRY.finditer(tree[2])]
    plain = _DIRECTIVE.sub("", _QUOTED.sub(r"\1", _TREE.sub("", body)))
    return Marked(_folded(_ROLE_MARK.sub("", plain)), tuple(links[:MOST_LINKS]))


def _folded(text: str) -> str:
    return "\n".join(" ".join(block.split()) for block in _LINES.split(text.strip()) if block.strip())
