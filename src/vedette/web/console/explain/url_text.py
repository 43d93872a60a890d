"""Describe a URL on the Explain page: the verdict, then facts by section (from ``runtime.explain.url``)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from vedette.web.console.explain.content_text import (
    describe_content,
    describe_copies,
    describe_index,
    describe_trap,
    truncate,
)
from vedette.web.console.explain.decision_text import (
    Fact,
    describe_budget,
    describe_first_fetch,
    describe_polling,
    describe_ranking,
    describe_refresh,
)
from vedette.web.formatting import age, ago, counted

Facts = dict[str, Any]


class Section(NamedTuple):
    """A titled section of facts about a URL on the Explain page."""

    title: str
    facts: tuple[Fact, ...]


def describe_verdict(told: Facts) -> str:
    """Describe the verdict on a URL: why and when it is fetched or not, and whether it was hidden."""
    concealed = any(not rule["query"] for rule in told["hidden"])
    return _explain_fetching(told) + (" It does not appear in search results because you hid it." if concealed else "")


def _explain_fetching(told: Facts) -> str:
    barred = _find_block_reason(told)
    if barred:
        return f"It is not fetched: {barred}."
    known = told["known"]
    if known is None:
        return _explain_unknown(told)
    if known["standing"] == "failed":
        return f"It could not be fetched: {truncate(known['why'] or 'the reason was not recorded')}."
    if told["page"] is not None:
        when = f"{_format_ago(told, told['page']['fetched_s'])}{_describe_status(told)}"
        return f"It was fetched {when} and {_describe_refetch(told)}."
    if known["standing"] == "leased":
        return "It has been assigned to a fetcher and will be fetched as soon as its host allows another request."
    return f"It is waiting for its first fetch, {_describe_queue_position(told)}."


def _find_block_reason(told: Facts) -> str:
    """Return why a URL is never fetched at present (site, robots.txt, refusal); empty if it may be."""
    robots, known, site = told["robots"], told["known"], told["site"]
    if site is None:
        return f"it is {told['refusal']}"
    if site["paused"]:
        return f"its site {site['start']} is paused"
    if robots["verdict"] == "disallowed" and not robots["ignored"]:
        return f"robots.txt disallows it by the line “{truncate(robots['line'] or '')}”"
    if known is not None and known["standing"] == "refused":
        return truncate(known["why"] or "the reason was not recorded")
    return ""


def _explain_unknown(told: Facts) -> str:
    if told["spared"] is not None:
        return f"It is not fetched: {truncate(told['spared']['instead'])} is fetched instead."
    return "It is unknown: no fetched page, sitemap or feed links to it."


def _describe_refetch(told: Facts) -> str:
    page, now_s = told["page"], told["now_s"]
    if told["known"]["standing"] == "leased":
        return "is being fetched again"
    if told["known"]["standing"] == "waiting":
        return f"is waiting to be fetched again, {_describe_queue_position(told)}"
    if page["due_s"] is None:
        return "is not due again"
    if page["due_s"] <= now_s:
        return "is due now, as soon as its host allows another request"
    return f"will be fetched again in about {age(page['due_s'] - now_s)}, by the rule “{page['rule']}”"


def _describe_status(told: Facts) -> str:
    status = told["page"]["status"]
    return "" if 200 <= status < 300 or status == 304 else f" with status {status}"


def _describe_queue_position(told: Facts) -> str:
    known, host = told["known"], told["host"]
    if not told["running"]:
        return "but the crawler is too busy to say when" if told.get("busy") else "but the crawler is not running"
    ahead = known["ahead"]
    before = "" if ahead is None else f"{counted(ahead, 'URL')} ahead of it in the queue of {host['name']}; "
    return f"{before}the host: {_describe_host_wait(told)}"


def _describe_host_wait(told: Facts) -> str:
    host, now_s = told["host"], told["now_s"]
    soon = f", next request in {age(host['ready_s'] - now_s)}" if host["ready_s"] > now_s + 1 else ""
    return f"{host['wait'] or 'ready'}{soon}"


def build_sections(told: Facts) -> list[Section]:
    """Build the Explain page's sections of facts about a URL; empty sections are left out."""
    made = (
        ("Site", _describe_site(told)),
        ("robots.txt", _describe_robots(told)),
        ("Host and queue", _describe_queue(told)),
        ("Last fetch", _describe_fetch(told)),
        ("Next fetch", _describe_refetch_plan(told)),
        ("Content", describe_content(told)),
        ("Copies", describe_copies(told)),
        ("Index", describe_index(told)),
        ("Ranking", describe_ranking(told.get("ranking"))),
    )
    return [Section(title, found) for title, facts in made if (found := tuple(facts))]


def _describe_site(told: Facts) -> Iterator[Fact]:
    if told["steps"]:
        yield Fact("Entered URL", f"{told['url']}, normalized: {', '.join(told['steps'])}")
    site = told["site"]
    if site is None:
        yield Fact("Site", f"none: {told['refusal']}")
        return
    yield Fact("Site", f"scope {site['scope']}{', paused' if site['paused'] else ''}", site["start"])
    if site["overrule"]:
        yield Fact("Overruled", ", ".join(site["overrule"]))


def _describe_robots(told: Facts) -> Iterator[Fact]:
    robots = told["robots"]
    if robots["ignored"]:
        yield Fact("Verdict", "ignored, because you confirmed that the site is yours", robots["url"])
        return
    by = f"by the line “{truncate(robots['line'])}”" if robots["line"] else "because no rule matches it"
    said = {"allowed": f"allowed, {by}", "disallowed": f"disallowed, {by}"}.get(robots["verdict"], "unknown so far")
    yield Fact("Verdict", said, robots["url"])
    yield Fact("File", robots["state"])
    if robots["crawl_delay_s"]:
        yield Fact("Crawl-delay", f"{robots['crawl_delay_s']:g} s between requests")


def _describe_queue(told: Facts) -> Iterator[Fact]:
    yield Fact("Host", f"{told['host']['name']}: {_describe_host_wait(told)}")
    if told["host"].get("observer"):
        yield Fact("Observer", f"{told['host']['observer']} fetches from this host: {told['host']['observer_why']}")
    known = told["known"]
    if known is None:
        return
    links = "start URL of its site" if known["depth"] == 0 else f"{counted(known['depth'], 'link')} from a start URL"
    yield Fact("Known", f"for {age(told['now_s'] - known['found_s'])}, {links}", at_s=known["found_s"])
    yield Fact("State", _describe_url_state(told))
    if known["why"]:
        yield Fact("Reason", truncate(known["why"]), at_s=known["ended_s"])
    if known.get("retry_s") is not None:
        left_s = known["retry_s"] - told["now_s"]
        yield Fact("Next try", f"in {age(left_s)}" if left_s > 0 else "now", at_s=known["retry_s"])
    yield from describe_trap(told)
    if known["standing"] in {"waiting", "leased"}:
        yield from describe_first_fetch(told.get("first"))


def _describe_url_state(told: Facts) -> str:
    known = told["known"]
    words = {"leased": "assigned to a fetcher", "fetched": "fetched", "refused": "refused", "failed": "failed"}
    if known["standing"] != "waiting":
        return words.get(known["standing"], str(known["standing"]))
    front = "" if known["front"] is None else f"in front queue {known['front']}, "
    return f"waiting, {front}{_describe_queue_position(told)}"


def _describe_fetch(told: Facts) -> Iterator[Fact]:
    page = told["page"]
    if page is None:
        return
    yield Fact("Fetched", _format_ago(told, page["fetched_s"]), at_s=page["fetched_s"])
    yield Fact("Response", f"status {page['status']}, {counted(page['bytes'], 'byte')}", page["location"])
    if page["title"]:
        yield Fact("Title", truncate(page["title"]))
    changed = "at this fetch" if page["changed_s"] == page["fetched_s"] else _format_ago(told, page["changed_s"])
    yield Fact("Last changed", changed, at_s=page["changed_s"])
    place = page["archived"]
    if place is not None:
        yield Fact("Archived", f"warc/{place['file']}, {counted(place['length'], 'byte')} at offset {place['offset']}")
    elif told["known"] is not None and told["known"]["copy_lost"]:
        yield Fact("Archived", f"no: {truncate(told['known']['copy_lost'])}")


def _describe_refetch_plan(told: Facts) -> Iterator[Fact]:
    page = told["page"]
    if page is None:
        yield from describe_budget(told.get("budget") if told["known"] is not None else None)
        return
    due_s, now_s = page["due_s"], told["now_s"]
    if due_s is not None:
        yield Fact("Next due", "now" if due_s <= now_s else f"in {age(due_s - now_s)}", at_s=due_s)
    yield from describe_refresh(told["refresh"])
    yield from describe_polling(told.get("look"))
    yield from describe_budget(told.get("budget"))
    yield Fact("Rule", truncate(page["rule"]))


def _format_ago(told: Facts, then_s: float) -> str:
    return ago(told["now_s"], then_s)
