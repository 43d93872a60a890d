"""``vedette search WORDS…``: update the index if no process does, search it and print the results."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

from vedette.cli.data_folder import format_command, open_data_folder
from vedette.cli.options import add_data_options, add_output_options
from vedette.cli.output import format_count, format_relative_time, sanitize
from vedette.errors import UsageError
from vedette.serve.slate import Reason, SearchRequest, SearchResult, Slate, Snippet
from vedette.web.api.parameters import (
    MAX_PAGE_SIZE,
    MAX_QUERY_LENGTH,
    MAX_TOTAL_RESULTS,
    PARAMETER_PATTERNS,
    ParameterError,
    parse_day_s,
    parse_int,
    parse_pattern,
)
from vedette.web.api.responses import format_iso_time
from vedette.web.api.search import slate_to_json
from vedette.web.formatting import build_score_rows

DESCRIPTION = """\
Search the index and list the best results first. Results include pages from
private sites. Exits with code 1 if nothing is found.

  vedette search consumer lag
  vedette search '"consumer lag" -kafka' --site docs.example.org/ops/ --why
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette search``."""
    parser.add_argument(
        "words",
        metavar="WORDS",
        nargs="+",
        help="the query, as in the search box; put it in single quotes if it contains quotes or operators",
    )
    parser.add_argument("--n", metavar="N", help="results per page (default: 10)")
    parser.add_argument("--page", metavar="N", help="the page of results to show (default: 1)")
    parser.add_argument("--site", metavar="HOST", help="only this host, or a path prefix on it")
    parser.add_argument("--type", metavar="TYPE", help="only this file type, such as pdf")
    parser.add_argument("--lang", metavar="CODE", help="only this language, such as de")
    parser.add_argument("--after", metavar="DATE", help="only pages dated on or after this day, such as 2026-01-31")
    parser.add_argument("--before", metavar="DATE", help="only pages dated before this day")
    parser.add_argument("--why", action="store_true", help="explain the rank of each result")
    add_data_options(parser)
    add_output_options(parser)


MAX_TITLE_LENGTH = 200
MAX_URL_LENGTH = 2048
INDENT = "  "
COLUMNS = "{:<{width}}  {:>8}  {:>8}  {:>12}"

_BOLD, _RESET = "\x1b[1m", "\x1b[0m"


def slate_lines(slate: Slate, now_s: float, *, why: bool, bold: bool) -> Iterator[str]:
    """Yield the printed lines of a search: notices, each result with a blank line after it, then the total."""
    above = [*_note_lines(slate)]
    yield from [*above, ""] if above else []
    for result in slate.results:
        yield from _result_lines(result, now_s, bold=bold)
        yield from _score_lines(result) if why else ()
        yield ""
    request = slate.request
    more = f"; --page {request.page + 1} shows more" if slate.total > request.page * request.n else ""
    yield f"{format_count(slate.total, 'page')} {'matches' if slate.total == 1 else 'match'}{more}."


def _no_result_lines(slate: Slate, behind: str) -> Iterator[str]:
    """Yield the lines that ``vedette search`` prints without results, with the reason if it is known."""
    query = _clean_text(slate.request.query, MAX_TITLE_LENGTH)
    if slate.total and slate.request.page > 1:
        yield f'There is no page {slate.request.page} for "{query}": {format_count(slate.total, "page")} match.'
    else:
        yield f'No results for "{query}".'
    if behind:
        yield f"{behind[0].upper()}{behind[1:]}."
    yield from _note_lines(slate)


def _note_lines(slate: Slate) -> Iterator[str]:
    yield from (_clean_text(note, MAX_URL_LENGTH) for note in slate.notes)
    if slate.corrected:
        yield _clean_text(slate.correction_note, MAX_URL_LENGTH)
    if slate.suggestion:
        yield f"Did you mean: {_clean_text(slate.suggestion, MAX_TITLE_LENGTH)}"
    if slate.relaxed and slate.results:
        yield f"Missing from some results: {', '.join(_clean_text(word, MAX_TITLE_LENGTH) for word in slate.relaxed)}."


def _result_lines(result: SearchResult, now_s: float, *, bold: bool) -> Iterator[str]:
    title = _clean_text(result.title, MAX_TITLE_LENGTH) or "(no title)"
    yield f"{_BOLD}{title}{_RESET}" if bold else title
    yield sanitize(result.url, MAX_URL_LENGTH)
    facts = [f"fetched {format_relative_time(result.fetched_s, now_s)}"]
    facts += [format_iso_time(result.date_s)[:10]] if result.date_s is not None else []
    facts += [f"{result.similar} similar"] if result.similar else []
    facts += [f"version {result.version}"] if result.version and result.versions else []
    facts += [format_count(result.versions, "other version")] if result.versions else []
    facts += [_clean_text(result.note, MAX_TITLE_LENGTH)] if result.note else []
    yield " · ".join(facts)
    if result.snippet.text:
        yield _highlight(result.snippet) if bold else _clean_text(result.snippet.text, len(result.snippet.text))


def _highlight(snippet: Snippet) -> str:
    """Return a result's snippet for the terminal with its matches in bold.

    Each character keeps its position, so that the highlights still fit.
    """
    text, parts, done = _clean_text(snippet.text, len(snippet.text)), [], 0
    for start, end in sorted(snippet.marks):
        if start >= done and end > start:
            parts += [text[done:start], _BOLD, text[start:end], _RESET]
            done = end
    return "".join([*parts, text[done:]])


def _score_lines(result: SearchResult) -> Iterator[str]:
    """Yield the score table of a search result, the largest contribution first, and a sentence that sums it up."""
    if result.sentence:
        yield f"{INDENT}{_clean_text(result.sentence, MAX_URL_LENGTH)}"
    reasons = [row.reason for row in build_score_rows(result.why)]
    if not reasons:
        return
    width = max(len("feature"), *(len(reason.feature) for reason in reasons))
    yield INDENT + COLUMNS.format("feature", "value", "weight", "contribution", width=width)
    for reason in reasons:
        yield INDENT + _format_reason(reason, width)


def _format_reason(reason: Reason, width: int) -> str:
    value, weight, added = f"{reason.value:.3g}", f"{reason.weight:.3g}", f"{reason.contribution:+.3g}"
    return COLUMNS.format(sanitize(reason.feature), value, weight, added, width=width)


def _clean_text(text: str, most: int) -> str:
    r"""Clean a page's text for search results in a terminal; every kind of space becomes one plain space.

    >>> _clean_text("a\u00a0b\nc\x1b[1m", 20)
    'a b c\ufffd[1m'
    """
    return sanitize("".join(" " if each.isspace() else each for each in text), most)


SLOW_AFTER_S = 1.0

_FILTERS = ("site", "type", "lang", "after", "before")
_PATTERNS = {
    "site": 'it must be a host or a path prefix on it, such as "docs.example.org/api/"',
    "type": 'it must be a file type, such as "html" or "pdf"',
    "lang": 'it must be a language code, such as "en"',
}


def run(options: argparse.Namespace) -> int:
    """Run ``vedette search``: search the index and print the results; exit code 1 if nothing is found."""
    request, folder = _parse_search(options), open_data_folder(options)
    with _notify_when_slow("Updating the index first …", quiet=options.json):
        folder.update_index()
    started_s = time.perf_counter()
    slate = folder.run_search(request)
    took_s = time.perf_counter() - started_s
    if options.json:
        print(json.dumps(_slate_to_dict(slate, " ".join(options.words), took_s)))
    elif slate.results:
        print("\n".join(slate_lines(slate, time.time(), why=options.why, bold=_can_use_bold())))
    else:
        print("\n".join([*_no_result_lines(slate, folder.describe_incomplete()), _suggest_next(options)]))
    return 0 if slate.results else 1


def _parse_search(options: argparse.Namespace) -> SearchRequest:
    """Parse the options of ``vedette search`` by the rules of the API; raise a ``UsageError`` for invalid ones."""
    given = {name: getattr(options, name) for name in ("n", "page", *_FILTERS)}
    values = {name: value for name, value in given.items() if value is not None}
    try:
        site, kind, language = (
            parse_pattern(values, name, PARAMETER_PATTERNS[name], meaning) for name, meaning in _PATTERNS.items()
        )
        request = SearchRequest(
            query=" ".join(options.words)[:MAX_QUERY_LENGTH],
            n=parse_int(values, "n", 10, 1, MAX_PAGE_SIZE),
            page=parse_int(values, "page", 1, 1, MAX_TOTAL_RESULTS),
            site=site.removeprefix("https://").removeprefix("http://"),
            kind=kind.lower(),
            language=language.lower(),
            after_s=parse_day_s(values, "after"),
            before_s=parse_day_s(values, "before"),
        )
    except ParameterError as wrong:
        raise UsageError(f"--{wrong.parameter}: {wrong.message.rstrip('.')}") from None
    if request.page * request.n > MAX_TOTAL_RESULTS:
        raise UsageError(
            f"--page: with {request.n} results per page, the last page is {MAX_TOTAL_RESULTS // request.n}"
        )
    return request


@contextmanager
def _notify_when_slow(words: str, *, quiet: bool) -> Iterator[None]:
    timer = Timer(SLOW_AFTER_S, lambda: None if quiet else print(words, file=sys.stderr, flush=True))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _can_use_bold() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _slate_to_dict(slate: Slate, query: str, took_s: float) -> dict[str, object]:
    """Return search results as the web API's JSON, without links to a server, since there may be none."""
    values: dict[str, Any] = slate_to_json(slate, query, took_s)
    for result in values["results"]:
        del result["cached_url"]
    return values


def _suggest_next(options: argparse.Namespace) -> str:
    filters = [f"--{name}" for name in _FILTERS if getattr(options, name) is not None]
    if filters:
        return f"Try again without {' and '.join(filters)}."
    return f"Try fewer or different words. To see what is indexed: {format_command('status', options)}"
