"""``vedette explain URL``: print everything that was decided about one URL, and by which rule.

``--json`` prints the plain values of ``runtime.explain``; the sentences are built from nothing else.
"""

import argparse
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, get_args

from vedette.cli.data_folder import data_folder, format_command, load_config, open_cluster
from vedette.cli.options import add_cluster_option, add_data_options, add_output_options
from vedette.cli.output import (
    format_bytes,
    format_count,
    format_number,
    format_relative_time,
    format_rough_duration,
    sanitize,
)
from vedette.engine.scheduling.schedule import Schedule
from vedette.model import Overrule, Refusal
from vedette.refresh.policies.fixed import Fixed
from vedette.runtime.commands.client import ask_briefly
from vedette.runtime.explain.content import MAX_NAMED
from vedette.runtime.explain.url import collect_explanation
from vedette.web.commands.commands import Rule
from vedette.web.commands.rule_text import parse_web_url
from vedette.web.console.explain.content_text import describe_hold_end, describe_rendering
from vedette.web.console.explain.decision_text import (
    Fact,
    describe_budget,
    describe_first_fetch,
    describe_polling,
    describe_ranking,
    describe_refresh,
)
from vedette.web.formatting import THIN

DESCRIPTION = """\
Explain what Vedette decided about a URL: which site it belongs to, what
robots.txt says about it, when it was fetched and what was extracted, which
pages are copies of it, whether it is indexed, and when and why it will be
fetched again. If the URL is waiting or held back, explain why.

  vedette explain https://example.org/docs/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette explain``."""
    parser.add_argument("url", metavar="URL", help="an http(s) URL")
    add_data_options(parser)
    add_cluster_option(parser)
    add_output_options(parser)


Explanation = dict[str, Any]

# What the author says about a page is not ours to overrule.
_AUTHOR_OBJECTIONS = frozenset({"noindex", "author"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _content_lines(info: Explanation, options: argparse.Namespace) -> Iterator[str]:
    """Yield the ``vedette explain`` lines on a page's extracted content: summary, canonical URL, copies, archive."""
    content = info["content"]
    if content is None:
        return
    yield f"Read      {_describe_content(info['page']['kind'], content)}"
    if rendering := describe_rendering(info.get("rendering"), needs_script=content["needs_script"]):
        yield f"Rendered  {sanitize(rendering, 400)}"
    if content["description"]:
        yield f'Summary   "{sanitize(content["description"])}"'
    if content["canonical"]:
        yield f"Canonical {sanitize(content['canonical'])}, declared by the page"
    if content["marks"]:
        yield f"Marks     {', '.join(map(_format_mark, content['marks']))}"
    if info["change"]:
        yield f"Compared  {_describe_change(info['change'])}"
    if info["copies"]:
        yield f"Copies    {_describe_copies(info['copies'])}"
    yield f"Indexing  {_describe_indexing(info['index'], info['site'], options)}"


def _describe_content(kind: str, content: Explanation) -> str:
    parts = [kind, format_count(content["words"], "word")]
    parts += [f"language {sanitize(content['language'])}"] if content["language"] else []
    parts += [sanitize(content["charset"])] if content["charset"] else []
    for verb in ("published", "modified"):
        if content[f"{verb}_s"] is not None:
            parts.append(f"{verb} {_format_day(content[f'{verb}_s'])}")
    script = "; text or links are missing without JavaScript" if content["needs_script"] else ""
    return ", ".join(parts) + script


def _format_day(at_s: float) -> str:
    return (_EPOCH + timedelta(seconds=at_s)).date().isoformat()


def _format_mark(mark: str) -> str:
    name, sign, value = mark.partition(":")
    return f"{name} {_format_day(float(value))}" if name == "unavailable_after" else f"{name}{sign}{value}"


def _describe_change(change: Explanation) -> str:
    rule = f" (this site's rule: {change['rule']})" if change["rule"] else ""
    return f"with the previous version: {sanitize(change['why'])}{rule}"


def _describe_copies(copies: Explanation) -> str:
    named = ", ".join(sanitize(url) for url in copies["others"][: MAX_NAMED - 1])
    more = ", …" if copies["pages"] > MAX_NAMED else ""
    others = "1 copy" if copies["pages"] == 2 else f"{format_number(copies['pages'] - 1)} copies"
    if copies["is_this"]:
        return f"represents {others}: {named}{more} (because {sanitize(copies['why'], 300)})"
    if copies["stands"]:
        return (
            f"a copy of {copies['stands']} ({format_count(copies['pages'], 'page')} with the same content; "
            f"that one represents them because {sanitize(copies['why'], 300)})"
        )
    return f"has {others}: {named}{more}"


def _describe_indexing(index: Explanation, site: Explanation | None, options: argparse.Namespace) -> str:
    objections = index["objections"]
    if not objections:
        return "in the index: no objections"
    if index["would"]:
        return f"in the index, because you overruled: {'; '.join(map(_format_objection, objections))}"
    standing = [each for each in objections if not each["overruled"]]
    names = [each["name"] for each in standing]
    advice = ""
    if site is not None and _AUTHOR_OBJECTIONS.isdisjoint(names):
        advice = f'; to overrule: "{_overrule_command(names, site, options)}"'
    return f"not in the index: {_format_objection(standing[0])}{advice}"


def _format_objection(objection: Explanation) -> str:
    return f"{objection['why']}: {sanitize(objection['detail'])}" if objection["detail"] else str(objection["why"])


def _trap_lines(info: Explanation, options: argparse.Namespace) -> Iterator[str]:
    """Yield the ``vedette explain`` lines on a URL held back as a trap: until when, and how to fetch it anyway."""
    held = info["held"]
    yield f"Until     {describe_hold_end(held)}{'' if held['for_good'] else _describe_pattern(held)}"
    one = format_command(f"fetch {info['known_as']}", options)
    yield f'Overrule  "{_overrule_command(["trap"], info["site"], options)}" fetches all of them, "{one}" only this one'


def _describe_pattern(held: Explanation) -> str:
    brought = held["brought"]
    if brought is None or not brought["fetches"] or f" like {held['pattern']} " in held["why"]:
        return ""
    barren = f" ({brought['barren']} copies or missing)" if brought["barren"] else ""
    pages = format_count(round(brought["fetches"]), "page")
    return (
        f"; so far {pages} like {sanitize(held['pattern'])}{barren} brought {brought['rate']:.0%} of the typical yield"
    )


def _copy_lines(info: Explanation, options: argparse.Namespace) -> Iterator[str]:
    """Yield the ``vedette explain`` lines on a URL refused as a copy: what is fetched instead, by which rule."""
    duplicate = info["spared"]
    if duplicate is not None:
        yield f"Instead   {sanitize(duplicate['instead'], 300)} is fetched ({sanitize(duplicate['rule'], 300)})"
    yield f'Overrule  "{_overrule_command(["copy"], info["site"], options)}" fetches all of them'


def _overrule_command(names: list[str], site: Explanation, options: argparse.Namespace) -> str:
    """Return the ``vedette sites set`` command that adds overruled judgments to those of the site."""
    wanted = [name for name in get_args(Overrule) if name in names or name in site["overrule"]]
    return format_command(f"sites set {site['start']} overrule={','.join(wanted)}", options)


# How a fact of the console begins in a line of the terminal.
_LINE_LABELS = {
    "50% chance of a change": "Median    50% chance of a change ",
    "Probability of a change": "Changed   with probability ",
    "Change reported": "Reported  as changed ",
    "Worth of a fetch": "Worth     ",
    "Last fetch": "Last      fetch ",
    "What counts as a change": "Counts    as a change: ",
    "New links": "New       links: ",
    "Expected yield": "Expected  yield: ",
    "Polls so far": "Polls     so far: ",
    "Overlaps with": "Overlaps  with ",
    "Watched links": "Watched   links: ",
    "Expected gain": "Expected  gain: ",
    "Matching query": "Query     ",
    "Worth of a first fetch": "Worth     ",
    "Purpose": "Purpose   of the next fetch: ",
    "Fetches of its site": "Budget    of its site: ",
}


def refresh_lines(refresh: dict[str, Any] | None) -> Iterator[str]:
    """Return the ``vedette explain`` lines on a page's refreshes; none if a fixed rule sets them."""
    return _format_facts(describe_refresh(refresh))


def _format_facts(facts: Iterator[Fact]) -> Iterator[str]:
    for fact in facts:
        begins = _LINE_LABELS.get(fact.name) or f"{fact.name:<9} "
        yield f"{begins}{fact.words}".replace(THIN, " ")


def run(options: argparse.Namespace) -> int:
    """Run ``vedette explain``: print what is stored and decided about a URL."""
    info = _load_explanation(options)
    print(json.dumps(info) if options.json else "\n".join(_explanation_lines(info, options)))
    return 0


def _load_explanation(options: argparse.Namespace) -> Explanation:
    url = parse_web_url(options.url)
    if (cluster := open_cluster(options)) is not None:
        return cluster.sites.explain_url(url)
    folder = data_folder(options)
    schedule = Schedule(recrawl=True, sources=Fixed(interval_s=load_config(options).crawl.source_interval_s))
    return collect_explanation(url, folder, schedule, partial(ask_briefly, folder), time.time())


def _explanation_lines(info: Explanation, options: argparse.Namespace) -> Iterator[str]:
    yield info["known_as"]
    if info["steps"]:
        yield f"Typed     {info['url']}; normalized by: {', '.join(info['steps'])}"
    yield f"Site      {_describe_site(info)}"
    yield f"Robots    {_describe_robots(info['robots'])}"
    if info["host"]["observer_why"]:
        who = info["host"]["observer"] or "home"
        yield f"Observer  {who} fetches from this host: {sanitize(info['host']['observer_why'])}"
    for rule in info["hidden"]:
        yield f"Hidden    {sanitize(str(Rule(rule['kind'], rule['query'], rule['value'])), 400)}"
    if info["known"] is None:
        yield from _unknown_url_lines(info, options)
        return
    if info["page"] is not None:
        yield f"Fetched   {_describe_page(info['page'], info['now_s'])}"
        yield from _content_lines(info, options)
    yield from refresh_lines(info["refresh"])
    yield from _format_facts(describe_polling(info.get("look")))
    if info["known"]["standing"] in {"waiting", "leased"}:
        yield from _format_facts(describe_first_fetch(info.get("first")))
    yield from _format_facts(describe_budget(info["budget"]))
    yield _describe_next(info, options)
    yield from _refusal_lines(info, options)
    yield from _format_facts(describe_ranking(info.get("ranking")))
    if info["page"] is not None and info["page"]["archived"]:
        place = info["page"]["archived"]
        yield f"Archived  warc/{place['file']}, {format_bytes(place['length'])} from byte {place['offset']}"
    elif info["page"] is not None and info["known"]["copy_lost"]:
        yield f"Archived  no: {info['known']['copy_lost']}"


def _refusal_lines(info: Explanation, options: argparse.Namespace) -> Iterator[str]:
    """Yield the ``vedette explain`` lines on a refused URL: as a trap or a copy, and how to fetch it anyway."""
    if info["site"] is None:
        return
    if info["held"] is not None:
        yield from _trap_lines(info, options)
    elif (info["known"]["why"] or "").startswith(Refusal.COPY):
        yield from _copy_lines(info, options)


def _unknown_url_lines(info: Explanation, options: argparse.Namespace) -> Iterator[str]:
    if info["spared"] is not None:
        yield f"Known     no; links to it count as links to another page: {Refusal.COPY}"
        yield from _copy_lines(info, options)
        return
    yield "Known     no: no fetched page links to it, and no sitemap or feed lists it"
    if info["robots"]["verdict"] == "disallowed" and not info["robots"]["ignored"]:
        yield "Next      never, while robots.txt disallows it"
    elif info["site"] is not None:
        yield f"Next      not scheduled; to fetch it now: {format_command('fetch ' + info['known_as'], options)}"


def _describe_site(info: Explanation) -> str:
    site = info["site"]
    if site is None:
        return f'none: {info["refusal"]}; to add one: "vedette sites add SITE"'
    paused = f"; paused; to resume: vedette sites resume {site['start']}" if site["paused"] else ""
    return f"{site['start']} (scope {site['scope']}){paused}"


def _describe_robots(robots: Explanation) -> str:
    if robots["ignored"]:
        return f"ignored, because you confirmed that you own the site; {robots['url']}"
    by = f' by "{sanitize(robots["line"])}"' if robots["line"] else ", no rule matches"
    verdict = {"allowed": f"allowed{by}. ", "disallowed": f"disallowed{by}. "}.get(robots["verdict"], "")
    delay_s = robots["crawl_delay_s"]
    return f"{verdict}{robots['state']}{f' Its crawl-delay is {delay_s:g} s.' if delay_s else ''}"


def _describe_page(page: Explanation, now_s: float) -> str:
    title = f'"{sanitize(page["title"])}", ' if page["title"] else ""
    leads = f", redirects to {sanitize(page['location'])}" if page["location"] else ""
    if page["changed_s"] == page["fetched_s"]:
        change = "new or changed then"
    else:
        change = f"unchanged since {format_relative_time(page['changed_s'], now_s)}"
    size = format_bytes(page["bytes"])
    return f"{format_relative_time(page['fetched_s'], now_s)}: status {page['status']}, {title}{size}, {change}{leads}"


def _describe_retry(info: Explanation, options: argparse.Namespace) -> str:
    """Describe when a failed URL is retried; empty for one that was refused."""
    state, now_s = info["known"], info["now_s"]
    if state["standing"] != "failed":
        return ""
    retry = format_command(f"retry {info['known_as']}", options)
    if state["retry_s"] is None:
        return f"\nNext      given up; to retry: {retry}"
    when = format_relative_time(state["retry_s"], now_s) if state["retry_s"] > now_s else "now"
    return f"\nNext      {when}; to retry now: {retry}"


def _describe_next(info: Explanation, options: argparse.Namespace) -> str:
    state, now_s = info["known"], info["now_s"]
    if state["standing"] == "waiting":
        return f"Waiting   {_describe_waiting(info, format_command('up', options))}"
    if state["standing"] == "leased":
        return f"Waiting   {_describe_leased(info, format_command('up', options))}"
    if state["standing"] in {"refused", "failed"}:
        when = f", {format_relative_time(state['ended_s'], now_s)}" if state["ended_s"] is not None else ""
        why = sanitize(state["why"] or "the reason was not recorded", 400)
        return f"{state['standing'].capitalize():<9} {why}{when}{_describe_retry(info, options)}"
    due_s = info["page"]["due_s"] if info["page"] else None
    if due_s is None:
        return f"Next      not due; to fetch it now: {format_command('fetch ' + info['known_as'], options)}"
    when = format_relative_time(due_s, now_s) if due_s > now_s else "now, as soon as its host is free"
    return f"Next      {when} ({info['page']['rule']})"


def _describe_waiting(info: Explanation, go_on: str) -> str:
    state, host = info["known"], info["host"]
    queue = "" if state["front"] is None else f"in front queue {state['front']} of {host['name']}"
    ahead = "" if state["ahead"] is None else f", {state['ahead']} ahead of it"
    since = "" if info["page"] else f", known for {format_rough_duration(info['now_s'] - state['found_s'])}"
    detail = f"; host: {_describe_host(info)}" if info["running"] else f"; {_describe_silence(info, go_on)}"
    return f"{queue or 'far back in the queue of ' + host['name']}{ahead}{since}{detail}"


def _describe_silence(info: Explanation, go_on: str) -> str:
    return "the crawler is too busy to say when" if info["busy"] else f"no crawl is running; to continue: {go_on}"


def _describe_leased(info: Explanation, go_on: str) -> str:
    if info["busy"]:
        return "assigned to a fetcher; the crawler is too busy to say when it will be fetched"
    if not info["running"]:
        return f"was assigned to a fetcher when the crawl ended; to continue: {go_on}"
    return f"assigned to a fetcher, which sends it as soon as the host is free; host: {_describe_host(info)}"


def _describe_host(info: Explanation) -> str:
    host, now_s = info["host"], info["now_s"]
    soon = f", free {format_relative_time(host['ready_s'], now_s)}" if host["ready_s"] > now_s + 0.5 else ""
    return f"{host['wait'] or 'ready'}{soon}"
