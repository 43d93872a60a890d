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
from itertools import compress

from vedette.parse.html.walker import HEADING, LINKED, PREFORMATTED, ROW
from vedette.parse.html.zones import APART, CORE, HIDDEN, SUSPECT

__all__ = ["content", "content_marks"]

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
