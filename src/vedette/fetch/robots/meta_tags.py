"""Parse robots meta tags and X-Robots-Tag headers: what may be done with a fetched page.

Directives for everyone and for us add up: the more restrictive of two applies. Unknown words are ignored, and words are
recognized whatever separates them, since an owner who wrote ``noindex; nofollow`` meant it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from vedette.model import Headers
from vedette.timeutil import parse_date

_WORD = re.compile(r"[a-z_-]+")
_NAMED = re.compile(r"\s*([\w*.-]+)\s*:(.*)", re.ASCII | re.DOTALL)
_COUNT = re.compile(r"\s*(\d{1,9})\s*", re.ASCII)
_WITH_VALUE = frozenset({"max-snippet", "unavailable_after", "max-image-preview", "max-video-preview"})


@dataclass(frozen=True, slots=True)
class Directives:
    """Robots directives of a page: whether we may index it, follow its links, show our copy, and quote from it.

    ``max_snippet`` is the longest quotation in characters; after ``unavailable_after_s`` the page must not be shown.
    """

    index: bool = True
    follow: bool = True
    archive: bool = True
    snippet: bool = True
    max_snippet: int | None = None
    unavailable_after_s: float | None = None


UNRESTRICTED = Directives()

_WORDS = {
    "noindex": Directives(index=False),
    "nofollow": Directives(follow=False),
    "none": Directives(index=False, follow=False),
    "noarchive": Directives(archive=False),
    "nocache": Directives(archive=False),
    "nosnippet": Directives(snippet=False),
}


def parse_header_directives(headers: Headers, user_agent: str) -> Directives:
    """Parse the robots directives in X-Robots-Tag headers for everyone and for this agent.

    A name before a colon addresses everything up to the next name: ``otherbot: noindex, vedette: nofollow``.

    >>> parse_header_directives((("x-robots-tag", "noarchive"), ("x-robots-tag", "otherbot: noindex")),
    ...     "vedette").archive
    False
    """
    values = (value for name, value in headers if name == "x-robots-tag")
    return _merge_all(_parse_parts(_select_ours(value.lower(), user_agent.lower())) for value in values)


def parse_meta_directives(metas: Sequence[tuple[str, str]], user_agent: str) -> Directives:
    """Parse the robots directives in meta tags, as pairs of name and content, for everyone and this agent.

    >>> parse_meta_directives([("robots", "noindex"), ("Vedette", "max-snippet:80")], "vedette").max_snippet
    80
    """
    ours = ("robots", user_agent.lower())
    return _merge_all(
        _parse_parts(content.lower().split(",")) for name, content in metas if name.strip().lower() in ours
    )


def merge_directives(a: Directives, b: Directives) -> Directives:
    """Merge two sets of robots directives: the more restrictive of each."""
    return Directives(
        a.index and b.index,
        a.follow and b.follow,
        a.archive and b.archive,
        a.snippet and b.snippet,
        min((n for n in (a.max_snippet, b.max_snippet) if n is not None), default=None),
        min((t for t in (a.unavailable_after_s, b.unavailable_after_s) if t is not None), default=None),
    )


def _merge_all(found: Iterable[Directives]) -> Directives:
    return reduce(merge_directives, found, UNRESTRICTED)


def _select_ours(value: str, agent: str) -> list[str]:
    """Select the parts of an X-Robots-Tag header that address everyone or us, without the agents' names."""
    ours: list[str] = []
    is_ours = True
    for part in value.split(","):
        text = part
        named = _NAMED.fullmatch(part)
        if named and named[1] not in _WITH_VALUE and named[1] not in _WORDS:
            is_ours, text = named[1] in ("robots", "*", agent), named[2]
        if is_ours:
            ours.append(text)
    return ours


def _parse_parts(parts: Sequence[str]) -> Directives:
    return _merge_all(_parse_part(parts, at) for at in range(len(parts)))


def _parse_part(parts: Sequence[str], at: int) -> Directives:
    named = _NAMED.fullmatch(parts[at])
    if named is None:
        return _merge_all(_parse_words(parts[at]))
    if named[1] == "max-snippet":
        return _parse_max_snippet(named[2])
    if named[1] == "unavailable_after":
        # The older date formats have a comma after the weekday, so the date may continue in the next part.
        return _parse_unavailable_after(named[2], ",".join((named[2], *parts[at + 1 : at + 2])))
    return _WORDS.get(named[1], UNRESTRICTED)


def _parse_words(part: str) -> Iterator[Directives]:
    return (_WORDS[word] for word in _WORD.findall(part) if word in _WORDS)


def _parse_max_snippet(value: str) -> Directives:
    count = _COUNT.fullmatch(value)
    if count is None:
        return UNRESTRICTED
    return Directives(snippet=int(count[1]) > 0, max_snippet=int(count[1]))


def _parse_unavailable_after(*readings: str) -> Directives:
    dates = (parse_date(reading) for reading in readings)
    return Directives(unavailable_after_s=next((date for date in dates if date is not None), None))
