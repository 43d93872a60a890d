"""What ``vedette explain`` does: one URL, everything that was decided of it, and by which rule.

``--json`` prints the plain values of ``live.explaining`` as they are; the words are made of nothing else.
"""

import argparse
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from vedette.cli.data_folder import ask, folder_of, hint
from vedette.cli.options import add_folder, add_output
from vedette.cli.output import ago, amount, bytes_in_words, counted, plain, roughly
from vedette.config import load
from vedette.engine.scheduling.schedule import Schedule
from vedette.model import Overrule, Refusal
from vedette.refresh.policies.fixed import Fixed
from vedette.runtime.explain.page import MOST_NAMED
from vedette.runtime.explain.url import explained
from vedette.web.commands.commands import Rule
from vedette.web.commands.rule_text import web_url
from vedette.web.console.explain.decision_text import budget_facts, first_facts, look_facts, rank_facts
from vedette.web.console.explain.refresh_text import Fact, refresh_facts
from vedette.web.formatting import THIN

__all__ = [
    "add",
    "budget_lines",
    "explain_url",
    "first_lines",
    "held_lines",
    "look_lines",
    "rank_lines",
    "reading_lines",
    "refresh_lines",
    "spared_lines",
]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Whether a URL is known, to which site it belongs, what robots.txt says of it, when it
was fetched, what was read there, which pages say the same, whether it is worth indexing,
when it is due again and by which rule; or what it waits for, or why it is held back.

  vedette explain https://example.org/docs/
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("explain", help="why a page is fetched, or not", description=DESCRIPTION)
    parser.add_argument("url", metavar="URL", help="an http(s) URL")
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Look it up, and say."""
    return explain_url(options)


# And of URLs that are not fetched because too little is expected of them: why, until when, and how to overrule that.
# The words are made of the plain values of ``live.page_facts`` and of nothing else.


Told = dict[str, Any]

# What the author says of a page is not ours to overrule.
_AUTHORS = frozenset({"noindex", "author"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def reading_lines(told: Told, options: argparse.Namespace) -> Iterator[str]:
    """What was read, in words; nothing of what is not there."""
    content = told["content"]
    if content is None:
        return
    yield f"Read      {_read_words(told['page']['kind'], content)}"
    if content["description"]:
        yield f'Summary   "{plain(content["description"])}"'
    if content["canonical"]:
        yield f"Canonical {plain(content['canonical'])}, as the page itself says"
    if content["marks"]:
        yield f"Marks     {', '.join(map(_mark, content['marks']))}"
    if told["change"]:
        yield f"Compared  {_change_words(told['change'])}"
    if told["copies"]:
        yield f"Copies    {_copy_words(told['copies'])}"
    yield f"Indexing  {_index_words(told['index'], told['site'], options)}"


def _read_words(kind: str, content: Told) -> str:
    parts = [kind, counted(content["words"], "word")]
    parts += [f"language {plain(content['language'])}"] if content["language"] else []
    parts += [plain(content["charset"])] if content["charset"] else []
    for verb in ("published", "modified"):
        if content[f"{verb}_s"] is not None:
            parts.append(f"{verb} {_day(content[f'{verb}_s'])}")
    script = "; empty without JavaScript, which is not run here" if content["needs_script"] else ""
    return ", ".join(parts) + script


def _day(at_s: float) -> str:
    return (_EPOCH + timedelta(seconds=at_s)).date().isoformat()


def _mark(mark: str) -> str:
    name, sign, value = mark.partition(":")
    return f"{name} {_day(float(value))}" if name == "unavailable_after" else f"{name}{sign}{value}"


def _change_words(change: Told) -> str:
    rule = f" (what counts for this site: {change['rule']})" if change["rule"] else ""
    return f"with the version before: {plain(change['why'])}{rule}"


def _copy_words(copies: Told) -> str:
    named = ", ".join(plain(url) for url in copies["others"][: MOST_NAMED - 1])
    more = ", …" if copies["pages"] > MOST_NAMED else ""
    others = "1 copy" if copies["pages"] == 2 else f"{amount(copies['pages'] - 1)} copies"
    if copies["is_this"]:
        return f"stands for {others}: {named}{more} (because {plain(copies['why'], 300)})"
    if copies["stands"]:
        return (
            f"a copy of {copies['stands']} ({counted(copies['pages'], 'page')} say the same; "
            f"that one stands for them because {plain(copies['why'], 300)})"
        )
    return f"has {others}: {named}{more}"


def _index_words(index: Told, site: Told | None, options: argparse.Namespace) -> str:
    objections = index["objections"]
    if not objections:
        return "it can be found: nothing speaks against that"
    if index["would"]:
        return f"it can be found, since you overruled: {'; '.join(map(_objection, objections))}"
    standing = [each for each in objections if not each["overruled"]]
    names = [each["name"] for each in standing]
    advice = ""
    if site is not None and _AUTHORS.isdisjoint(names):
        advice = f'; "{_overrule(names, site, options)}" overrules that'
    return f"it is not in the index: {_objection(standing[0])}{advice}"


def _objection(objection: Told) -> str:
    return f"{objection['why']}: {plain(objection['detail'])}" if objection["detail"] else str(objection["why"])


def held_lines(told: Told, options: argparse.Namespace) -> Iterator[str]:
    """What is held back as a trap, until when, and how to fetch it all the same."""
    held = told["held"]
    if held["for_good"]:
        yield "Until     never by itself: no page is spelt like this on purpose"
    else:
        yield f"Until     its host has brought more good pages, or pages like it have{_so_far(held)}"
    one = hint(f"fetch {told['known_as']}", options)
    yield f'Overrule  "{_overrule(["trap"], told["site"], options)}" fetches all such, "{one}" only this one'


def _so_far(held: Told) -> str:
    brought = held["brought"]
    if brought is None or not brought["fetches"] or f" like {held['pattern']} " in held["why"]:
        return ""
    barren = f", {brought['barren']} of them copies or missing," if brought["barren"] else ""
    pages = counted(round(brought["fetches"]), "page")
    return f"; so far {pages} like {plain(held['pattern'])}{barren} brought {brought['rate']:.0%} of what is typical"


def spared_lines(told: Told, options: argparse.Namespace) -> Iterator[str]:
    """What is fetched in its place, by which rule, and how to fetch both."""
    spared = told["spared"]
    if spared is not None:
        yield f"Instead   {plain(spared['instead'], 300)} is fetched ({plain(spared['rule'], 300)})"
    yield f'Overrule  "{_overrule(["copy"], told["site"], options)}" fetches all such'


def _overrule(names: list[str], site: Told, options: argparse.Namespace) -> str:
    """The command that overrules these judgements, besides those that the site overrules already."""
    wanted = [name for name in get_args(Overrule) if name in names or name in site["overrule"]]
    return hint(f"sites set {site['start']} overrule={','.join(wanted)}", options)


# How a fact of the console begins in a line of the terminal.
_BEGINS = {
    "Changed by now": "Changed   by now ",
    "Said to have changed": "Said      to have changed ",
    "Worth of a fetch": "Worth     ",
    "The last fetch": "Brought   the last fetch ",
    "What counts as a change": "Counts    as a change: ",
    "Brings new links": "Brings    new links: ",
    "A look may bring": "A look    may bring ",
    "Looks so far": "Looks     so far: ",
    "Shows the same as": "Alike     shows the same as ",
    "Somebody watches": "Watched   is ",
    "Expected gain": "Expected  gain: ",
    "People search for": "Searched  ",
    "Worth of a first fetch": "Worth     ",
    "The next fetch": "Kind      of the next fetch: ",
    "Cost of it": "Cost      ",
    "Its site got": "Budget    its site got ",
    "Order of results": "Results   ",
}


def refresh_lines(refresh: dict[str, Any] | None) -> Iterator[str]:
    """A line for each fact; nothing where a fixed rule has the page."""
    return _lines(refresh_facts(refresh))


def look_lines(look: dict[str, Any] | None) -> Iterator[str]:
    """The same of a page that is looked at for what it links to; nothing where it is not."""
    return _lines(look_facts(look))


def first_lines(first: dict[str, Any] | None) -> Iterator[str]:
    """The same of a URL that was not fetched yet; nothing where it was."""
    return _lines(first_facts(first))


def budget_lines(budget: dict[str, Any] | None) -> Iterator[str]:
    """What the next fetch of it is for, and what its site got of the budget."""
    return _lines(budget_facts(budget))


def rank_lines(ranking: dict[str, Any] | None) -> Iterator[str]:
    """What orders results, and what readers made of this page."""
    return _lines(rank_facts(ranking))


def _lines(facts: Iterator[Fact]) -> Iterator[str]:
    for fact in facts:
        begins = _BEGINS.get(fact.name) or f"{fact.name:<9} "
        yield f"{begins}{fact.words}".replace(THIN, " ")


def explain_url(options: argparse.Namespace) -> int:
    """Look it up, and say."""
    folder = folder_of(options)
    told = explained(web_url(options.url), folder, _schedule(options), lambda call: ask(folder, call), time.time())
    print(json.dumps(told) if options.json else "\n".join(_lines_explain(told, options)))
    return 0


def _schedule(options: argparse.Namespace) -> Schedule:
    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    return Schedule(recrawl=True, sources=Fixed(interval_s=load(path).crawl.source_interval_s))


def _lines_explain(told: Told, options: argparse.Namespace) -> Iterator[str]:
    yield told["known_as"]
    if told["steps"]:
        yield f"Typed     {told['url']}; changed by: {', '.join(told['steps'])}"
    yield f"Site      {_site_words(told)}"
    yield f"robots    {_robots_words(told['robots'])}"
    for rule in told["hidden"]:
        yield f"Hidden    {plain(str(Rule(rule['kind'], rule['query'], rule['value'])), 400)}"
    if told["known"] is None:
        yield from _unknown(told, options)
        return
    if told["page"] is not None:
        yield f"Fetched   {_page_words(told['page'], told['now_s'])}"
        yield from reading_lines(told, options)
    yield from refresh_lines(told["refresh"])
    yield from look_lines(told.get("look"))
    if told["known"]["standing"] in {"waiting", "leased"}:
        yield from first_lines(told.get("first"))
    yield from budget_lines(told["budget"] if told["known"] is not None else None)
    yield _next_words(told, options)
    yield from _thrift_words(told, options)
    yield from rank_lines(told.get("ranking"))
    if told["page"] is not None and told["page"]["archived"]:
        place = told["page"]["archived"]
        yield f"Archived  warc/{place['file']}, {bytes_in_words(place['length'])} from byte {place['offset']}"
    elif told["page"] is not None and told["known"]["copy_lost"]:
        yield f"Archived  no: {told['known']['copy_lost']}"


def _thrift_words(told: Told, options: argparse.Namespace) -> Iterator[str]:
    """Of what was refused because too little is expected of it: until when, and how to have it all the same."""
    if told["site"] is None:
        return
    if told["held"] is not None:
        yield from held_lines(told, options)
    elif (told["known"]["why"] or "").startswith(Refusal.COPY):
        yield from spared_lines(told, options)


def _unknown(told: Told, options: argparse.Namespace) -> Iterator[str]:
    if told["spared"] is not None:
        yield f"Known     no, and links to it are read as links to another page: {Refusal.COPY}"
        yield from spared_lines(told, options)
        return
    yield "Known     no: no page that was fetched links to it, and no sitemap or feed names it"
    if told["robots"]["verdict"] == "disallowed" and not told["robots"]["ignored"]:
        yield "Next      never, as long as its robots.txt disallows it"
    elif told["site"] is not None:
        yield f"Next      never by itself; {hint('fetch ' + told['known_as'], options)} fetches it now"


def _site_words(told: Told) -> str:
    site = told["site"]
    if site is None:
        return f'none: {told["refusal"]}; "vedette sites add SITE" adds one'
    paused = f"; paused, so nothing of it is fetched: vedette sites resume {site['start']}" if site["paused"] else ""
    return f"{site['start']} (scope {site['scope']}){paused}"


def _robots_words(robots: Told) -> str:
    if robots["ignored"]:
        return f"ignored, as you confirmed the site as your own; {robots['url']}"
    by = f' by "{plain(robots["line"])}"' if robots["line"] else ", as no rule speaks of it"
    said = {"allowed": f"allowed{by}. ", "disallowed": f"disallowed{by}. "}.get(robots["verdict"], "")
    delay_s = robots["crawl_delay_s"]
    return f"{said}{robots['state']}{f' It asks for {delay_s:g} s between requests.' if delay_s else ''}"


def _page_words(page: Told, now_s: float) -> str:
    title = f'"{plain(page["title"])}", ' if page["title"] else ""
    leads = f", leads to {plain(page['location'])}" if page["location"] else ""
    if page["changed_s"] == page["fetched_s"]:
        change = "new or changed then"
    else:
        change = f"unchanged since {ago(page['changed_s'], now_s)}"
    size = bytes_in_words(page["bytes"])
    return f"{ago(page['fetched_s'], now_s)}: status {page['status']}, {title}{size}, {change}{leads}"


def _next_words(told: Told, options: argparse.Namespace) -> str:
    known, now_s = told["known"], told["now_s"]
    if known["standing"] == "waiting":
        return f"Waiting   {_waiting_words(told, hint('up', options))}"
    if known["standing"] == "leased":
        return f"Waiting   {_leased_words(told, hint('up', options))}"
    if known["standing"] in {"refused", "failed"}:
        when = f", {ago(known['ended_s'], now_s)}" if known["ended_s"] is not None else ""
        return (
            f"{known['standing'].capitalize():<9} {plain(known['why'] or 'for a reason that was not kept', 400)}{when}"
        )
    due_s = told["page"]["due_s"] if told["page"] else None
    if due_s is None:
        return f"Next      not due; {hint('fetch ' + told['known_as'], options)} fetches it now"
    when = ago(due_s, now_s) if due_s > now_s else "now, as soon as its host may be asked"
    return f"Next      {when} ({told['page']['rule']})"


def _waiting_words(told: Told, go_on: str) -> str:
    known, host = told["known"], told["host"]
    queue = "" if known["front"] is None else f"in front queue {known['front']} of {host['name']}"
    ahead = "" if known["ahead"] is None else f", {known['ahead']} before it there"
    since = "" if told["page"] else f", known for {roughly(told['now_s'] - known['found_s'])}"
    asked = f"; nothing runs now, {go_on} goes on" if not told["running"] else f"; the host: {_host_words(told)}"
    return f"{queue or 'far back in the queue of ' + host['name']}{ahead}{since}{asked}"


def _leased_words(told: Told, go_on: str) -> str:
    if not told["running"]:
        return f"was with a worker when the crawl ended; {go_on} fetches it"
    return f"with a worker, to be fetched as soon as the host may be asked; the host: {_host_words(told)}"


def _host_words(told: Told) -> str:
    host, now_s = told["host"], told["now_s"]
    soon = f", may be asked {ago(host['ready_s'], now_s)}" if host["ready_s"] > now_s + 0.5 else ""
    return f"{host['wait'] or 'ready'}{soon}"
