"""Ordinary pages of the synthetic web: an article with a title, links in it and below it, perhaps a rotating box.

The text is made of paragraphs in four groups. Each edit rewrites one group, so most of the page stays the same. Links
are chosen once, from pages born before this one and from stock pages of other hosts; they keep pointing to where a page
was born, even after it has moved or died, as links of the real web do.
"""

import time
from functools import lru_cache
from typing import NamedTuple

import xxhash

from vedette.lab.worlds.synthetic import page_traits as traits
from vedette.lab.worlds.synthetic.change_times import PARAGRAPH_GROUPS, edit_state, last_event
from vedette.lab.worlds.synthetic.grammar import Prose, person_name
from vedette.lab.worlds.synthetic.hashing import LCG_INCREMENT, LCG_MULTIPLIER, MASK_64, hash_key, mix
from vedette.lab.worlds.synthetic.page_template import NOINDEX, render_page
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.synthetic.topics import MONTHS
from vedette.lab.worlds.synthetic.validators import is_not_modified, validator_headers
from vedette.lab.worlds.synthetic.web import PageRequest, SyntheticWeb, build_id
from vedette.lab.worlds.world import Reply
from vedette.timeutil import DAY_S

HTML = ("content-type", "text/html; charset=utf-8")

_PAGES_PER_NEIGHBOURHOOD = 32
_RELATED_LINKS = 18
_INLINE_LINKS = 12


class PageState(NamedTuple):
    """State of an ordinary page that determines its bytes at one moment; a tuple for speed, as ``PageRequest``."""

    number: int
    page_hash: int
    life_hash: int
    status_hash: int
    birth_s: float
    shown: tuple[int, ...]
    rebuild: int
    box_period_s: float
    box_turn: int
    modified_s: float

    @property
    def version(self) -> str:
        """Return the version name of an ordinary page's bytes; equal names mean equal bytes."""
        return xxhash.xxh3_64_hexdigest(repr((self.number, self.box_turn, self.rebuild, self.shown)).encode())


def page_state(site: Site, number: int, first: int, now_s: float) -> PageState:
    """Return the state of an ordinary page alive now; its modified time is that of its last changed part."""
    second, birth_s = traits.life_hash(first), site.births.birth_s(number)
    text = edit_state(traits.change_process(site, second), birth_s, now_s)
    rebuilt_s, rebuild = last_event(site.rebuilds, now_s)
    period_s = traits.box_period_s(site, second)
    turn = int(now_s // period_s) if period_s else 0
    modified_s = float(int(max(birth_s, text.last_s, rebuilt_s, turn * period_s)))
    third = traits.status_hash(second)
    return PageState(number, first, second, third, birth_s, text.shown, rebuild, period_s, turn, modified_s)


def page_reply(web: SyntheticWeb, visit: PageRequest, state: PageState, *, path: bytes, plain: bool = False) -> Reply:
    """Return the reply with an ordinary page, or 304 if the client has it; ``plain`` is the print version."""
    site = visit.site
    stamped = validator_headers(site.validators, state.version, state.modified_s, visit.now_s)
    if is_not_modified(visit.request, stamped):
        return Reply(304, stamped, b"")
    part = traits.page_section(site, state.page_hash)
    heading = traits.page_title(site, state.page_hash)
    main = _article(site, state, part.prose, heading)
    if not plain:
        main = _insert_links(web, site, state, main) + _below_article(web, site, state, part.prose)
    description = part.prose.sentence(state.page_hash)
    body = render_page(web.templates[site.index], heading, description, path, main, build_id(site, state.rebuild))
    if not traits.is_indexable(state.status_hash):
        body = body.replace(b"<style>", NOINDEX + b"<style>", 1)
    return Reply(200, (HTML, *stamped), body)


def _article(site: Site, state: PageState, prose: Prose, heading: bytes) -> list[bytes]:
    """Build an ordinary page's article: title, byline, and four groups of paragraphs, later ones as chapters."""
    key, count = state.life_hash, traits.paragraph_count(site, state.page_hash)
    reprint = traits.reprinted_article(site, state.status_hash)
    if reprint >= 0:
        key = hash_key(prose.topic.slug, "agency", reprint)
        count = 8 + key % 8
    parts = [b"<article>\n<h1>", heading, b"</h1>\n", _byline(site, state)]
    texts, size = prose.paragraphs, len(prose.paragraphs)
    for group, edit in enumerate(state.shown):
        word = mix(key + group + (edit << 2))
        if group:
            parts.append(prose.chapters[word % len(prose.chapters)])
        for _ in range((count - group - 1) // PARAGRAPH_GROUPS + (not group)):
            word = (word * LCG_MULTIPLIER + LCG_INCREMENT) & MASK_64
            parts.append(texts[(word >> 32) % size])
    parts.append(b"</article>\n")
    return parts


def _byline(site: Site, state: PageState) -> bytes:
    word, date = state.life_hash >> 9, _long_date(int(state.birth_s // DAY_S))
    match site.kind.name:
        case "shop":
            text = f"{3 + word % 400}.{(word >> 9) % 100:02} euros, on sale since {date}"
        case "forum":
            text = f"Thread started by {person_name(word)} on {date}"
        case "documentation":
            text = f"Applies to version {1 + word % 9}.{(word >> 9) % 20}, written {date}"
        case "university":
            text = f"Contact: {person_name(word)}. Published {date}"
        case _:
            text = f"By {person_name(word)}, {date}"
    return f'<p class="byline">{text}</p>\n'.encode()


@lru_cache(maxsize=8192)
def _long_date(day: int) -> str:
    year, month, day_of_month = time.gmtime(day * DAY_S)[:3]
    return f"{day_of_month} {MONTHS[month - 1]} {year}"


def _insert_links(web: SyntheticWeb, site: Site, state: PageState, article: list[bytes]) -> list[bytes]:
    """Insert links to other pages between an article's paragraphs, more in a longer one."""
    word = mix(state.life_hash ^ 1)
    near = _neighbourhood_links(site, state.number // _PAGES_PER_NEIGHBOURHOOD)[1]
    for place in range(min(len(article) - 2, 29), 5, -3):
        word = (word * LCG_MULTIPLIER + LCG_INCREMENT) & MASK_64
        links = web.inline_links if place % 2 else near
        article.insert(place, links[(word >> 32) % len(links)])
    return [web.templates[site.index].breadcrumbs[traits.section_index(site, state.page_hash)], *article]


def _pick_older(number: int, word: int) -> int:
    """Pick an older page for an article to link to: a near neighbor, or an early page that many link to."""
    if word & 1:
        return number - 1 - (word >> 8) % min(number, 40)
    share = (word >> 8 & 0xFFFF) / 65536
    return int(number * share * share)


def _below_article(web: SyntheticWeb, site: Site, state: PageState, prose: Prose) -> list[bytes]:
    """Build what is below an ordinary page's article: links to its copies, a rotating box, and further reading."""
    word, items = mix(state.life_hash ^ 2), web.list_links
    return [
        *_copy_links(site, state),
        _box(state, prose) if state.box_period_s else b"",
        _neighbourhood_links(site, state.number // _PAGES_PER_NEIGHBOURHOOD)[0],
        b"<h2>Elsewhere</h2>\n<ul>\n",
        items[word % len(items)],
        items[(word >> 16) % len(items)],
        items[(word >> 32) % len(items)],
        items[(word >> 48) % len(items)],
        b'</ul>\n<p class="tags">Tags: ',
        *(web.templates[site.index].tags[tag] + b" " for tag in dict.fromkeys(traits.page_tags(site, state.page_hash))),
        b"</p>\n",
    ]


@lru_cache(maxsize=4096)
def _neighbourhood_links(site: Site, place: int) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the links shared by a run of consecutive ordinary pages: a list of older pages, and inline asides."""
    edge = place * _PAGES_PER_NEIGHBOURHOOD or min(_PAGES_PER_NEIGHBOURHOOD, site.births.stock)
    words = (mix(site.key ^ (edge << 8) + turn) for turn in range(_RELATED_LINKS + _INLINE_LINKS))
    anchors = [traits.page_link(site, _pick_older(edge, word)) for word in words]
    items = b"".join(b"<li>%b</li>\n" % link for link in dict.fromkeys(anchors[:_RELATED_LINKS]))
    asides = tuple(b"<p>There is more on this in %b.</p>\n" % link for link in anchors[_RELATED_LINKS:])
    return b"<h2>More to read</h2>\n<ul>\n%b</ul>\n" % items, asides


def _copy_links(site: Site, state: PageState) -> list[bytes]:
    """Return links to copies of an ordinary page (other URL spellings), which name the clean URL as canonical."""
    links = []
    if "print" in site.features:
        links.append(b'<p class="tags"><a href="?print=1">Print this page</a></p>\n')
    if "sorted" in site.features:
        links.append(b'<p class="tags"><a href="?sort=newest">Newest</a> <a href="?sort=oldest">Oldest</a></p>\n')
    if "tracking" in site.features and state.number:
        path = traits.page_path(site, state.number - 1, traits.page_hash(site, state.number - 1))
        links.append(b'<p class="tags"><a href="%b?utm_source=page&amp;utm_medium=link">Just before</a></p>\n' % path)
    return links


def _box(state: PageState, prose: Prose) -> bytes:
    period = b"hour" if state.box_period_s > 60 else b"minute"
    return b"<aside><h2>Note of the %b</h2>\n<p>%b</p></aside>\n" % (period, prose.sentence(state.box_turn))
