"""Cached copies of pages: HTML is sanitized and shown in a sandboxed frame in which it can do nothing.

The frame has its own origin and no permissions (``sandbox``), and the policy of the copy forbids everything but text,
our own style and inline images. So links in it open nothing: that would require allowing windows, and a foreign page
would be one mistake closer to the user.
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
from vedette.parse.html.page import open_templates, parse_page
from vedette.parse.html.tokenizer import decode_references, parse_attributes, split_raw, split_tag, tokenize
from vedette.parse.text.charsets import decode_page, find_codec
from vedette.parse.text.media_types import is_html
from vedette.web.ports import CachedCopy, SearchService
from vedette.web.rendering import SECURITY_HEADERS, render_template

# Two layers, one after the other. The first, ours, rewrites the page: only known elements, each closed where it must
# be, nested to a bounded depth, with the few attributes that carry meaning. What remains of a page is its text, its
# structure and inline images. The second, nh3, parses that output as a browser would and passes only the same few
# elements; a mistake in one layer is caught by the other. A third, the policy with which the copy is served
# (``COPY_POLICY``), forbids the browser whatever both may have missed. Why not nh3 alone: it builds a tree, and trees
# can be made to explode. Half a megabyte of ``<div>`` kept it busy for 33 seconds, and a paragraph that reopens what
# others left open multiplies its input. The output of the first layer is well formed and shallow, so the tree is as
# large as the text. Links stay as they are written, resolved, for users who want to copy them. They open nothing: the
# frame that shows the copy allows no windows, which is safer than links that work.
MAX_CHARACTERS = 2 << 20
MAX_TAGS = 100_000  # a page of two megabytes has half of that; the rest of a longer one is left out
MAX_DEPTH = 100
MAX_LINKS = 10_000
MAX_LINK = 2_000
MAX_IMAGE_LENGTH = 200_000


def _split_names(names: str) -> frozenset[str]:
    return frozenset(names.split())


VOID_TAGS = _split_names("br hr img wbr")
BLOCK_TAGS = _split_names("""
    address article aside blockquote center dd details div dl dt fieldset figcaption figure footer h1 h2 h3 h4 h5 h6
    header hgroup hr li main nav ol p pre search section summary table ul
    """)
TABLE_TAGS = _split_names("caption tbody td tfoot th thead tr")
INLINE_TAGS = _split_names("""
    a abbr b bdi bdo cite code del dfn em i ins kbd mark q rp rt ruby s samp small span strong sub sup time u var
    """)
ALLOWED_TAGS = VOID_TAGS | BLOCK_TAGS | TABLE_TAGS | INLINE_TAGS
# What a start tag closes: the nearest of the first, unless one of the second comes before it.
IMPLIED_ENDS = {
    "a": (_split_names("a"), _split_names("table")),
    "li": (_split_names("li"), _split_names("ul ol table")),
    **dict.fromkeys(("dt", "dd"), (_split_names("dt dd"), _split_names("dl table"))),
    **dict.fromkeys(("td", "th"), (_split_names("td th"), _split_names("tr table"))),
    "tr": (_split_names("tr caption"), _split_names("table")),
    **dict.fromkeys(("thead", "tbody", "tfoot"), (_split_names("thead tbody tfoot caption"), _split_names("table"))),
}
ALLOWED_ATTRIBUTES = {
    "*": {"lang", "dir"},
    "a": {"href", "target"},
    "img": {"src", "alt"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    "time": {"datetime"},
}
_NUMBER = re.compile(r"[0-9]{1,3}")
_ATTRIBUTE_PATTERNS = {
    "lang": re.compile(r"[a-zA-Z0-9-]{1,35}"),
    "dir": re.compile("ltr|rtl|auto"),
    "datetime": re.compile(r"[0-9TZ:.+ -]{1,35}"),
    **dict.fromkeys(("start", "colspan", "rowspan"), _NUMBER),
}
_DATA_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)


def sanitize_html(html: str, url: str) -> str:
    """Sanitize the HTML of a cached copy: a fragment that neither runs, sends nor loads anything.

    >>> sanitize_html("<p onclick=x()>Hello <a href='/b'>you</a><script>x()</script>", "https://example.org/a")
    '<p>Hello <a href="https://example.org/b" target="_blank" rel="noopener noreferrer nofollow">you</a></p>'
    """
    tidy = "".join(_HtmlRewriter(url).rewrite(html[:MAX_CHARACTERS]))
    return nh3.clean(
        tidy,
        tags=set(ALLOWED_TAGS),
        clean_content_tags={"script", "style"},
        attributes={tag: set(names) for tag, names in ALLOWED_ATTRIBUTES.items()},
        attribute_filter=_filter_attribute,
        link_rel="noopener noreferrer nofollow",
        url_schemes={"http", "https", "data"},
    )


def _filter_attribute(_tag: str, name: str, value: str) -> str | None:
    """Filter an attribute of a cached copy's HTML, as a second layer: only links to the web and inline images."""
    if name == "href":
        return value if value.startswith(("http://", "https://")) else None
    return value if name != "src" or _DATA_IMAGE.fullmatch(value) else None


class _HtmlRewriter:
    """Rewrites the HTML of a cached copy, well formed. ``open`` are the open elements, outermost first."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.open: list[str] = []
        self.links = 0

    def rewrite(self, html: str) -> Iterator[str]:
        """Yield the pieces of the cached copy's rewritten HTML."""
        found, rest = tokenize(html)
        for before, tag in islice(found, MAX_TAGS):
            yield _escape_text(before)
            if tag is not None:
                yield from self._rewrite_tag(tag)
        yield "" if next(found, None) else _escape_text(rest)
        yield from self._close_to_depth(0)

    def _rewrite_tag(self, tag: str) -> Iterator[str]:
        whole = split_raw(tag)
        if whole is not None:
            yield from self._rewrite_raw(whole.name, whole.attributes, whole.body)
            return
        name, attributes = split_tag(tag)
        if name.startswith("/"):
            yield from self._end_tag(name[1:])
        elif name in ALLOWED_TAGS:
            yield from self._open_tag(name, attributes)

    def _rewrite_raw(self, name: str, attributes: str, body: str) -> Iterator[str]:
        """Rewrite a raw element of a cached copy: a text-only link stays; scripts, styles and drawings are dropped."""
        if name == "a":
            yield from self._open_tag(name, attributes)
            yield _escape_text(body)
            yield from self._end_tag(name)

    def _open_tag(self, name: str, attributes: str) -> Iterator[str]:
        yield from self._close_implied(name)
        if name in VOID_TAGS:
            yield self._write_void(name, attributes)
        elif len(self.open) < MAX_DEPTH and self._is_within_link_limit(name):
            self.open.append(name)
            yield f"<{name}{self._write_attributes(name, attributes)}>"

    def _is_within_link_limit(self, name: str) -> bool:
        """Check whether one more link fits the cached copy: each is written with its whole URL."""
        self.links += name == "a"
        return name != "a" or self.links <= MAX_LINKS

    def _close_implied(self, name: str) -> Iterator[str]:
        """Close the open elements that cannot contain a new one in the cached copy's HTML."""
        if name in BLOCK_TAGS or name in TABLE_TAGS:
            depth = len(self.open)
            while depth and self.open[depth - 1] in INLINE_TAGS:
                depth -= 1
            if depth and self.open[depth - 1] == "p":
                depth -= 1
            yield from self._close_to_depth(depth)
        closes, stops = IMPLIED_ENDS.get(name, (frozenset[str](), frozenset[str]()))
        for depth in range(len(self.open) - 1, -1, -1):
            if self.open[depth] in stops or not closes:
                return
            if self.open[depth] in closes:
                yield from self._close_to_depth(depth)
                return

    def _end_tag(self, name: str) -> Iterator[str]:
        """End the innermost open element of this name in the cached copy, and all elements open in it."""
        for depth in range(len(self.open) - 1, -1, -1):
            if self.open[depth] == name:
                yield from self._close_to_depth(depth)
                return

    def _close_to_depth(self, depth: int) -> Iterator[str]:
        while len(self.open) > depth:
            yield f"</{self.open.pop()}>"

    def _write_void(self, name: str, written: str) -> str:
        """Write a void element of the cached copy; a remote image becomes its alt text, since none is loaded."""
        if name != "img":
            return f"<{name}>"
        given = parse_attributes(written)
        source, words = given.get("src", ""), escape(given.get("alt", "").strip()[:MAX_LINK])
        if len(source) <= MAX_IMAGE_LENGTH and _DATA_IMAGE.fullmatch(source):
            return f'<img src="{escape(source)}" alt="{words}">'
        return f"<span>[{words}]</span>" if words else ""

    def _write_attributes(self, name: str, written: str) -> str:
        if not written.strip():
            return ""
        allowed = ALLOWED_ATTRIBUTES["*"] | ALLOWED_ATTRIBUTES.get(name, set())
        given = parse_attributes(written)
        return "".join(self._write_attribute(key, given[key]) for key in sorted(allowed & given.keys()))

    def _write_attribute(self, key: str, value: str) -> str:
        if key == "href":
            target = resolve(value[:MAX_LINK], self.url) if len(value) <= MAX_LINK else None
            short = target is not None and len(target) <= MAX_LINK
            return f' href="{escape(target or "")}" target="_blank"' if short else ""
        return (
            f' {key}="{escape(value)}"'
            if key in _ATTRIBUTE_PATTERNS and _ATTRIBUTE_PATTERNS[key].fullmatch(value)
            else ""
        )


def _escape_text(written: str) -> str:
    """Escape text of a cached copy: its references are decoded and escaped again, so no bracket becomes a tag."""
    if "&" not in written and "<" not in written and ">" not in written and "\0" not in written:
        return written
    return escape(decode_references(written), quote=False)


COPY_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
COPY_HEADERS: Final = SECURITY_HEADERS | {
    "content-security-policy": COPY_POLICY,
    "x-robots-tag": "noindex, noarchive, nofollow",
}
MAX_ID_DIGITS: Final = 18  # of a page's id; a longer one is invalid


def parse_page_id(request: Request) -> int | None:
    """Parse the page id in the URL of a cached copy; None if it is invalid."""
    written = request.path_params["id"]
    return int(written) if written.isascii() and written.isdecimal() and len(written) <= MAX_ID_DIGITS else None


def find_copy(request: Request, search: SearchService, allowed: tuple[str, ...]) -> CachedCopy | None:
    """Find the cached copy that a request names; None if there is none to show."""
    id_ = parse_page_id(request)
    return None if id_ is None else search.find_copy(id_, allowed)


async def copy_response(copy: CachedCopy) -> Response:
    """Return the cached copy as a separate page; built in a thread, since a large one takes a while."""
    text = await run_in_threadpool(_render_copy, copy)
    return Response(text.encode(errors="replace"), headers=COPY_HEADERS, media_type="text/html")


def _render_copy(copy: CachedCopy) -> str:
    if is_html(copy.content_type, copy.body):
        source = decode_source(copy)
        source = open_templates(source) if parse_page(source).opens_templates else source
        return render_template("cached_body.html", title=copy.title, html=sanitize_html(source, copy.url), text="")
    return render_template("cached_body.html", title=copy.title, html="", text=copy.text[:MAX_CHARACTERS])


def decode_source(copy: CachedCopy) -> str:
    """Decode the HTML of a cached copy by its stored charset; if that is unknown, as a browser would."""
    body = copy.body[:MAX_CHARACTERS]
    codec = find_codec(copy.charset)
    return decode_page(body, copy.content_type).text if codec is None else body.decode(codec, "replace")
