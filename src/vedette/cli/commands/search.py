"""What ``vedette search`` does: brings the index up to date where nobody else does, asks it, shows what it found."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from vedette.adapters.clock import Clock, start_clock
from vedette.adapters.crawl_store.data_folder import hold
from vedette.adapters.crawl_store.reader import open_view
from vedette.cli.data_folder import folder_of, hint
from vedette.cli.options import add_folder, add_output
from vedette.cli.output import ago, counted, plain
from vedette.errors import StoreBusy, UsageError
from vedette.runtime.indexing.indexer import catch_up
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.slate import Reason, Result, Slate, Snippet, Wish
from vedette.web.api.openapi import LONGEST_QUERY, MOST_AT_ONCE, MOST_IN_ALL, SHAPES
from vedette.web.api.parameters import WrongParameter, day_s, shaped, whole
from vedette.web.api.responses import iso_time
from vedette.web.api.search import slate_as_json
from vedette.web.public.score_table import rows_of

__all__ = ["add", "nothing_lines", "search_folder", "slate_lines", "wish_of"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Find pages, the best first. The folder is yours, so private sites are searched, too. Exit
code 1 where nothing is found.

  vedette search consumer lag
  vedette search '"consumer lag" -kafka' --site docs.example.org/ops/ --why
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("search", help="find pages", description=DESCRIPTION)
    parser.add_argument(
        "words",
        metavar="WORDS",
        nargs="+",
        help="what to look for, as in the search box; in single quotes where it has quotes or signs",
    )
    parser.add_argument("--n", metavar="N", help="how many results (default: 10)")
    parser.add_argument("--page", metavar="N", help="which page of them (default: 1)")
    parser.add_argument("--site", metavar="HOST", help="only this host, or the beginning of a path on it")
    parser.add_argument("--type", metavar="TYPE", help="only this kind of file, such as pdf")
    parser.add_argument("--lang", metavar="CODE", help="only this language, such as de")
    parser.add_argument("--after", metavar="DATE", help="only pages of this day or later, such as 2026-01-31")
    parser.add_argument("--before", metavar="DATE", help="only pages from before this day")
    parser.add_argument("--why", action="store_true", help="say of each result why it stands where it stands")
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Look, and say."""
    return search_folder(options)


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


PATIENCE_S = 1.0

_FILTERS = ("site", "type", "lang", "after", "before")


def search_folder(options: argparse.Namespace) -> int:
    """Search, show; exit code 1 where nothing is found."""
    wish, folder = wish_of(options), folder_of(options)
    with open_view(folder) as view:  # a folder without a crawl is told in words, and stays as it is
        private = tuple(row.site.start for row in view.book.sites() if row.site.secrets)
    clock = start_clock(time.time(), 1.0)
    _bring_up_to_date(folder, clock, quiet=options.json)
    search = FolderSearch(folder, clock)
    started_s = time.perf_counter()
    slate = search.search(wish._replace(allowed=private))
    took_s = time.perf_counter() - started_s
    if options.json:
        print(json.dumps(_as_json(slate, " ".join(options.words), took_s)))
    elif slate.results:
        print("\n".join(slate_lines(slate, clock.now(), why=options.why, bold=_is_bold())))
    else:
        print("\n".join([*nothing_lines(slate, search.is_behind()), _advice(options)]))
    return 0 if slate.results else 1


def wish_of(options: argparse.Namespace) -> Wish:
    """What was asked for, by the rules of the API; what cannot be meant is a ``UsageError``."""
    given = {name: getattr(options, name) for name in ("n", "page", *_FILTERS)}
    values = {name: value for name, value in given.items() if value is not None}
    site_words = 'it is a host or the beginning of a path on it, such as "docs.example.org/api/"'
    try:
        wish = Wish(
            query=" ".join(options.words)[:LONGEST_QUERY],
            n=whole(values, "n", 10, 1, MOST_AT_ONCE),
            page=whole(values, "page", 1, 1, MOST_IN_ALL),
            site=shaped(values, "site", SHAPES["site"], site_words).removeprefix("https://").removeprefix("http://"),
            kind=shaped(values, "type", SHAPES["type"], 'it is a kind of file, such as "html" or "pdf"').lower(),
            language=shaped(values, "lang", SHAPES["lang"], 'it is the code of a language, such as "en"').lower(),
            after_s=day_s(values, "after"),
            before_s=day_s(values, "before"),
        )
    except WrongParameter as wrong:
        raise UsageError(f"--{wrong.parameter}: {wrong.words.rstrip('.')}") from None
    if wish.page * wish.n > MOST_IN_ALL:
        raise UsageError(f"--page: with {wish.n} results a page, the last one is {MOST_IN_ALL // wish.n}")
    return wish


def _bring_up_to_date(folder: Path, clock: Clock, *, quiet: bool) -> None:
    """Where nothing runs, nobody else has told the index what was fetched or imported last."""
    try:
        lock = hold(folder)
    except StoreBusy:
        return
    with lock, _said_when_slow("The index is brought up to date first …", quiet=quiet):
        catch_up(folder, clock)


@contextmanager
def _said_when_slow(words: str, *, quiet: bool) -> Iterator[None]:
    timer = Timer(PATIENCE_S, lambda: None if quiet else print(words, file=sys.stderr, flush=True))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _is_bold() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _as_json(slate: Slate, asked: str, took_s: float) -> dict[str, object]:
    """As the API says it, but for links to a server, since there may be none."""
    told: dict[str, Any] = slate_as_json(slate, asked, took_s)
    for result in told["results"]:
        del result["cached_url"]
    return told


def _advice(options: argparse.Namespace) -> str:
    filters = [f"--{name}" for name in _FILTERS if getattr(options, name) is not None]
    if filters:
        return f"Without {' and '.join(filters)} there may be something."
    return f"Fewer or other words may help; {hint('status', options)} says what is there to be found."
