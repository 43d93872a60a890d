"""The cached copy of a page, in a frame in which it can do nothing.

The frame has an origin of its own and no right at all (``sandbox``), and the policy of the copy forbids whatever is not
text, our own style or a picture that the page holds within itself. So links in it open nothing: to let them, windows
would have to be allowed, and a stranger's page would be one mistake nearer to the reader.
"""

import re
from collections.abc import Iterator
from html import escape
from itertools import islice
from typing import Final

import nh3
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from vedette.discover.urls.normalize import resolve
from vedette.parse.html.attributes import attributes_of, plain_text
from vedette.parse.html.tokenizer import parts_of, raw_of, tokens
from vedette.parse.text.charsets import codec_of, decode
from vedette.parse.text.media_types import is_html
from vedette.web.ports import CachedCopy, Search
from vedette.web.rendering import SECURITY, rendered

__all__ = ["MOST_CHARACTERS", "copy_of", "copy_page", "id_of", "sanitised", "source_of"]

# Two walls, one behind the other. The first, ours, writes the page anew: known elements only, each closed where it must
# be, nested to a bounded depth, with the few attributes that carry meaning. What remains of a page is its text, its
# structure and pictures that it holds within itself. The second, nh3, reads what the first wrote as a browser would and
# lets through nothing but the same few elements; a mistake in one wall is caught by the other. A third, the policy with
# which the copy is served (``web.cached``), forbids the browser whatever both may have missed.
# Why not nh3 alone: it builds a tree, and trees can be made to explode. Half a megabyte of ``<div>`` kept it busy for
# 33 seconds, a paragraph that reopens what others left open multiplies its input. What the first wall writes is well
# formed and shallow, so that the tree is as large as the text.
# Links stay as they are written, resolved, for those who want to copy them. They open nothing: the frame that shows the
# copy allows no windows, which is the safe choice between that and links that work.


MOST_CHARACTERS = 2 << 20
MOST_TAGS = 100_000  # a page of two megabytes has half of that; the rest of one that has more is left out
MOST_DEPTH = 100
MOST_LINKS = 10_000
LONGEST_LINK = 2_000
LONGEST_PICTURE = 200_000


def _named(names: str) -> frozenset[str]:
    return frozenset(names.split())


VOID = _named("br hr img wbr")
BLOCKS = _named("""
    address article aside blockquote center dd details div dl dt fieldset figcaption figure footer h1 h2 h3 h4 h5 h6
    header hgroup hr li main nav ol p pre search section summary table ul
    """)
TABLE = _named("caption tbody td tfoot th thead tr")
PHRASES = _named("""
    a abbr b bdi bdo cite code del dfn em i ins kbd mark q rp rt ruby s samp small span strong sub sup time u var
    """)
KNOWN = VOID | BLOCKS | TABLE | PHRASES
# What a start tag closes: the nearest of the first, unless one of the second stands before it.
CLOSES = {
    "a": (_named("a"), _named("table")),
    "li": (_named("li"), _named("ul ol table")),
    **dict.fromkeys(("dt", "dd"), (_named("dt dd"), _named("dl table"))),
    **dict.fromkeys(("td", "th"), (_named("td th"), _named("tr table"))),
    "tr": (_named("tr caption"), _named("table")),
    **dict.fromkeys(("thead", "tbody", "tfoot"), (_named("thead tbody tfoot caption"), _named("table"))),
}
ATTRIBUTES = {
    "*": {"lang", "dir"},
    "a": {"href", "target"},
    "img": {"src", "alt"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    "time": {"datetime"},
}
_NUMBER = re.compile(r"[0-9]{1,3}")
_SHAPES = {
    "lang": re.compile(r"[a-zA-Z0-9-]{1,35}"),
    "dir": re.compile("ltr|rtl|auto"),
    "datetime": re.compile(r"[0-9TZ:.+ -]{1,35}"),
    **dict.fromkeys(("start", "colspan", "rowspan"), _NUMBER),
}
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)


def sanitised(html: str, url: str) -> str:
    """What may be shown of a page that was found at a URL: a fragment that neither runs, sends nor loads anything.

    >>> sanitised("<p onclick=x()>Hello <a href='/b'>you</a><script>x()</script>", "https://example.org/a")
    '<p>Hello <a href="https://example.org/b" target="_blank" rel="noopener noreferrer nofollow">you</a></p>'
    """
    tidy = "".join(_Writer(url).written(html[:MOST_CHARACTERS]))
    return nh3.clean(
        tidy,
        tags=set(KNOWN),
        clean_content_tags={"script", "style"},
        attributes={tag: set(names) for tag, names in ATTRIBUTES.items()},
        attribute_filter=_allowed,
        link_rel="noopener noreferrer nofollow",
        url_schemes={"http", "https", "data"},
    )


def _allowed(_tag: str, name: str, value: str) -> str | None:
    """The second wall's own rule: links lead to the web, pictures come with the page."""
    if name == "href":
        return value if value.startswith(("http://", "https://")) else None
    return value if name != "src" or _PICTURE.fullmatch(value) else None


class _Writer:
    """Writes a page anew, well formed. ``open`` are the elements that stand open, the outermost first."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.open: list[str] = []
        self.links = 0

    def written(self, html: str) -> Iterator[str]:
        """The pieces of the new page."""
        found, rest = tokens(html)
        for before, tag in islice(found, MOST_TAGS):
            yield _text(before)
            if tag is not None:
                yield from self._of(tag)
        yield "" if next(found, None) else _text(rest)
        yield from self._closed_to(0)

    def _of(self, tag: str) -> Iterator[str]:
        whole = raw_of(tag)
        if whole is not None:
            yield from self._of_whole(whole.name, whole.attributes, whole.body)
            return
        name, attributes = parts_of(tag)
        if name.startswith("/"):
            yield from self._ended(name[1:])
        elif name in KNOWN:
            yield from self._started(name, attributes)

    def _of_whole(self, name: str, attributes: str, body: str) -> Iterator[str]:
        """A link of nothing but words; of scripts, styles, drawings and the like nothing is left."""
        if name == "a":
            yield from self._started(name, attributes)
            yield _text(body)
            yield from self._ended(name)

    def _started(self, name: str, attributes: str) -> Iterator[str]:
        yield from self._made_room(name)
        if name in VOID:
            yield self._alone(name, attributes)
        elif len(self.open) < MOST_DEPTH and self._is_affordable(name):
            self.open.append(name)
            yield f"<{name}{self._kept(name, attributes)}>"

    def _is_affordable(self, name: str) -> bool:
        """Whether one more fits: a link is long, since it is written with its whole address."""
        self.links += name == "a"
        return name != "a" or self.links <= MOST_LINKS

    def _made_room(self, name: str) -> Iterator[str]:
        """Ends what cannot stand around the new element, so that no reader of ours has to guess."""
        if name in BLOCKS or name in TABLE:
            depth = len(self.open)
            while depth and self.open[depth - 1] in PHRASES:
                depth -= 1
            if depth and self.open[depth - 1] == "p":
                depth -= 1
            yield from self._closed_to(depth)
        closes, stops = CLOSES.get(name, (frozenset[str](), frozenset[str]()))
        for depth in range(len(self.open) - 1, -1, -1):
            if self.open[depth] in stops or not closes:
                return
            if self.open[depth] in closes:
                yield from self._closed_to(depth)
                return

    def _ended(self, name: str) -> Iterator[str]:
        """The end of the innermost element of this name, and of all that stand open in it; nothing where none does."""
        for depth in range(len(self.open) - 1, -1, -1):
            if self.open[depth] == name:
                yield from self._closed_to(depth)
                return

    def _closed_to(self, depth: int) -> Iterator[str]:
        while len(self.open) > depth:
            yield f"</{self.open.pop()}>"

    def _alone(self, name: str, written: str) -> str:
        """An element without contents. A picture from elsewhere is told by its words, since it is never loaded."""
        if name != "img":
            return f"<{name}>"
        given = attributes_of(written)
        source, words = given.get("src", ""), escape(given.get("alt", "").strip()[:LONGEST_LINK])
        if len(source) <= LONGEST_PICTURE and _PICTURE.fullmatch(source):
            return f'<img src="{escape(source)}" alt="{words}">'
        return f"<span>[{words}]</span>" if words else ""

    def _kept(self, name: str, written: str) -> str:
        if not written.strip():
            return ""
        allowed = ATTRIBUTES["*"] | ATTRIBUTES.get(name, set())
        given = attributes_of(written)
        return "".join(self._attribute(key, given[key]) for key in sorted(allowed & given.keys()))

    def _attribute(self, key: str, value: str) -> str:
        if key == "href":
            target = resolve(value[:LONGEST_LINK], self.url) if len(value) <= LONGEST_LINK else None
            short = target is not None and len(target) <= LONGEST_LINK
            return f' href="{escape(target or "")}" target="_blank"' if short else ""
        return f' {key}="{escape(value)}"' if key in _SHAPES and _SHAPES[key].fullmatch(value) else ""


def _text(written: str) -> str:
    """Text between tags: its references are read and written anew, so that a bracket in it is never a tag."""
    if "&" not in written and "<" not in written and ">" not in written and "\0" not in written:
        return written
    return escape(plain_text(written), quote=False)


POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
HEADERS: Final = SECURITY | {"content-security-policy": POLICY, "x-robots-tag": "noindex, noarchive, nofollow"}
MOST_DIGITS: Final = 18  # of a page's id; more is nobody's


def id_of(asked: Request) -> int | None:
    """The id of a page in an address; None where it is none."""
    written = asked.path_params["id"]
    return int(written) if written.isascii() and written.isdecimal() and len(written) <= MOST_DIGITS else None


def copy_of(asked: Request, search: Search, allowed: tuple[str, ...]) -> CachedCopy | None:
    """The copy that an address asks for, where there is one to be shown."""
    id_ = id_of(asked)
    return None if id_ is None else search.copy(id_, allowed)


async def copy_page(copy: CachedCopy) -> Response:
    """The copy as a page of its own. It is made beside the event loop, since a large one takes a while."""
    text = await run_in_threadpool(_written, copy)
    return Response(text.encode(errors="replace"), headers=HEADERS, media_type="text/html")


def _written(copy: CachedCopy) -> str:
    if is_html(copy.content_type, copy.body):
        return rendered("cached_body.html", title=copy.title, html=sanitised(source_of(copy), copy.url), text="")
    return rendered("cached_body.html", title=copy.title, html="", text=copy.text[:MOST_CHARACTERS])


def source_of(copy: CachedCopy) -> str:
    """The HTML of a page, by the charset that it was read in; where that is unknown, as a browser would read it."""
    body = copy.body[:MOST_CHARACTERS]
    codec = codec_of(copy.charset)
    return decode(body, copy.content_type).text if codec is None else body.decode(codec, "replace")
