"""Find the main text of an HTML page: which blocks are content, by shallow features of blocks and neighbors.

After Kohlschuetter, Fankhauser and Nejdl, Boilerplate Detection using Shallow Text Features (WSDM 2010): the length of
a block and the share of links in it separate content from the rest nearly as well as anything more elaborate, as long
as neighbors are taken into account. Every block gets a letter:

``o``  out: in a navigation, a footer and the like, or not visible.
``P``  prose: mostly not links, and long, or it ends as a sentence does, or is code or a row of a table.
``l``  linked: more than a third of it is links; ``L``: most of it.
``c``  chaff: a class or an id speaks against it, or it is a caption or a copyright notice.
``h``  a heading.
``s``  short: anything else, such as items of a list.
``b``  bare: not in a paragraph, list or table, on a page that has nearly all of its prose in those. Captions, dates
       and buttons are bare. A long sentence that does not follow an image is prose all the same, and so is what is
       next to code.

Containers decide first. One that holds most of the prose is content, whatever its class says, and so is a very long
paragraph; if most prose is hidden, a script shows it. If ``<main>`` or ``<article>`` contain a fair share of the prose,
everything outside them is out; of several articles the page's own one counts. Then neighbors decide, as patterns over
the letters of the page: everything short or partly linked between prose and prose is prose, and so is a single block of
links. Next to prose on one side a few short blocks are prose too, but a heading only belongs to what follows it.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, compress

from vedette.parse.html.tokenizer import parse_attributes
from vedette.parse.html.walker import FLOW, HEADING, ILLUSTRATED, LINKED_SHIFT, PREFORMATTED, ROW, Span

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
    "figcaption": SUSPECT,
}
_ROLE_MARKS = {
    **dict.fromkeys(("main", "article"), MAIN),
    **dict.fromkeys(("navigation", "banner", "contentinfo", "search", "complementary"), BOILERPLATE),
    **dict.fromkeys(("menu", "menubar", "toolbar", "dialog", "alertdialog"), BOILERPLATE),
}
_SUSPECT_WORD_LIST = """
    ad ads banner bottombar bylinks byline cookie cookies crumb crumbs dropdown foot footer footnav header hero
    leftbar leftnav leftside legal links login masthead menu menubar modal nav navbar navi navigation navlinks
    overlay pager paging popup promotion rightbar rightnav rightside rss search share sidebar sidemenu sidenav
    signup sitenav skip sponsor sponsored subnav subscribe tabs tagcloud toc toolbar topbar topnav tracking widget
    """
_SUSPECT_WORDS = frozenset(_SUSPECT_WORD_LIST.split())
# Words that say so even next to one for content: "comment-body".
_STRONG_WORD_LIST = """
    advert advertisement author authors bio breadcrumb breadcrumbs caption captions comment comments consent
    copyright credit disclaimer gdpr newsletter outbrain pagination paywall promo recommended regwall related
    sharing social subscription taboola tags teaser upsell
    """
_STRONG_WORDS = frozenset(_STRONG_WORD_LIST.split())
# Attributes without any of these words give no marks.
_CHECKED_WORDS = _STRONG_WORDS | _SUSPECT_WORDS | {"hidden", "style", "role"}
# An element that calls itself content is no menu, whatever else it contains: "content has-sidebar".
_CONTENT_WORD_LIST = "article body content contents entry main page post prose story text wrapper container layout"
_CONTENT_WORDS = frozenset(_CONTENT_WORD_LIST.split())
# A post's other classes are the names of its author, categories and tags; an id of many words is a heading.
_POST_CLASSES, SLUG_HYPHENS = frozenset({"hentry", "h-entry", "type-post"}), 4
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
    classes, identity = found.get("class", "").split(), found.get("id", "")
    if not _POST_CLASSES.isdisjoint(classes):
        return 0
    names = found.get("class", "") + (f" {identity}" if identity.count("-") < SLUG_HYPHENS else "")
    words = {word.lower() for word in _WHOLE_WORDS.findall(names) + _HUMPS.findall(names)}
    if words & _STRONG_WORDS or "hidden" in classes:
        return SUSPECT
    return SUSPECT if words & _SUSPECT_WORDS and not words & _CONTENT_WORDS else 0


LONG_LENGTH = 90
VERY_LONG_LENGTH = 220
SENTENCE_LENGTH = 20
MIN_CORE_SHARE = 0.2
# A container with this share of the prose is content, whatever its class says.
MIN_CLEARED_SHARE = 0.5
# Of several articles one with this share of their prose is the page's own; the others are teasers or comments.
MIN_ARTICLE_SHARE = 0.6
# The first with this share of the largest is the page's own: longer ones may follow that a script appends.
MIN_RIVAL_SHARE = 0.5
# Where this share of the prose is in paragraphs and lists, other short texts are captions, dates and buttons.
MIN_FLOW_SHARE = 0.8
# Hidden paragraphs are shown by a script if they are at least this long, and this share of the prose.
MIN_REVEALED_LENGTH, MIN_REVEALED_SHARE = 1_000, 0.7
# Repeated captions and teasers are at most this share of the prose.
MAX_REPEATED_SHARE = 0.2
# Ends of sentences in most scripts: the last ones are the full-width forms, the danda and the Arabic question mark.
_ENDS = frozenset(".!?:;\"')…»”。\uff01\uff1f\uff1a\uff1b\u0964\u061f")
_NOTICES = ("©", "Copyright", "(c)", "(C)")
_NOTICE_STARTS = frozenset(notice[0] for notice in _NOTICES)
_EXCLUDED, _MARKED, _KEPT_WHOLE = BOILERPLATE | HIDDEN, SUSPECT | HEADING, PREFORMATTED | ROW
_FLOWING = FLOW | PREFORMATTED | ROW
_BESIDE_CODE = re.compile("[bc](?=k)|(?<=k)[bc]")
_NEIGHBOURS = (
    re.compile(r"h(?=[bhs]{0,5}P)"),
    re.compile(r"(?<=P)L(?=P)"),
    re.compile(r"(?<=P)[lsh]++(?=P)"),
    re.compile(r"(?<=P)s{1,3}+"),
    re.compile(r"[sh]{1,3}(?=P)"),
)


def mark_content(texts: list[str], blocks: list[int], spans: Sequence[Span] = ()) -> list[bool]:
    """Mark for each block of an HTML page whether it is main text; ``spans`` are its containers with marks.

    Without any prose short blocks count, else everything visible.
    """
    blocks = _clear_suspects(texts, _reveal(texts, blocks), spans)
    letters = "".join(map(_classify_block, texts, blocks))
    core = _find_core(texts, blocks, letters, spans)
    if core:
        letters = "".join([letter if inside else "o" for letter, inside in zip(letters, core, strict=True)])
    letters = _drop_bare(texts, blocks, letters)
    letters = _drop_repeated(texts, letters)
    letters = _apply_neighbours(letters) if "P" in letters else letters
    if "P" in letters:
        return [letter == "P" for letter in letters]
    if "s" in letters:
        return [letter in "sh" for letter in letters]
    return [bool(text) and not block & HIDDEN for text, block in zip(texts, blocks, strict=True)]


def _reveal(texts: list[str], blocks: list[int]) -> list[int]:
    """Take hidden text as seen, if it is nearly all prose of the page: a script shows it."""
    hidden = shown = 0
    for text, block in zip(texts, blocks, strict=True):
        if len(text) >= LONG_LENGTH:
            if block & HIDDEN:
                hidden += len(text) if block & FLOW else 0
            else:
                shown += len(text)
    if hidden < MIN_REVEALED_LENGTH or hidden < MIN_REVEALED_SHARE * (hidden + shown):
        return blocks
    return [block & ~HIDDEN for block in blocks]


def _clear_suspects(texts: list[str], blocks: list[int], spans: Sequence[Span]) -> list[int]:
    """Clear the doubt about containers that hold most of the prose; containers in them may stay suspect.

    Paragraphs are cleared if they are very long, or hold most of the prose together.
    """
    suspects = [span for span in spans if span.marks & SUSPECT]
    if not suspects:
        return blocks
    prose = list(map(_measure_prose, texts, blocks))
    total, inside = sum(prose), sum(compress(prose, [block & MAIN for block in blocks]))
    least = MIN_CLEARED_SHARE * (inside if inside >= MIN_CORE_SHARE * total else total)
    sums = [0, *accumulate(prose)]
    sizes = [(sums[span.end] - sums[span.start], span) for span in suspects]
    paragraphs = sum([size for size, span in sizes if span.name == "p"])
    longest = VERY_LONG_LENGTH if paragraphs < least else 1
    kept = [span for size, span in sizes if size < (longest if span.name == "p" else least)]
    if len(kept) == len(suspects):
        return blocks
    doubted = _cover(kept, len(blocks))
    return [block if doubt else block & ~SUSPECT for block, doubt in zip(blocks, doubted, strict=True)]


def _measure_prose(text: str, block: int) -> int:
    """Return the length of a block that looks like prose, whatever its class says; else 0."""
    size = len(text)
    return size if size >= LONG_LENGTH and not block & _EXCLUDED and (block >> LINKED_SHIFT) * 3 <= size else 0


def _cover(spans: Iterable[Span], size: int) -> list[int]:
    """Count for each of the blocks of a page how many of the spans contain it."""
    steps = [0] * (size + 1)
    for span in spans:
        steps[span.start] += 1
        steps[span.end] -= 1
    return list(accumulate(steps[:size]))


def _classify_block(text: str, block: int) -> str:
    if not text or block & _EXCLUDED:
        return "o"
    size = len(text)
    if block & _MARKED:
        return "c" if block & SUSPECT else "h"
    linked = block >> LINKED_SHIFT
    if linked * 3 > size and size - linked < LONG_LENGTH:
        if linked * 10 >= size * 6:
            return "L"
        return "P" if block & ROW else "l"
    if text[0] in _NOTICE_STARTS and text.startswith(_NOTICES):
        return "c"
    return "P" if size >= LONG_LENGTH or block & _KEPT_WHOLE or (size >= SENTENCE_LENGTH and text[-1] in _ENDS) else "s"


def _find_core(texts: list[str], blocks: list[int], letters: str, spans: Sequence[Span]) -> list[int]:
    """Find the blocks inside ``<main>`` or ``<article>``, if those hold enough of the prose; else return nothing."""
    prose = [
        len(text) if letter == "P" and not block & SUSPECT else 0
        for text, letter, block in zip(texts, letters, blocks, strict=True)
    ]
    core = [block & MAIN for block in blocks]
    inside = sum(compress(prose, core))
    if not inside or inside < MIN_CORE_SHARE * sum(prose):
        return []
    sums = [0, *accumulate(prose)]
    articles = [(sums[span.end] - sums[span.start], span) for span in spans if span.name == "article"]
    return _choose_article(core, articles) if any(size >= MIN_ARTICLE_SHARE * inside for size, _ in articles) else core


def _choose_article(core: list[int], articles: list[tuple[int, Span]]) -> list[int]:
    """Leave only the page's own article of the core: one that is much larger than the others, or as good as it.

    Articles inside of it are comments or teasers, unless one has most of its prose.
    """
    largest = max(size for size, _ in articles)
    candidates = [(span.start, -span.end, size) for size, span in articles if size >= MIN_RIVAL_SHARE * largest]
    start, end, size = min(candidates)
    inner = [span for other, span in articles if start <= span.start < -end and other < MIN_RIVAL_SHARE * size]
    return [
        start <= number < -end and not dropped and inside
        for number, (inside, dropped) in enumerate(zip(core, _cover(inner, len(core)), strict=True))
    ]


def _drop_repeated(texts: list[str], letters: str) -> str:
    """Drop prose that the page has said before, such as the caption of an image that is shown twice.

    A page that repeats much of its text means it.
    """
    prose = [
        text if letter == "P" and len(text) >= LONG_LENGTH else "" for text, letter in zip(texts, letters, strict=True)
    ]
    first = {text: number for number, text in reversed(list(enumerate(prose)))}
    repeated = [number for number, text in enumerate(prose) if text and first[text] < number]
    if not repeated or sum(len(prose[number]) for number in repeated) > MAX_REPEATED_SHARE * sum(map(len, prose)):
        return letters
    kept = list(letters)
    for number in repeated:
        kept[number] = "b"
    return "".join(kept)


def _drop_bare(texts: list[str], blocks: list[int], letters: str) -> str:
    """Drop texts outside of paragraphs and lists, where nearly all prose is in those."""
    flow = bare = 0
    for text, block, letter in zip(texts, blocks, letters, strict=True):
        if letter == "P":
            if block & _FLOWING:
                flow += len(text)
            else:
                bare += len(text)
    if not flow or flow < MIN_FLOW_SHARE * (flow + bare):
        return letters
    return _BESIDE_CODE.sub(_to_prose, "".join(map(_reclassify_bare, texts, blocks, letters))).replace("k", "P")


def _reclassify_bare(text: str, block: int, letter: str) -> str:
    """Return the letter of a block if bare ones do not count: ``b`` for those, ``k`` for code."""
    if block & PREFORMATTED and letter == "P":
        return "k"
    if block & _FLOWING or letter not in "sP":
        return letter
    return "P" if len(text) >= LONG_LENGTH and not block & ILLUSTRATED and text[-1] in ".!?:…。" else "b"


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
