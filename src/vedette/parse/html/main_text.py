"""Find the main text of an HTML page: which blocks are content, by shallow features of blocks and neighbors.

After Kohlschuetter, Fankhauser and Nejdl, Boilerplate Detection using Shallow Text Features (WSDM 2010): the length of
a block and the share of links in it separate content from the rest nearly as well as anything more elaborate, as long
as neighbors are taken into account. Every block gets a letter:

``o``  out: in a navigation, a footer and the like, or not to be seen.
``P``  prose: at most a third of it is links, and it is long, or ends as a sentence does, or is code or a row of a
       table. Where a class or an id speaks against it, it must be very long and nearly free of links.
``l``  linked: more than a third of it is links.
``c``  chaff: short, and a class or an id speaks against it; or a copyright notice.
``h``  a heading.
``s``  short: anything else, such as items of a list and captions.

Then neighbors decide, as patterns over the letters of the page. A single block of links within prose is prose; so is
everything short between prose and prose. Next to prose on one side a few blocks are prose too, but a heading only
belongs to what follows it. If ``<main>`` or ``<article>`` contain a fair share of the prose, everything outside them is
out.
"""

import re
from functools import lru_cache

from vedette.parse.html.tokenizer import parse_attributes
from vedette.parse.html.walker import HEADING, LINKED_SHIFT, PREFORMATTED, ROW

# Four marks, as bits. ``BOILERPLATE``: the element or its role says that it is not content (``<nav>``, ``<footer>``,
# ``role=search``, ``aria-hidden``). ``SUSPECT``: a word of its class or id says so, which is only a hint. ``HIDDEN``:
# readers do not see it. ``MAIN``: the author says that this is the content.


MAIN, BOILERPLATE, SUSPECT, HIDDEN = 1, 2, 4, 8
MAX_CACHED = 8_192
MAX_CACHED_LENGTH = 200

ELEMENT_MARKS = {
    **dict.fromkeys(("main", "article"), MAIN),
    **dict.fromkeys(("nav", "header", "footer", "aside", "menu"), BOILERPLATE),
    **dict.fromkeys(("button", "select", "label", "noscript", "annotation"), BOILERPLATE),
}
_ROLE_MARKS = {
    **dict.fromkeys(("main", "article"), MAIN),
    **dict.fromkeys(("navigation", "banner", "contentinfo", "search", "complementary"), BOILERPLATE),
    **dict.fromkeys(("menu", "menubar", "toolbar", "dialog", "alertdialog"), BOILERPLATE),
}
_SUSPECT_WORD_LIST = """
    ad ads advert advertisement banner bottombar breadcrumb breadcrumbs bylinks byline comments consent cookie cookies
    copyright crumb crumbs disclaimer dropdown foot footer footnav gdpr header hero leftbar leftnav leftside legal links
    login masthead menu menubar modal nav navbar navi navigation navlinks newsletter outbrain overlay pager pagination
    paging popup promo promotion recommended related rightbar rightnav rightside rss search share sharing sidebar
    sidemenu sidenav signup sitenav skip social sponsor sponsored subnav subscribe tabs taboola tagcloud tags teaser
    toc toolbar topbar topnav tracking widget
    """
_SUSPECT_WORDS = frozenset(_SUSPECT_WORD_LIST.split())
# Attributes without any of these words give no marks.
_CHECKED_WORDS = _SUSPECT_WORDS | {"hidden", "style", "role"}
# An element that calls itself content is no menu, whatever else it contains: "content has-sidebar".
_CONTENT_WORD_LIST = "article body content contents entry main page post prose story text wrapper container layout"
_CONTENT_WORDS = frozenset(_CONTENT_WORD_LIST.split())
# Both "sideBar" as a whole and its parts.
_WHOLE_WORDS, _HUMPS = re.compile(r"[a-zA-Z]++"), re.compile(r"[A-Z]?[a-z]++|[A-Z]++(?![a-z])")
_HIDDEN_STYLE = re.compile(
    r"display\s*+:\s*+none|visibility\s*+:\s*+hidden|font-size\s*+:\s*+0(?![.\d]*[1-9])", re.IGNORECASE
)


def compute_marks(written: str) -> int:
    """Compute the main-text marks (hidden, suspect ...) that a tag's raw attributes give its blocks.

    >>> compute_marks(' class="left sideBar"') == SUSPECT, compute_marks(" hidden") == HIDDEN
    (True, True)
    >>> compute_marks(' class="prose"')
    0
    """
    return _get_cached_marks(written) if len(written) <= MAX_CACHED_LENGTH else _compute_marks(written)


def _compute_marks(written: str) -> int:
    if written.islower() and "&" not in written and _CHECKED_WORDS.isdisjoint(_WHOLE_WORDS.findall(written)):
        return 0
    found = parse_attributes(written)
    return _mark_hidden(found) | _ROLE_MARKS.get(found.get("role", "").strip().lower(), 0) | _mark_suspect(found)


# The pages of a site share their attributes, so most are cached.
_get_cached_marks = lru_cache(maxsize=MAX_CACHED)(_compute_marks)


def _mark_hidden(found: dict[str, str]) -> int:
    if "hidden" in found or _HIDDEN_STYLE.search(found.get("style", "")):
        return HIDDEN
    return BOILERPLATE if found.get("aria-hidden", "").lower() == "true" else 0


def _mark_suspect(found: dict[str, str]) -> int:
    names = f"{found.get('class', '')} {found.get('id', '')}"
    words = {word.lower() for word in _WHOLE_WORDS.findall(names) + _HUMPS.findall(names)}
    return SUSPECT if words & _SUSPECT_WORDS and not words & _CONTENT_WORDS else 0


LONG_LENGTH = 90
VERY_LONG_LENGTH = 220
SENTENCE_LENGTH = 20
MIN_CORE_SHARE = 0.3
# Ends of sentences in most scripts: the last ones are the full-width forms, the danda and the Arabic question mark.
_ENDS = frozenset(".!?:;\"')…»”。\uff01\uff1f\uff1a\uff1b\u0964\u061f")
_NOTICES = ("©", "Copyright", "(c)", "(C)")
_NOTICE_STARTS = frozenset(notice[0] for notice in _NOTICES)
_EXCLUDED, _MARKED, _KEPT_WHOLE = BOILERPLATE | HIDDEN, SUSPECT | HEADING, PREFORMATTED | ROW
_NEIGHBOURS = (
    re.compile(r"(?<=P)l(?=P)"),
    re.compile(r"(?<=P)[sh]++(?=P)"),
    re.compile(r"(?<=P)s{1,3}+"),
    re.compile(r"[sh]{1,3}(?=P)"),
)


def mark_content(texts: list[str], blocks: list[int]) -> list[bool]:
    """Mark for each block of an HTML page whether it is main text.

    Without any prose short blocks count, else everything visible.
    """
    letters = "".join(map(_classify_block, texts, blocks))
    if _has_core(texts, blocks, letters):
        letters = "".join([letter if block & MAIN else "o" for letter, block in zip(letters, blocks, strict=True)])
    letters = _apply_neighbours(letters) if "P" in letters else letters
    if "P" in letters:
        return [letter == "P" for letter in letters]
    if "s" in letters:
        return [letter in "sh" for letter in letters]
    return [bool(text) and not block & HIDDEN for text, block in zip(texts, blocks, strict=True)]


def _classify_block(text: str, block: int) -> str:
    if not text or block & _EXCLUDED:
        return "o"
    size = len(text)
    if block & _MARKED:
        return _classify_marked(size, block)
    if (block >> LINKED_SHIFT) * 3 > size:
        return "l"
    if text[0] in _NOTICE_STARTS and text.startswith(_NOTICES):
        return "c"
    return "P" if size >= LONG_LENGTH or block & _KEPT_WHOLE or (size >= SENTENCE_LENGTH and text[-1] in _ENDS) else "s"


def _classify_marked(size: int, block: int) -> str:
    if not block & SUSPECT:
        return "h"
    return "P" if size >= VERY_LONG_LENGTH and (block >> LINKED_SHIFT) * 8 <= size else "c"


def _has_core(texts: list[str], blocks: list[int], letters: str) -> bool:
    """Check whether ``<main>`` or ``<article>`` holds enough of the prose to be taken as the main text."""
    inside = outside = 0
    for text, block, letter in zip(texts, blocks, letters, strict=True):
        if letter == "P":
            if block & MAIN:
                inside += len(text)
            else:
                outside += len(text)
    return inside > 0 and inside >= MIN_CORE_SHARE * (inside + outside)


def _apply_neighbours(letters: str) -> str:
    """Reclassify blocks of an HTML page by their neighbors, as patterns over the letters of the blocks.

    >>> _apply_neighbours("cshPsshsPPlPhscsPll")
    'cPPPPPPPPPPPhscPPll'
    """
    for pattern in _NEIGHBOURS:
        letters = pattern.sub(_to_prose, letters)
    return letters


def _to_prose(found: re.Match[str]) -> str:
    return "P" * len(found[0])
