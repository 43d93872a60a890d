"""Links of a page: where they lead as written, what they are called, and whether their author vouches for them."""

import re
from functools import partial

from vedette.parse.html.attributes import attributes_of, folded
from vedette.parse.html.tokenizer import raw_of
from vedette.parse.html.walker import BREAK, LINKED, Link, Scan

__all__ = ["end_link", "link_tag", "open_link", "picture", "picture_link"]

MOST_LINKS = 10_000
LONGEST_HREF = 8_192
LONGEST_ANCHOR = 200
# Links as most are written: double quotes, no relation, nothing to decode; and their words, where they have no markup.
_QUICK = re.compile(
    r"""a(?:\ (?!href=|rel=)[a-z-]++="[^"]*+")*+\ href="([^"&\0]*+)"(?:\ (?!rel=)[a-z-]++="[^"]*+")*+"""
    r"""(?:>([^<&\0]*+)</a)?+"""
).fullmatch
LONGEST_QUICK = 500
# Twice as fast as to call the class, which hands its arguments on one by one.
_made = partial(tuple.__new__, Link)
_UNVOUCHED = frozenset({"nofollow", "ugc", "sponsored"})


def link_tag(scan: Scan, tag: str) -> None:
    """A link begins, its words and its end included where they are one token."""
    quick = _QUICK(tag) if len(tag) < LONGEST_QUICK and tag.isascii() else None
    if quick is None:
        _link_tag(scan, tag)
        return
    if scan.opened:
        end_link(scan)
    href, words = quick.groups()
    if words is None:
        scan.opened = href, False
        scan.link_at = len(scan.pieces)
        return
    text = " ".join(words.split())
    if len(text) > LONGEST_ANCHOR:
        text = text[:LONGEST_ANCHOR].rstrip()
    if text or (words and scan.pieces[-1] is not BREAK):
        scan.pieces.append(words)
    _keep(scan, text, (href, False))


def _link_tag(scan: Scan, tag: str) -> None:
    whole = raw_of(tag)
    if whole is None:
        open_link(scan, "a", tag[1:])
        return
    open_link(scan, "a", whole.attributes)
    if whole.body and (scan.pieces[-1] is not BREAK or not whole.body.isspace()):
        scan.pieces.append(whole.body)
    end_link(scan)


def open_link(scan: Scan, _name: str, attributes: str) -> None:
    """A link begins, and so ends the one before it, if that was left open."""
    if scan.opened:
        end_link(scan)
    if attributes:
        scan.opened = _target(attributes)
        scan.link_at = len(scan.pieces)


def _target(attributes: str) -> tuple[str, bool] | None:
    """Where a link leads and whether it is not vouched for; an address of kilobytes is nobody's."""
    found = attributes_of(attributes)
    href = found.get("href")
    if href is None or len(href) > LONGEST_HREF:
        return None
    return href, not _UNVOUCHED.isdisjoint(found.get("rel", "").lower().split())


def end_link(scan: Scan, _name: str = "", _attributes: str = "") -> None:
    """Keep a link with its words, or with those for its picture."""
    target = scan.opened
    if target is not None:
        scan.opened = None
        _keep(scan, scan.text_since(scan.link_at, LONGEST_ANCHOR), target)


def _keep(scan: Scan, text: str, target: tuple[str, bool]) -> None:
    href, nofollow = target
    scan.block += len(text) << LINKED
    if scan.alt:
        text, scan.alt = text or scan.alt, ""
    links = scan.links
    if href in links or len(links) >= MOST_LINKS:
        _keep_again(scan, href, text, nofollow=nofollow)
    else:
        links[href] = _made((href, text, nofollow))


def _keep_again(scan: Scan, href: str, text: str, *, nofollow: bool) -> None:
    """Each address once, with the first words that anybody has for it; vouched for once is vouched for."""
    known = scan.links.get(href)
    if known and ((text and not known.text) or (known.nofollow and not nofollow)):
        scan.links[href] = Link(href, known.text or text, known.nofollow and nofollow)


def picture_link(scan: Scan, _name: str, attributes: str) -> None:
    """A part of a picture that is a link."""
    open_link(scan, "", attributes)
    scan.alt = _alternative(attributes)
    end_link(scan)


def picture(scan: Scan, _name: str, attributes: str) -> None:
    """What a picture shows is what a link without words is called."""
    if scan.opened and not scan.alt:
        scan.alt = _alternative(attributes)


def _alternative(attributes: str) -> str:
    return folded(attributes_of(attributes).get("alt", "")[: 4 * LONGEST_ANCHOR])[:LONGEST_ANCHOR].rstrip()
