"""What each tag does, by its name."""

import re
from collections.abc import Iterator

from vedette.parse.html.anchors import end_link, link_tag, open_link, picture, picture_link
from vedette.parse.html.attributes import attributes_of
from vedette.parse.html.containers import (
    close_container,
    close_inline,
    close_landmark,
    leave,
    open_article,
    open_container,
    open_header,
    open_inline,
    open_main,
    open_paragraph,
)
from vedette.parse.html.tokenizer import Raw, Token, parts_of, raw_of, tags_within, tokens
from vedette.parse.html.walker import BREAK, HEADING, LINKED, PREFORMATTED, ROW, Action, Scan, end_line
from vedette.parse.html.zones import APART, HIDDEN, SUSPECT

__all__ = ["scanned"]

MOST_HEADINGS = 200
LONGEST_HEADING = 500
LONGEST_NOTICE = 500
LONG_CELL = 100
_RELATED = re.compile("canonical|alternate|&", re.IGNORECASE)
_TEMPLATE = ("template", "/template")


def scanned(text: str) -> Scan:
    """The walk over a page, done."""
    scan = Scan()
    found, rest = tokens(text.replace(BREAK, " "))
    return finished(scan, found, rest)


def finished(scan: Scan, found: Iterator[Token], rest: str) -> Scan:
    """A walk over all tags, and the text after the last of them."""
    scan.walk(_ACTIONS, _unlearnt, found)
    scan.pieces.append(rest)
    scan.end_block()
    end_link(scan)
    _doubt_unclosed(scan)
    return scan


def _doubt_unclosed(scan: Scan) -> None:
    """What was never closed may have swallowed the page, so it proves nothing, and is judged block by block."""
    doubted = APART | SUSPECT
    if scan.zone & doubted:
        first = scan.zones[0].first
        scan.blocks[first:] = [marks & ~doubted for marks in scan.blocks[first:]]


def _space(scan: Scan, _name: str, _attributes: str) -> None:
    scan.pieces.append(" ")


def _cell(scan: Scan, _name: str, _attributes: str) -> None:
    """A row of a table is one block, unless its cells are used to lay out a page, menus and all."""
    if scan.block >> LINKED > LONG_CELL:
        end_line(scan)
    elif scan.pieces[-1] is not BREAK:
        scan.pieces.append(" ")
        scan.block |= ROW


def _close_paragraph(scan: Scan, name: str, attributes: str) -> None:
    if scan.zones and scan.zones[-1].name == "p":
        close_container(scan, name, attributes)
    elif scan.pieces[-1] is not BREAK:
        scan.end_block()


def _open_heading(scan: Scan, name: str, _attributes: str) -> None:
    if name == "h1":
        leave(scan, ("nav",))
    end_line(scan)
    scan.heading_at = len(scan.pieces)
    scan.block |= HEADING


def _close_heading(scan: Scan, name: str, _attributes: str) -> None:
    if scan.heading_at and len(scan.headings) < MOST_HEADINGS and not scan.zone & HIDDEN:
        text = scan.text_since(scan.heading_at, LONGEST_HEADING)
        if text:
            scan.headings.append((int(name[2]), text))
    scan.heading_at = 0
    end_line(scan)


def _open_code(scan: Scan, _name: str, _attributes: str) -> None:
    end_line(scan)
    scan.block |= PREFORMATTED


def _template(scan: Scan, _name: str, _attributes: str) -> None:
    """What stands in a template is no part of the page."""
    depth = 1
    for _, tag in scan.tokens:
        if tag and tag[:9].lower().startswith(_TEMPLATE) and parts_of(tag)[0] in _TEMPLATE:
            depth += -1 if tag[0] == "/" else 1
            if not depth:
                break


def _close_noscript(scan: Scan, name: str, attributes: str) -> None:
    """A page that asks for JavaScript says so here."""
    opened = next((zone for zone in scan.zones if zone.name == "noscript"), None)
    if opened and not scan.wants_script:
        scan.wants_script = "javascript" in scan.text_since(opened.at, LONGEST_NOTICE).lower()
    close_landmark(scan, name, attributes)


def _meta(scan: Scan, _name: str, attributes: str) -> None:
    scan.head.meta(attributes_of(attributes))


def _link_element(scan: Scan, _name: str, attributes: str) -> None:
    """Most of them are style sheets and icons, of which nothing is kept."""
    if _RELATED.search(attributes):
        scan.head.link(attributes_of(attributes))


def _base(scan: Scan, _name: str, attributes: str) -> None:
    scan.head.base_element(attributes_of(attributes))


def _html(scan: Scan, _name: str, attributes: str) -> None:
    scan.head.html_element(attributes_of(attributes))


def _time(scan: Scan, _name: str, attributes: str) -> None:
    if attributes:
        scan.head.time_element(attributes_of(attributes))


def _unlearnt(scan: Scan, tag: str, _attributes: str) -> None:
    """A tag that was not written so before: one with attributes, mostly."""
    if tag.startswith("a "):
        link_tag(scan, tag)
        return
    name = tag.partition(" ")[0]
    attributes = tag[len(name) :]
    if name not in _ACTIONS:
        raw = raw_of(tag)
        if raw is not None:
            _raw(scan, raw)
            return
        name, attributes = parts_of(tag)
    action = _ACTIONS.get(name) if attributes else scan.learnt.get(name)
    if action is None or action is end_line:
        scan.learn(tag, action)
    if action is not None:
        action(scan, name, attributes)


def _raw(scan: Scan, raw: Raw) -> None:
    if raw.name == "title":
        scan.head.title_element(raw.body)
    elif raw.name == "script":
        scan.scripts += 1
        scan.head.script(raw)
    elif raw.name == "svg" and "href" in raw.body:
        for name, attributes in tags_within(raw.body):
            if name in {"a", "A"}:
                picture_link(scan, name, attributes)


_CONTAINERS = "body center dd details dialog div dl fieldset figure form ol section table tbody ul label button select"
_LANDMARKS = "aside footer menu nav annotation"
_BREAKS = """
    li /li tr /tr dt /dt /dd /pre blockquote /blockquote address /address caption /caption hr thead /thead tfoot
    /tfoot figcaption /figcaption legend /legend option /option optgroup summary /summary frameset head /head
    /html /body /listing dir /dir video audio canvas object embed hgroup search /search
    """
_BY_NAME: dict[str, Action] = {
    **dict.fromkeys(_BREAKS.split(), end_line),
    **dict.fromkeys(_CONTAINERS.split(), open_container),
    **{f"/{name}": close_container for name in _CONTAINERS.split()},
    **dict.fromkeys(_LANDMARKS.split(), open_container),
    **{f"/{name}": close_landmark for name in (*_LANDMARKS.split(), "main", "article", "header")},
    **{f"h{level}": _open_heading for level in range(1, 7)},
    **{f"/h{level}": _close_heading for level in range(1, 7)},
    **dict.fromkeys(("br", "input"), _space),
    **dict.fromkeys(("td", "th", "/td", "/th"), _cell),
    "p": open_paragraph,
    "/p": _close_paragraph,
    "span": open_inline,
    "/span": close_inline,
    "main": open_main,
    "article": open_article,
    "header": open_header,
    "noscript": open_container,
    "/noscript": _close_noscript,
    "template": _template,
    "pre": _open_code,
    "listing": _open_code,
    "a": open_link,
    "/a": end_link,
    "area": picture_link,
    "img": picture,
    "meta": _meta,
    "link": _link_element,
    "base": _base,
    "html": _html,
    "time": _time,
}
_INLINE = """
    abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark math nobr path q rp rt ruby s samp small
    strike strong sub sup tt u var wbr source track param col colgroup g use
    """
# What does nothing is in the table as well: it is looked up most.
_ACTIONS: dict[str | None, Action | None] = {
    None: None,
    **dict.fromkeys(_INLINE.split()),
    **{f"/{name}": None for name in _INLINE.split()},
}
_ACTIONS.update(_BY_NAME)
