"""What ``vedette fetch`` does: asks the running keeper, or one started for just this, and waits for what comes."""

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette.adapters.crawl_store.reader import open_view
from vedette.adapters.crawl_store.store import SiteRow
from vedette.cli.commands.crawl import run_tree, settings_of
from vedette.cli.data_folder import ask, check_known
from vedette.cli.options import add_asking, add_folder, add_output, add_patience
from vedette.cli.output import bytes_in_words, plain
from vedette.config import parse_duration
from vedette.discover.urls.scope import refusal, site_of
from vedette.errors import SiteError, StoreError, UsageError, VedetteError
from vedette.model import origin_of
from vedette.runtime.commands.rpc import Call
from vedette.runtime.processes.settings import LiveSettings
from vedette.web.commands.rule_text import web_url

__all__ = ["add", "fetch_now"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Fetch pages now: each goes to the front of its host's queue, and is asked for as soon
as its host may be asked. Where "vedette up" runs, it does it; else it is done here.

  vedette fetch https://example.org/news/ https://example.org/about
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("fetch", help="fetch pages now", description=DESCRIPTION)
    parser.add_argument("urls", metavar="URL", nargs="+", help="an http(s) URL of a site that the folder has")
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the results")
    add_patience(parser, "how long to wait for hosts that may not be asked yet")
    add_asking(parser)
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser, sites=(), pages=None, scope="host", include=(), exclude=())


def run(options: argparse.Namespace) -> int:
    """Ask for them, wait, and say what came."""
    return fetch_now(options)


LOOK_EVERY_S = 0.1
DESERTED_S = 30.0

Told = dict[str, Any]


def fetch_now(options: argparse.Namespace) -> int:
    """Ask for them, wait, and say what came."""
    settings = settings_of(options)
    urls = list(dict.fromkeys(web_url(text) for text in options.urls))
    wish = _Wish(settings.folder, urls, parse_duration(options.patience))
    running = wish.place()
    if options.no_wait:
        return _placed(options, wish, running=running)
    if running:
        wish.wait()
    else:
        _run_for(settings, wish)
    results = wish.results()
    print(json.dumps({"urls": results}) if options.json else "\n".join(map(_line, results)))
    return 0 if all(one["standing"] == "fetched" for one in results) else 1


@dataclass(slots=True)
class _Wish:
    """URLs that somebody waits for, and how far they are; asked for anew if a keeper has died over it."""

    folder: Path
    urls: list[str]
    patience_s: float
    started_s: float = field(default_factory=time.monotonic)
    heard_s: float = field(default_factory=time.monotonic)
    asked: list[Told] = field(default_factory=list)
    came: dict[int, Told] = field(default_factory=dict)

    def place(self) -> bool:
        """Ask the keeper for them; whether there is one."""
        reply = ask(self.folder, Call("fetch", {"urls": self.urls}))
        if reply is not None:
            had = {one["id"]: one["had"] for one in self.asked}
            self.asked = [{**one, "had": had.get(one["id"], one["had"])} for one in reply["urls"]]
        return reply is not None

    def look(self) -> bool:
        """See what has come; whether that is all, or all that there is patience for."""
        told = self._ask_how_far()
        elapsed_s = time.monotonic() - self.started_s
        lost = False
        for one in told:
            ended = not one["wished"] and one["standing"] not in {"waiting", "leased"}
            lost = lost or not (one["wished"] or ended)
            if not self._has_ended(one["id"]):
                self.came[one["id"]] = {**one, "ended": ended, "seconds": round(elapsed_s, 2)}
        if lost:
            self.place()
        deserted = time.monotonic() - self.heard_s > DESERTED_S
        return deserted or elapsed_s > self.patience_s or all(self._has_ended(one["id"]) for one in self.asked)

    def _ask_how_far(self) -> list[Told]:
        """Nothing while there is no keeper: one that died is started again."""
        try:
            reply = ask(self.folder, Call("fetched", {"ids": [one["id"] for one in self.asked]}))
        except StoreError:
            return []
        if reply is None:
            return []
        self.heard_s = time.monotonic()
        told: list[Told] = reply["urls"]
        return told

    def wait(self) -> None:
        """Until all have come, or patience ends."""
        while not self.look():
            time.sleep(LOOK_EVERY_S)  # the keeper answers questions, it does not call back

    def results(self) -> list[Told]:
        """What became of each URL, in the order in which they were named."""
        nothing = {"standing": "waiting", "seconds": 0.0, "why": "the crawl ended"}
        rows = [{**one, **self.came.get(one["id"], nothing)} for one in self.asked]
        return [{key: value for key, value in row.items() if key not in {"wished", "ended", "id"}} for row in rows]

    def _has_ended(self, id_: int) -> bool:
        return bool(self.came.get(id_, {}).get("ended"))


def _placed(options: argparse.Namespace, wish: _Wish, *, running: bool) -> int:
    if not running:
        raise UsageError('nothing runs that could fetch it later: leave out --no-wait, or start "vedette up" first')
    rows = [{"url": one["url"], "known_as": one["known_as"]} for one in wish.asked]
    print(json.dumps({"urls": rows}) if options.json else "\n".join(f"next: {row['known_as']}" for row in rows))
    return 0


def _run_for(settings: LiveSettings, wish: _Wish) -> None:
    """A tree that fetches nothing else."""
    with open_view(settings.folder) as view:
        rows = view.book.sites()
    asked = {_row_of(url, rows).site.start for url in wish.urls}
    trouble = check_known(replace(settings, sites=(), forever=True), [row for row in rows if row.site.start in asked])
    if trouble:
        raise UsageError(trouble[0])
    tree = _Tree(settings.folder, wish)
    run_tree(replace(settings, sites=(), forever=True, only_wished=True), tree.step)
    if tree.trouble is not None:
        raise tree.trouble


def _row_of(url: str, rows: Sequence[SiteRow]) -> SiteRow:
    """The site that takes a URL; without one there is nobody to fetch it for."""
    site = site_of(url, [row.site for row in rows if not row.paused])
    if site is not None:
        return next(row for row in rows if row.site.start == site.start)
    paused = site_of(url, [row.site for row in rows])
    if paused is not None:
        raise SiteError(f'{url} belongs to {paused.start}, which is paused: "vedette sites resume {paused.start}"')
    why = refusal(url, [row.site for row in rows])
    raise SiteError(f'{url} is {why}: "vedette sites add {origin_of(url)}/" makes it part of one')


@dataclass(slots=True)
class _Tree:
    """A tree that was started for a wish, and is stopped when it is granted."""

    folder: Path
    wish: _Wish
    trouble: VedetteError | None = None
    over: bool = False

    def step(self, _: object) -> None:
        """To be called often while the tree runs."""
        if not self.over:
            try:
                self.over = self._go_on()
            except VedetteError as error:
                self.trouble, self.over = error, True
        if self.over:
            with suppress(VedetteError):  # it is ending already
                ask(self.folder, Call("stop"))

    def _go_on(self) -> bool:
        if self.wish.asked:
            return self.wish.look()
        self.wish.place()
        return False


def _line(one: Told) -> str:
    seconds = f"{one['seconds']:.1f} s"
    if one["standing"] != "fetched":
        standing = "not yet" if one["standing"] in {"waiting", "leased"} else one["standing"]
        return f"{standing:<8}  {seconds:>7}  {one['known_as']}  {plain(one.get('why') or '')}".rstrip()
    change = "changed" if one["changed"] else "same"
    about = f"leads to {plain(one['location'])}" if one["location"] else plain(one["title"])
    kind, size = change if one["had"] else "new", bytes_in_words(one["body_bytes"])
    return f"{one['status']} {kind:<7}  {seconds:>7}  {one['known_as']}  {size}  {about}".rstrip()
