"""Which parts of a page are not its content, by what their authors call them.

Four marks, as bits. ``APART``: the element or its role says that it is not content (``<nav>``, ``<footer>``,
``role=search``, ``aria-hidden``). ``SUSPECT``: a word of its class or id says so, which is only a hint. ``HIDDEN``: a
reader does not see it. ``CORE``: the author says that this is the content.
"""

import re
from functools import lru_cache

from vedette.parse.html.attributes import attributes_of

__all__ = ["APART", "BY_NAME", "CORE", "HIDDEN", "SUSPECT", "zone_of"]

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
