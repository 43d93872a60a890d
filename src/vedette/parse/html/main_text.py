"""Which blocks of a page are its content? By shallow features of each block and of its neighbours.

After Kohlschuetter, Fankhauser and Nejdl, Boilerplate Detection using Shallow Text Features (WSDM 2010): how long a
block is and how much of it is links tells content from the rest nearly as well as anything more clever, as long as
the neighbours have a say. Every block gets a letter:

``o``  out: in a navigation, a footer and the like, or not to be seen.
``P``  prose: at most a third of it is links, and it is long, or ends as a sentence does, or is code or a row of a
       table. Where a class or an id speaks against it, it must be very long and nearly free of links.
``l``  linked: more than a third of it is links.
``c``  chaff: short, and a class or an id speaks against it; or a copyright notice.
``h``  a heading.
``s``  short: anything else, such as items of a list and captions.

Then neighbours decide, as patterns over the letters of the page. One block of links that stands alone in prose is
prose; so is everything short between prose and prose, and next to prose on one side a few blocks are, though a
heading only goes with what follows it. Where ``<main>`` or ``<article>`` hold a fair share of the prose, what is
outside them is out.
"""

import re
from functools import lru_cache
from itertools import compress

from vedette.parse.html.attributes import attributes_of
from vedette.parse.html.walker import HEADING, LINKED, PREFORMATTED, ROW

__all__ = ["APART", "BY_NAME", "CORE", "HIDDEN", "SUSPECT", "content", "content_marks", "zone_of"]

# Four marks, as bits. ``APART``: the element or its role says that it is not content (``<nav>``, ``<footer>``,
# ``role=search``, ``aria-hidden``). ``SUSPECT``: a word of its class or id says so, which is only a hint. ``HIDDEN``: a
# reader does not see it. ``CORE``: the author says that this is the content.


CORE, APART, SUSPECT, HIDDEN = 1, 2, 4, 8
MOST_REMEMBERED = 8_192
LONGEST_REMEMBERED = 200

BY_NAME = {
    **dict.fromkeys(("main", "article"), CORE),
    **dict.fromkeys(("nav", "header", "footer", "aside", "menu"), APART),
    **dict.fromkeys(("button", "select", "label", "noscript", "annotation"), APART),
}
_BY_ROLE = {
    **dict.fromkeys(("main", "article"), CORE),
    **dict.fromkeys(("navigation", "banner", "contentinfo", "search", "complementary"), APART),
    **dict.fromkeys(("menu", "menubar", "toolbar", "dialog", "alertdialog"), APART),
}
_WORDS_AGAINST = """
    ad ads advert advertisement banner bottombar breadcrumb breadcrumbs bylinks byline comments consent cookie cookies
    copyright crumb crumbs disclaimer dropdown foot footer footnav gdpr header hero leftbar leftnav leftside legal links
    login masthead menu menubar modal nav navbar navi navigation navlinks newsletter outbrain overlay pager pagination
    paging popup promo promotion recommended related rightbar rightnav rightside rss search share sharing sidebar
    sidemenu sidenav signup sitenav skip social sponsor sponsored subnav subscribe tabs taboola tagcloud tags teaser
    toc toolbar topbar topnav tracking widget
    """
_AGAINST = frozenset(_WORDS_AGAINST.split())
# Attributes without any of these words give no marks.
_TELLING = _AGAINST | {"hidden", "style", "role"}
# An element that calls itself content is no menu, whatever else it is: "content has-sidebar".
_WORDS_FOR = "article body content contents entry main page post prose story text wrapper container layout"
_FOR = frozenset(_WORDS_FOR.split())
# Both "sideBar" as a whole and its humps.
_WHOLE_WORDS, _HUMPS = re.compile(r"[a-zA-Z]++"), re.compile(r"[A-Z]?[a-z]++|[A-Z]++(?![a-z])")
_UNSEEN = re.compile(
    r"display\s*+:\s*+none|visibility\s*+:\s*+hidden|font-size\s*+:\s*+0(?![.\d]*[1-9])", re.IGNORECASE
)


def zone_of(written: str) -> int:
    """The marks that attributes give, as they are written in the tag.

    >>> zone_of(' class="left sideBar"') == SUSPECT, zone_of(" hidden") == HIDDEN, zone_of(' class="prose"')
    (True, True, 0)
    """
    return _remembered(written) if len(written) <= LONGEST_REMEMBERED else _zone_of(written)


def _zone_of(written: str) -> int:
    if written.islower() and "&" not in written and _TELLING.isdisjoint(_WHOLE_WORDS.findall(written)):
        return 0
    found = attributes_of(written)
    return _seen(found) | _BY_ROLE.get(found.get("role", "").strip().lower(), 0) | _hinted(found)


# The pages of a site share their attributes, so that most have been judged before.
_remembered = lru_cache(maxsize=MOST_REMEMBERED)(_zone_of)


def _seen(found: dict[str, str]) -> int:
    if "hidden" in found or _UNSEEN.search(found.get("style", "")):
        return HIDDEN
    return APART if found.get("aria-hidden", "").lower() == "true" else 0


def _hinted(found: dict[str, str]) -> int:
    names = f"{found.get('class', '')} {found.get('id', '')}"
    words = {word.lower() for word in _WHOLE_WORDS.findall(names) + _HUMPS.findall(names)}
    return SUSPECT if words & _AGAINST and not words & _FOR else 0


LONG = 90
VERY_LONG = 220
SENTENCE = 20
FAIR_SHARE = 0.3
# Of a sentence, in most scripts: the last ones are the full-width forms, the danda and the Arabic question mark.
_ENDS = frozenset(".!?:;\"')…»”。\uff01\uff1f\uff1a\uff1b\u0964\u061f")
_NOTICES = ("©", "Copyright", "(c)", "(C)")
_NOTICE_STARTS = frozenset(notice[0] for notice in _NOTICES)
_NEVER, _MARKED, _WHOLE = APART | HIDDEN, SUSPECT | HEADING, PREFORMATTED | ROW
_NEIGHBOURS = (
    re.compile(r"(?<=P)l(?=P)"),
    re.compile(r"(?<=P)[sh]++(?=P)"),
    re.compile(r"(?<=P)s{1,3}+"),
    re.compile(r"[sh]{1,3}(?=P)"),
)


def content(texts: list[str], blocks: list[int]) -> list[str]:
    """The blocks that are content, in their order."""
    return list(compress(texts, content_marks(texts, blocks)))


def content_marks(texts: list[str], blocks: list[int]) -> list[bool]:
    """For each block whether it is content; without any prose what is short counts, else all that a reader sees."""
    letters = _letters(texts, blocks)
    if "P" in letters:
        return [letter == "P" for letter in letters]
    if "s" in letters:
        return [letter in "sh" for letter in letters]
    return [bool(text) and not block & HIDDEN for text, block in zip(texts, blocks, strict=True)]


def _letters(texts: list[str], blocks: list[int]) -> str:
    letters = "".join(map(_letter, texts, blocks))
    if _has_core(texts, blocks, letters):
        letters = "".join([letter if block & CORE else "o" for letter, block in zip(letters, blocks, strict=True)])
    return _with_neighbours(letters) if "P" in letters else letters


def _letter(text: str, block: int) -> str:
    if not text or block & _NEVER:
        return "o"
    size = len(text)
    if block & _MARKED:
        return _marked(size, block)
    if (block >> LINKED) * 3 > size:
        return "l"
    if text[0] in _NOTICE_STARTS and text.startswith(_NOTICES):
        return "c"
    return "P" if size >= LONG or block & _WHOLE or (size >= SENTENCE and text[-1] in _ENDS) else "s"


def _marked(size: int, block: int) -> str:
    if not block & SUSPECT:
        return "h"
    return "P" if size >= VERY_LONG and (block >> LINKED) * 8 <= size else "c"


def _has_core(texts: list[str], blocks: list[int], letters: str) -> bool:
    """Whether what its author calls the content holds enough of the prose."""
    inside = outside = 0
    for text, block, letter in zip(texts, blocks, letters, strict=True):
        if letter == "P":
            if block & CORE:
                inside += len(text)
            else:
                outside += len(text)
    return inside > 0 and inside >= FAIR_SHARE * (inside + outside)


def _with_neighbours(letters: str) -> str:
    """What the neighbours of blocks make of them.

    >>> _with_neighbours("cshPsshsPPlPhscsPll")
    'cPPPPPPPPPPPhscPPll'
    """
    for pattern in _NEIGHBOURS:
        letters = pattern.sub(_as_prose, letters)
    return letters


def _as_prose(found: re.Match[str]) -> str:
    return "P" * len(found[0])
