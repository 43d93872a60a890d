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


def describe_verdict(explanation: Facts) -> str:
    """Describe the verdict on a URL: why and when it is fetched or not, and whether it was hidden."""
    concealed = any(not rule["query"] for rule in explanation["hidden"])
    return _explain_fetching(explanation) + (
        " It does not appear in search results because you hid it." if concealed else ""
    )


def _explain_fetching(explanation: Facts) -> str:
    barred = _find_block_reason(explanation)
    if barred:
        return f"It is not fetched: {barred}."
    state = explanation["known"]
    if state is None:
        return _explain_unknown(explanation)
    if state["standing"] == "failed":
        return f"It could not be fetched: {truncate(state['why'] or 'the reason was not recorded')}."
    if explanation["page"] is not None:
        when = f"{_format_ago(explanation, explanation['page']['fetched_s'])}{_describe_status(explanation)}"
        return f"It was fetched {when} and {_describe_refetch(explanation)}."
    if state["standing"] == "leased":
        return "It has been assigned to a fetcher and will be fetched as soon as its host allows another request."
    return f"It is waiting for its first fetch, {_describe_queue_position(explanation)}."


def _find_block_reason(explanation: Facts) -> str:
    """Return why a URL is never fetched at present (site, robots.txt, refusal); empty if it may be."""
    robots, state, site = explanation["robots"], explanation["known"], explanation["site"]
    if site is None:
        return f"it is {explanation['refusal']}"
    if site["paused"]:
        return f"its site {site['start']} is paused"
    if robots["verdict"] == "disallowed" and not robots["ignored"]:
        return f"robots.txt disallows it by the line “{truncate(robots['line'] or '')}”"
    if state is not None and state["standing"] == "refused":
        return truncate(state["why"] or "the reason was not recorded")
    return ""


def _explain_unknown(explanation: Facts) -> str:
    if explanation["spared"] is not None:
        return f"It is not fetched: {truncate(explanation['spared']['instead'])} is fetched instead."
    return "It is unknown: no fetched page, sitemap or feed links to it."


def _describe_refetch(explanation: Facts) -> str:
    page, now_s = explanation["page"], explanation["now_s"]
    if explanation["known"]["standing"] == "leased":
        return "is being fetched again"
    if explanation["known"]["standing"] == "waiting":
        return f"is waiting to be fetched again, {_describe_queue_position(explanation)}"
    if page["due_s"] is None:
        return "is not due again"
    if page["due_s"] <= now_s:
        return "is due now, as soon as its host allows another request"
    return f"will be fetched again in about {age(page['due_s'] - now_s)}, by the rule “{page['rule']}”"


def _describe_status(explanation: Facts) -> str:
    status = explanation["page"]["status"]
    return "" if 200 <= status < 300 or status == 304 else f" with status {status}"


def _describe_queue_position(explanation: Facts) -> str:
    state, host = explanation["known"], explanation["host"]
    if not explanation["running"]:
        return (
            "but the crawler is too busy to say when" if explanation.get("busy") else "but the crawler is not running"
        )
    ahead = state["ahead"]
    before = "" if ahead is None else f"{counted(ahead, 'URL')} ahead of it in the queue of {host['name']}; "
    return f"{before}the host: {_describe_host_wait(explanation)}"


def _describe_host_wait(explanation: Facts) -> str:
    host, now_s = explanation["host"], explanation["now_s"]
    soon = f", next request in {age(host['ready_s'] - now_s)}" if host["ready_s"] > now_s + 1 else ""
    return f"{host['wait'] or 'ready'}{soon}"


def build_sections(explanation: Facts) -> list[Section]:
    """Build the Explain page's sections of facts about a URL; empty sections are left out."""
    sections = (
        ("Site", _describe_site(explanation)),
        ("robots.txt", _describe_robots(explanation)),
        ("Host and queue", _describe_queue(explanation)),
        ("Last fetch", _describe_fetch(explanation)),
        ("Next fetch", _describe_refetch_plan(explanation)),
        ("Content", describe_content(explanation)),
        ("Copies", describe_copies(explanation)),
        ("Index", describe_index(explanation)),
        ("Ranking", describe_ranking(explanation.get("ranking"))),
    )
    return [Section(title, found) for title, facts in sections if (found := tuple(facts))]


def _describe_site(explanation: Facts) -> Iterator[Fact]:
    if explanation["steps"]:
        yield Fact("Entered URL", f"{explanation['url']}, normalized: {', '.join(explanation['steps'])}")
    site = explanation["site"]
    if site is None:
        yield Fact("Site", f"none: {explanation['refusal']}")
        return
    yield Fact("Site", f"scope {site['scope']}{', paused' if site['paused'] else ''}", site["start"])
    if site["overrule"]:
        yield Fact("Overruled", ", ".join(site["overrule"]))


def _describe_robots(explanation: Facts) -> Iterator[Fact]:
    robots = explanation["robots"]
    if robots["ignored"]:
        yield Fact("Verdict", "ignored, because you confirmed that the site is yours", robots["url"])
        return
    by = f"by the line “{truncate(robots['line'])}”" if robots["line"] else "because no rule matches it"
    verdict = {"allowed": f"allowed, {by}", "disallowed": f"disallowed, {by}"}.get(robots["verdict"], "unknown so far")
    yield Fact("Verdict", verdict, robots["url"])
    yield Fact("File", robots["state"])
    if robots["crawl_delay_s"]:
        yield Fact("Crawl-delay", f"{robots['crawl_delay_s']:g} s between requests")


def _describe_queue(explanation: Facts) -> Iterator[Fact]:
    host, state = explanation["host"], explanation["known"]
    yield Fact("Host", f"{host['name']}: {_describe_host_wait(explanation)}")
    if host.get("observer_why"):
        yield Fact("Observer", f"{host['observer'] or 'home'} fetches from this host: {host['observer_why']}")
    if state is None:
        return
    links = "start URL of its site" if state["depth"] == 0 else f"{counted(state['depth'], 'link')} from a start URL"
    yield Fact("Known", f"for {age(explanation['now_s'] - state['found_s'])}, {links}", at_s=state["found_s"])
    yield Fact("State", _describe_url_state(explanation))
    if state["why"]:
        yield Fact("Reason", truncate(state["why"]), at_s=state["ended_s"])
    if state.get("retry_s") is not None:
        left_s = state["retry_s"] - explanation["now_s"]
        yield Fact("Next try", f"in {age(left_s)}" if left_s > 0 else "now", at_s=state["retry_s"])
    yield from describe_trap(explanation)
    if state["standing"] in {"waiting", "leased"}:
        yield from describe_first_fetch(explanation.get("first"))


def _describe_url_state(explanation: Facts) -> str:
    state = explanation["known"]
    words = {"leased": "assigned to a fetcher", "fetched": "fetched", "refused": "refused", "failed": "failed"}
    if state["standing"] != "waiting":
        return words.get(state["standing"], str(state["standing"]))
    front = "" if state["front"] is None else f"in front queue {state['front']}, "
    return f"waiting, {front}{_describe_queue_position(explanation)}"


def _describe_fetch(explanation: Facts) -> Iterator[Fact]:
    page = explanation["page"]
    if page is None:
        return
    yield Fact("Fetched", _format_ago(explanation, page["fetched_s"]), at_s=page["fetched_s"])
    yield Fact("Response", f"status {page['status']}, {counted(page['bytes'], 'byte')}", page["location"])
    if page["title"]:
        yield Fact("Title", truncate(page["title"]))
    changed = "at this fetch" if page["changed_s"] == page["fetched_s"] else _format_ago(explanation, page["changed_s"])
    yield Fact("Last changed", changed, at_s=page["changed_s"])
    place = page["archived"]
    if place is not None:
        yield Fact("Archived", f"warc/{place['file']}, {counted(place['length'], 'byte')} at offset {place['offset']}")
    elif explanation["known"] is not None and explanation["known"]["copy_lost"]:
        yield Fact("Archived", f"no: {truncate(explanation['known']['copy_lost'])}")


def _describe_refetch_plan(explanation: Facts) -> Iterator[Fact]:
    page = explanation["page"]
    if page is None:
        yield from describe_budget(explanation.get("budget") if explanation["known"] is not None else None)
        return
    due_s, now_s = page["due_s"], explanation["now_s"]
    if due_s is not None:
        yield Fact("Next due", "now" if due_s <= now_s else f"in {age(due_s - now_s)}", at_s=due_s)
    yield from describe_refresh(explanation["refresh"])
    yield from describe_polling(explanation.get("look"))
    yield from describe_budget(explanation.get("budget"))
    yield Fact("Rule", truncate(page["rule"]))


def _format_ago(explanation: Facts, then_s: float) -> str:
    return ago(explanation["now_s"], then_s)
