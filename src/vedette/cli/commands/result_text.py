"""Results of a search as lines of text. What pages say reaches the terminal as text, and as nothing else."""

from collections.abc import Iterator

from vedette.cli.output import ago, counted, plain
from vedette.serve.slate import Reason, Result, Slate, Snippet
from vedette.web.api.responses import iso_time
from vedette.web.public.score_table import rows_of

__all__ = ["nothing_lines", "slate_lines"]

LONGEST_TITLE = 200
LONGEST_URL = 2048
INDENT = "  "
COLUMNS = "{:<{width}}  {:>8}  {:>8}  {:>12}"

_BOLD, _USUAL = "\x1b[1m", "\x1b[0m"


def slate_lines(slate: Slate, now_s: float, *, why: bool, bold: bool) -> Iterator[str]:
    """What is said of the whole, then the results with a blank line after each, then how many there are."""
    above = [*_about(slate)]
    yield from [*above, ""] if above else []
    for result in slate.results:
        yield from _result_lines(result, now_s, bold=bold)
        yield from _why_lines(result) if why else ()
        yield ""
    wish = slate.wish
    more = f"; --page {wish.page + 1} shows more" if slate.total > wish.page * wish.n else ""
    yield f"{counted(slate.total, 'page')} {'matches' if slate.total == 1 else 'match'}{more}."


def nothing_lines(slate: Slate, behind: str) -> Iterator[str]:
    """Why there is nothing to show, as far as it is known."""
    asked = _clean(slate.wish.query, LONGEST_TITLE)
    if slate.total and slate.wish.page > 1:
        yield f'There is no page {slate.wish.page} for "{asked}": {counted(slate.total, "page")} match.'
    else:
        yield f'Nothing found for "{asked}".'
    if behind:
        yield f"{behind[0].upper()}{behind[1:]}."
    yield from _about(slate)


def _about(slate: Slate) -> Iterator[str]:
    yield from (_clean(note, LONGEST_URL) for note in slate.notes)
    if slate.suggestion:
        yield f"Did you mean: {_clean(slate.suggestion, LONGEST_TITLE)}"
    if slate.relaxed and slate.results:
        yield f"Not all results have: {', '.join(_clean(word, LONGEST_TITLE) for word in slate.relaxed)}."


def _result_lines(result: Result, now_s: float, *, bold: bool) -> Iterator[str]:
    title = _clean(result.title, LONGEST_TITLE) or "(no title)"
    yield f"{_BOLD}{title}{_USUAL}" if bold else title
    yield plain(result.url, LONGEST_URL)
    facts = [f"fetched {ago(result.fetched_s, now_s)}"]
    facts += [iso_time(result.date_s)[:10]] if result.date_s is not None else []
    facts += [f"{result.similar} similar"] if result.similar else []
    facts += [_clean(result.note, LONGEST_TITLE)] if result.note else []
    yield " · ".join(facts)
    if result.snippet.text:
        yield _marked(result.snippet) if bold else _clean(result.snippet.text, len(result.snippet.text))


def _marked(snippet: Snippet) -> str:
    """The text with its marks in bold; each character stays where it was, so the marks still fit."""
    text, parts, done = _clean(snippet.text, len(snippet.text)), [], 0
    for start, end in sorted(snippet.marks):
        if start >= done and end > start:
            parts += [text[done:start], _BOLD, text[start:end], _USUAL]
            done = end
    return "".join([*parts, text[done:]])


def _why_lines(result: Result) -> Iterator[str]:
    """A small table, what did most first, and the sentence that sums it up."""
    if result.sentence:
        yield f"{INDENT}{_clean(result.sentence, LONGEST_URL)}"
    reasons = [row.reason for row in rows_of(result.why)]
    if not reasons:
        return
    width = max(len("feature"), *(len(reason.feature) for reason in reasons))
    yield INDENT + COLUMNS.format("feature", "value", "weight", "contribution", width=width)
    for reason in reasons:
        yield INDENT + _row(reason, width)


def _row(reason: Reason, width: int) -> str:
    value, weight, added = f"{reason.value:.3g}", f"{reason.weight:.3g}", f"{reason.contribution:+.3g}"
    return COLUMNS.format(plain(reason.feature), value, weight, added, width=width)


def _clean(text: str, most: int) -> str:
    r"""Text of a page for a terminal: every kind of space is one space, so that only what is unsafe is replaced.

    >>> _clean("a\u00a0b\nc\x1b[1m", 20)
    'a b c\ufffd[1m'
    """
    return plain("".join(" " if each.isspace() else each for each in text), most)
