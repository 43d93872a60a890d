"""HTML tag handlers: the effect of each tag on the scan of a page, by its name."""

import re
from collections.abc import Iterator
from functools import partial
from urllib.parse import unquote

from vedette.parse.html.main_text import BOILERPLATE, ELEMENT_MARKS, HIDDEN, MAIN, SUSPECT, compute_marks
from vedette.parse.html.tokenizer import (
    RawElement,
    Token,
    collapse_space,
    find_tags,
    is_template,
    parse_attributes,
    split_raw,
    split_tag,
    tokenize,
)
from vedette.parse.html.walker import (
    BREAK,
    FLOW,
    HEADING,
    ILLUSTRATED,
    LINKED_SHIFT,
    PREFORMATTED,
    ROW,
    Action,
    Heading,
    Link,
    Scan,
    Zone,
    begin_flow,
    end_line,
)

MAX_LINKS, MAX_HREF_LENGTH, MAX_ANCHOR_LENGTH = 10_000, 8_192, 200
MAX_ZONES = 64  # open containers with marks that are inside others with the same
# The usual form of links: double quotes, no relation, nothing to decode; with their text, if it has no markup.
_SIMPLE_LINK = re.compile(
    r"""a(?:\ (?!href=|rel=)[a-z-]++="[^"]*+")*+\ href="([^"&\0]*+)"(?:\ (?!rel=)[a-z-]++="[^"]*+")*+"""
    r"""(?:>([^<&\0]*+)</a)?+"""
).fullmatch
MAX_SIMPLE_LENGTH = 500
# Twice as fast as calling the class, which passes its arguments one by one.
_make_link = partial(tuple.__new__, Link)
_NOFOLLOW_RELATIONS = frozenset({"nofollow", "ugc", "sponsored"})


def handle_link_tag(scan: Scan, tag: str) -> None:
    """Handle an ``<a>`` tag: begin a link, including its text and end if they are one token."""
    quick = _SIMPLE_LINK(tag) if len(tag) < MAX_SIMPLE_LENGTH and tag.isascii() else None
    if quick is None:
        _handle_slow_link(scan, tag)
        return
    if scan.current_link:
        end_link(scan)
    href, words = quick.groups()
    if scan.heading_at:
        _note_anchor(scan, tag)
    if words is None:
        scan.current_link = href, False
        scan.link_at = len(scan.pieces)
        return
    text = " ".join(words.split())
    if len(text) > MAX_ANCHOR_LENGTH:
        text = text[:MAX_ANCHOR_LENGTH].rstrip()
    if text or (words and scan.pieces[-1] is not BREAK):
        scan.pieces.append(words)
    _add_link(scan, text, (href, False))


def _handle_slow_link(scan: Scan, tag: str) -> None:
    whole = split_raw(tag)
    if whole is None:
        open_link(scan, "a", tag[1:])
        return
    open_link(scan, "a", whole.attributes)
    if whole.body and (scan.pieces[-1] is not BREAK or not whole.body.isspace()):
        scan.pieces.append(whole.body)
    end_link(scan)


def open_link(scan: Scan, _name: str, attributes: str) -> None:
    """Open a link at an ``<a>`` tag, and end the one before it, if that was left open."""
    if scan.current_link:
        end_link(scan)
    if attributes:
        scan.current_link = _parse_target(attributes)
        scan.link_at = len(scan.pieces)
        if scan.heading_at:
            _note_anchor(scan, attributes)
        elif scan.current_link is None:  # <a name="…"></a> before a heading
            scan.id_source, scan.id_at = attributes, len(scan.pieces)


def _parse_target(attributes: str) -> tuple[str, bool] | None:
    """Parse the address of an ``<a>`` tag and whether it is nofollow; None if the address is too long."""
    found = parse_attributes(attributes)
    href = found.get("href")
    if href is None or len(href) > MAX_HREF_LENGTH:
        return None
    return href, not _NOFOLLOW_RELATIONS.isdisjoint(found.get("rel", "").lower().split())


def end_link(scan: Scan, _name: str = "", _attributes: str = "") -> None:
    """End a link at ``</a>``: keep it with its text, or with the alt text of its image."""
    target = scan.current_link
    if target is not None:
        scan.current_link = None
        _add_link(scan, scan.get_text_since(scan.link_at, MAX_ANCHOR_LENGTH), target)


def _add_link(scan: Scan, text: str, target: tuple[str, bool]) -> None:
    href, nofollow = target
    scan.block += len(text) << LINKED_SHIFT
    if scan.alt:
        text, scan.alt = text or scan.alt, ""
    links = scan.links
    if href in links or len(links) >= MAX_LINKS:
        _merge_link(scan, href, text, nofollow=nofollow)
    else:
        links[href] = _make_link((href, text, nofollow))


def _merge_link(scan: Scan, href: str, text: str, *, nofollow: bool) -> None:
    """Merge a link into those of the page: each address once, with its first text; nofollow only if always."""
    known = scan.links.get(href)
    if known and ((text and not known.text) or (known.nofollow and not nofollow)):
        scan.links[href] = Link(href, known.text or text, known.nofollow and nofollow)


def add_image_link(scan: Scan, _name: str, attributes: str) -> None:
    """Add the link of an ``<area>`` tag: a part of an image map."""
    open_link(scan, "", attributes)
    scan.alt = _parse_alt(attributes)
    end_link(scan)


def add_frame_link(scan: Scan, _name: str, attributes: str) -> None:
    """Add the page that a ``<frame>`` or ``<iframe>`` shows as a link: some pages are linked from nowhere else."""
    href = parse_attributes(attributes).get("src", "")
    if 0 < len(href) <= MAX_HREF_LENGTH:
        _add_link(scan, "", (href, False))


def add_image_alt(scan: Scan, _name: str, attributes: str) -> None:
    """Add the alt text of an ``<img>`` tag, which names a link without words; what follows may be its caption."""
    if scan.pieces[-1] is BREAK:
        scan.block |= ILLUSTRATED
    if scan.current_link and not scan.alt:
        scan.alt = _parse_alt(attributes)


def _parse_alt(attributes: str) -> str:
    return collapse_space(parse_attributes(attributes).get("alt", "")[: 4 * MAX_ANCHOR_LENGTH])[
        :MAX_ANCHOR_LENGTH
    ].rstrip()


# An element counts as open according to the number of open elements of its name inside it. Pages leave elements open,
# so the end of a landmark closes everything in it, and content that is not allowed in a navigation closes that.


def open_container(scan: Scan, name: str, attributes: str) -> None:
    """Open a container tag: it ends a paragraph, and may move its content into another zone."""
    if scan.zones and scan.zones[-1].name == "p":
        close_container(scan, "/p", "")
    if scan.pieces[-1] is not BREAK:
        scan.end_block()
    if attributes:
        scan.id_source, scan.id_at = attributes, len(scan.pieces)
    marks = ELEMENT_MARKS.get(name, 0)
    _enter(scan, name, marks | compute_marks(attributes) if attributes else marks)


def _enter(scan: Scan, name: str, marks: int) -> None:
    if marks & ~scan.zone or (marks & (SUSPECT | MAIN) and len(scan.zones) < MAX_ZONES):
        if name in {"p", "span"}:
            scan.end_calm()
        scan.zones.append(Zone(name, marks, scan))
        scan.zone |= marks
    elif scan.zones and scan.zones[-1].name == name:
        scan.zones[-1].depth += 1


def close_container(scan: Scan, name: str, _attributes: str) -> None:
    """Close a container tag: its marks end, if it was the outermost of its name."""
    end_line(scan)
    if scan.zones and scan.zones[-1].name == name[1:]:
        scan.zones[-1].depth -= 1
        if not scan.zones[-1].depth:
            scan.leave_zone()


def close_landmark(scan: Scan, name: str, attributes: str) -> None:
    """Close a landmark tag such as ``</nav>``, and everything left open inside it."""
    if any(zone.name == name[1:] for zone in scan.zones):
        while scan.zones[-1].name != name[1:]:
            scan.leave_zone()
    close_container(scan, name, attributes)


def open_header(scan: Scan, name: str, attributes: str) -> None:
    """Open a ``<header>`` tag: the header of an article is part of it; that of a page is not."""
    if scan.zone & MAIN and not scan.zone & (BOILERPLATE | SUSPECT):
        end_line(scan)
        if scan.zones[-1].name == name:
            scan.zones[-1].depth += 1
    else:
        open_container(scan, name, attributes)


def open_main(scan: Scan, name: str, attributes: str) -> None:
    """Open a ``<main>`` tag: content begins, so everything left open before ends."""
    end_line(scan)
    while scan.zone & (BOILERPLATE | SUSPECT) and not scan.zone & HIDDEN:
        scan.leave_zone()
    open_container(scan, name, attributes)


def open_article(scan: Scan, name: str, attributes: str) -> None:
    """Open an ``<article>`` tag: it is never in a navigation, so one left open ends."""
    close_unclosed(scan, ("nav", "header", "footer"))
    open_container(scan, name, attributes)


def open_paragraph(scan: Scan, name: str, attributes: str) -> None:
    """Open a ``<p>`` or ``<dd>`` tag: most have no marks, and only begin running text."""
    if scan.calm and not compute_marks(attributes):
        scan.cache_action(name + attributes, begin_flow)
        begin_flow(scan)
    else:
        open_container(scan, name, attributes)
        scan.block |= FLOW


def open_inline(scan: Scan, name: str, attributes: str) -> None:
    """Open an inline tag such as ``<span>``, which matters only if it hides something."""
    hides = compute_marks(attributes) & HIDDEN if attributes else 0
    if scan.calm and not hides:
        scan.cache_action(name + attributes, None)
        return
    if hides & ~scan.zone:
        end_line(scan)
    _enter(scan, name, hides)


def close_inline(scan: Scan, name: str, attributes: str) -> None:
    """Close an inline tag such as ``</span>``, which matters only if something hidden ends."""
    if scan.zones and scan.zones[-1].name == name[1:]:
        close_container(scan, name, attributes)


def close_unclosed(scan: Scan, names: tuple[str, ...]) -> None:
    """Close HTML elements that were left open, since a tag began that is not allowed inside them."""
    while scan.zones and scan.zones[-1].name in names:
        scan.leave_zone()


MAX_HEADINGS, MAX_HEADING_LENGTH, MAX_ANCHOR_ID = 2_000, 500, 200
MAX_NOTICE_LENGTH = 500
MIN_PROSE_LENGTH = 200
LONG_CELL = 100
_HAS_ID = re.compile(r"""\b(?:id|name)\s*+=|\bhref\s*+=\s*+["']?#""", re.IGNORECASE)
_USEFUL_RELATIONS = re.compile("canonical|alternate|&", re.IGNORECASE)
_TEMPLATE = ("template", "/template")
_PROGRAM_TYPE = re.compile("javascript|ecmascript|module|babel|typescript", re.IGNORECASE)


def scan_page(text: str) -> Scan:
    """Scan all tags of an HTML page."""
    scan = Scan()
    found, rest = tokenize(text.replace(BREAK, " "))
    return run_scan(scan, found, rest)


def run_scan(scan: Scan, found: Iterator[Token], rest: str) -> Scan:
    """Run a scan over all tags of an HTML page, and the text after the last of them."""
    scan.walk(_ACTIONS, _handle_new_tag, found)
    scan.pieces.append(rest)
    scan.end_block()
    end_link(scan)
    _clear_unclosed(scan)
    return scan


def _clear_unclosed(scan: Scan) -> None:
    """Clear the marks of containers never closed: they may contain the whole page, so they prove nothing."""
    doubted = BOILERPLATE | SUSPECT
    if scan.zone & doubted:
        first = scan.zones[0].first_block
        scan.blocks[first:] = [marks & ~doubted for marks in scan.blocks[first:]]


def _add_space(scan: Scan, _name: str, _attributes: str) -> None:
    scan.pieces.append(" ")


def _handle_cell(scan: Scan, _name: str, _attributes: str) -> None:
    """Handle a table cell tag: a row is one block, unless cells are used to lay out a page, menus included."""
    if scan.block >> LINKED_SHIFT > LONG_CELL:
        end_line(scan)
    elif scan.pieces[-1] is not BREAK:
        scan.pieces.append(" ")
        scan.block |= ROW


def _close_paragraph(scan: Scan, name: str, attributes: str) -> None:
    if scan.zones and scan.zones[-1].name == "p":
        close_container(scan, name, attributes)
    elif scan.pieces[-1] is not BREAK:
        scan.end_block()


def _open_heading(scan: Scan, name: str, attributes: str) -> None:
    if name == "h1":
        close_unclosed(scan, ("nav",))
    end_line(scan)
    scan.heading_at = len(scan.pieces)
    scan.block |= HEADING
    scan.anchor = ""
    if attributes:
        _note_anchor(scan, attributes)
    if not scan.anchor and scan.id_at == scan.heading_at:  # <section id="…"><h2>
        _note_anchor(scan, scan.id_source)


def _note_anchor(scan: Scan, attributes: str) -> None:
    """Note the id that leads to the open heading: its own, that of a tag in it, or where its permalink leads."""
    if scan.anchor or not _HAS_ID.search(attributes):
        return
    found = parse_attributes(attributes)
    href = found.get("href", "")
    anchor = found.get("id") or found.get("name") or (unquote(href[1:]) if href.startswith("#") else "")
    if 0 < len(anchor) <= MAX_ANCHOR_ID and not any(map(str.isspace, anchor)):
        scan.anchor = anchor


def _close_heading(scan: Scan, name: str, _attributes: str) -> None:
    if scan.heading_at and len(scan.headings) < MAX_HEADINGS and not scan.zone & HIDDEN:
        text = scan.get_text_since(scan.heading_at, MAX_HEADING_LENGTH)
        if text:
            scan.headings.append(Heading(int(name[2]), text, scan.anchor, len(scan.blocks)))
    scan.heading_at = 0
    end_line(scan)


def _open_code(scan: Scan, _name: str, _attributes: str) -> None:
    end_line(scan)
    scan.block |= PREFORMATTED


def _skip_template(scan: Scan, _name: str, attributes: str) -> None:
    """Skip the contents of a ``<template>`` tag, unless it is a declared shadow tree."""
    if "shadowrootmode" in attributes.lower():
        end_line(scan)
        return
    depth = 1
    for text, tag in scan.tokens:
        scan.template_characters += 0 if text.isspace() else len(text)
        if tag and tag[:9].lower().startswith(_TEMPLATE) and split_tag(tag)[0] in _TEMPLATE:
            depth += -1 if tag[0] == "/" else 1
            if not depth:
                break


def _close_noscript(scan: Scan, name: str, attributes: str) -> None:
    """Close a ``<noscript>`` tag, and note whether its text asks for JavaScript."""
    opened = next((zone for zone in scan.zones if zone.name == "noscript"), None)
    if opened and opened.depth == 1:
        said = scan.get_text_since(opened.start_piece, MAX_NOTICE_LENGTH)
        if len(said) > MIN_PROSE_LENGTH:  # more than a notice
            scan.template_characters += sum(map(len, scan.pieces[opened.start_piece :]))
        scan.wants_script = scan.wants_script or "javascript" in said.lower()
    close_landmark(scan, name, attributes)


def _handle_meta(scan: Scan, _name: str, attributes: str) -> None:
    scan.head.add_meta(parse_attributes(attributes))


def _handle_link(scan: Scan, _name: str, attributes: str) -> None:
    """Handle a ``<link>`` tag; style sheets and icons, which are most of them, are dropped."""
    if _USEFUL_RELATIONS.search(attributes):
        scan.head.add_link(parse_attributes(attributes))


def _handle_base(scan: Scan, _name: str, attributes: str) -> None:
    scan.head.add_base(parse_attributes(attributes))


def _handle_html(scan: Scan, _name: str, attributes: str) -> None:
    scan.head.add_html(parse_attributes(attributes))


def _handle_time(scan: Scan, _name: str, attributes: str) -> None:
    if attributes:
        scan.head.add_time(parse_attributes(attributes))


def _handle_new_tag(scan: Scan, tag: str, _attributes: str) -> None:
    """Handle a tag that did not occur in this form before in this page: mostly one with attributes."""
    if tag.startswith("a "):
        handle_link_tag(scan, tag)
        return
    name = tag.partition(" ")[0]
    attributes = tag[len(name) :]
    if name not in _ACTIONS:
        raw = split_raw(tag)
        if raw is not None:
            _handle_raw(scan, raw)
            return
        name, attributes = split_tag(tag)
    action = _ACTIONS.get(name) if attributes else scan.cached_actions.get(name)
    if action is None or action is end_line or action is begin_flow:
        scan.cache_action(tag, action)
    if action is not None:
        action(scan, name, attributes)


def _handle_raw(scan: Scan, raw: RawElement) -> None:
    if raw.name == "title":
        scan.head.add_title(raw.body)
    elif raw.name == "script":
        _handle_script(scan, raw)
    elif raw.name == "iframe":
        add_frame_link(scan, raw.name, raw.attributes)
    elif raw.name == "svg" and "href" in raw.body:
        for name, attributes in find_tags(raw.body):
            if name in {"a", "A"}:
                add_image_link(scan, name, attributes)


def _handle_script(scan: Scan, raw: RawElement) -> None:
    """Handle a ``<script>``: program, linked data, or a template of HTML."""
    scan.head.add_script(raw)
    scan.script_characters += len(raw.body)
    if is_template(raw):
        scan.template_characters += len(raw.body)
        scan.scripts += 1
    elif "type" not in raw.attributes or _PROGRAM_TYPE.search(raw.attributes):
        scan.scripts += 1


_CONTAINERS = "body center details dialog div dl fieldset figure form ol section table tbody ul label button select"
_LANDMARKS = "aside footer menu nav annotation figcaption"
_BREAKS = """
    /li tr /tr /dt /pre /blockquote address /address caption /caption hr thead /thead tfoot
    /tfoot legend /legend option /option optgroup summary /summary frameset head /head
    /html /body /listing dir /dir video audio canvas object embed hgroup search /search
    """
_BY_NAME: dict[str, Action] = {
    **dict.fromkeys(_BREAKS.split(), end_line),
    **dict.fromkeys(("li", "dt", "blockquote"), begin_flow),
    **dict.fromkeys(_CONTAINERS.split(), open_container),
    **{f"/{name}": close_container for name in _CONTAINERS.split()},
    **dict.fromkeys(_LANDMARKS.split(), open_container),
    **{f"/{name}": close_landmark for name in (*_LANDMARKS.split(), "main", "article", "header")},
    **{f"h{level}": _open_heading for level in range(1, 7)},
    **{f"/h{level}": _close_heading for level in range(1, 7)},
    **dict.fromkeys(("br", "input"), _add_space),
    **dict.fromkeys(("td", "th", "/td", "/th"), _handle_cell),
    "dd": open_paragraph,
    "/dd": close_container,
    "p": open_paragraph,
    "/p": _close_paragraph,
    "span": open_inline,
    "/span": close_inline,
    "main": open_main,
    "article": open_article,
    "header": open_header,
    "noscript": open_container,
    "/noscript": _close_noscript,
    "template": _skip_template,
    "pre": _open_code,
    "listing": _open_code,
    "a": open_link,
    "/a": end_link,
    "area": add_image_link,
    "frame": add_frame_link,
    "img": add_image_alt,
    "meta": _handle_meta,
    "link": _handle_link,
    "base": _handle_base,
    "html": _handle_html,
    "time": _handle_time,
}
_INLINE = """
    abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark math nobr path q rp rt ruby s samp small
    strike strong sub sup tt u var wbr source track param col colgroup g use
    """
# Tags without effect are in the table as well: they are looked up most.
_ACTIONS: dict[str | None, Action | None] = {
    None: None,
    **dict.fromkeys(_INLINE.split()),
    **{f"/{name}": None for name in _INLINE.split()},
}
_ACTIONS.update(_BY_NAME)
