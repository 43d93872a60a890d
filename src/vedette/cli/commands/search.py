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
from typing import Any

from vedette.adapters.clock import Clock, start_clock
from vedette.adapters.crawl_store.data_folder import hold
from vedette.adapters.crawl_store.reader import open_view
from vedette.cli.commands.result_text import nothing_lines, slate_lines
from vedette.cli.data_folder import folder_of, hint
from vedette.errors import StoreBusy, UsageError
from vedette.runtime.indexing.indexer import catch_up
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.slate import Slate, Wish
from vedette.web.api.openapi import LONGEST_QUERY, MOST_AT_ONCE, MOST_IN_ALL, SHAPES
from vedette.web.api.parameters import WrongParameter, day_s, shaped, whole
from vedette.web.api.search import slate_as_json

__all__ = ["search_folder", "wish_of"]

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
