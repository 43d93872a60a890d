"""Rendering model: which pages are worth a browser, learned per host and URL pattern from past renderings.

A page that seems empty, or whose links a script fills in, may have text and links once its script has run, or the
script only counts visitors. The evidence is the share of renderings of similar pages that produced either:

    share(pattern) = (brought + S * share(host)) / (rendered + S),    share(host) = (brought + S / 2) / (rendered + S)

A rendering costs browser seconds and requests besides the page's own, in ordinary fetches like everything else
(``fetch_cost``). It is made if share * worth / cost reaches the price of a fetch. If there is no price, or the page is
known and its next fetch was already judged at its whole cost, it is made unless the share is almost zero. Pages skipped
for that reason are tried again, after as many skips as there were useless renderings.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple

from vedette.engine.messages import FetchResult, FetchSuccess
from vedette.engine.ports import CrawlStore
from vedette.engine.scheduling.fetch_cost import FetchCost
from vedette.engine.scheduling.policy_memory import COST_KEY
from vedette.frontier.url_patterns import url_to_pattern
from vedette.model import RenderMode, Site, origin_of

# Keys of the learned model, and of the reason why nothing can be rendered.
RENDERING_KEY, OBSTACLE_KEY = "rendering", "rendering obstacle"
PRIOR_WEIGHT = 2.0
MIN_SHARE = 0.1
# Assumed cost of a rendering before any was seen.
USUAL_SECONDS, USUAL_REQUESTS = 2.0, 2.0
MAX_GROUPS = 2_000
SAVE_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class RenderStats:
    """Renderings of a group of pages: how many, how many helped, seconds and requests, and skipped pages."""

    rendered: int = 0
    brought: int = 0
    seconds: float = 0.0
    requests: float = 0.0
    skipped: int = 0

    def estimate_share(self, prior: float) -> float:
        """Estimate the share of renderings that help.

        >>> RenderStats().estimate_share(0.5), RenderStats(rendered=8, brought=8).estimate_share(0.5)
        (0.5, 0.9)
        """
        return (self.brought + PRIOR_WEIGHT * prior) / (self.rendered + PRIOR_WEIGHT)


class RenderChoice(NamedTuple):
    """Whether to render a page that seems empty, and the numbers behind it; ``worth`` and ``price`` may be None.

    ``pattern`` is the URL pattern of similar pages; ``rendered`` and ``brought`` count theirs.
    """

    render: bool
    reason: str
    pattern: str
    share: float
    seconds: float
    requests: float
    cost: float
    rendered: int
    brought: int


class RenderingModel:
    """Learn what renderings yield and cost, and choose the pages to render.

    >>> model = RenderingModel()
    >>> model.choose("https://a.test/app/x", "auto").reason
    'no similar page has been rendered yet'
    >>> model.choose("https://a.test/app/x", "auto", worth=0.1, price=1.0).render
    False
    """

    def __init__(self, store: CrawlStore | None = None) -> None:
        self._store = store
        self._groups = _parse_groups(store.get_value(RENDERING_KEY) if store is not None else None)
        self._cost = FetchCost.from_json(store.get_value(COST_KEY) if store is not None else None)
        self._saved_s: float | None = None

    def select_mode(
        self, url: str, site: Site, worth: float | None = None, price: float | None = None
    ) -> tuple[RenderMode, str]:
        """Select whether a page may be rendered when it is fetched, and why not if that is a choice."""
        if site.render != "auto":
            return site.render, ""
        choice = self.choose(url, "auto", worth, price)
        return ("auto", "") if choice.render else ("never", choice.reason)

    def choose(
        self, url: str, mode: RenderMode, worth: float | None = None, price: float | None = None
    ) -> RenderChoice:
        """Choose whether to render a page that seems empty; ``worth`` is that of its first fetch."""
        host, pattern = origin_of(url).host, url_to_pattern(url)
        whole = self._groups.get(host, RenderStats())
        group = self._groups.get(f"{host} {pattern}", RenderStats())
        share = group.estimate_share(whole.estimate_share(0.5))
        stats = group if group.rendered else whole
        seconds = stats.seconds if stats.rendered else USUAL_SECONDS
        requests = stats.requests if stats.rendered else USUAL_REQUESTS
        cost = self._cost.estimate_rendering(requests, seconds)
        render, reason = _decide(mode, group, share, cost, worth, price)
        return RenderChoice(render, reason, pattern, share, seconds, requests, cost, group.rendered, group.brought)

    def on_results(self, results: Sequence[FetchResult]) -> None:
        """Learn from fetched pages: yield and cost of renderings, and which pages were skipped."""
        answers = [result for result in results if isinstance(result, FetchSuccess) and result.content is not None]
        self._cost = self._cost.observe(
            [result.body_bytes for result in answers], [result.connection_s for result in answers]
        )
        telling = [result for result in answers if result.rendering or (result.content and result.content.needs_script)]
        for result in telling:
            self._learn(result)
        ended_s = max((result.ended_s for result in telling), default=0.0)
        if telling and (self._saved_s is None or abs(ended_s - self._saved_s) >= SAVE_EVERY_S):
            self.save()
            self._saved_s = ended_s

    def save(self) -> None:
        """Save what was learned about renderings."""
        if self._store is not None and self._groups:
            rows = {
                name: (one.rendered, one.brought, round(one.seconds, 3), round(one.requests, 2), one.skipped)
                for name, one in self._groups.items()
            }
            self._store.set_value(RENDERING_KEY, json.dumps(rows))

    def _learn(self, result: FetchSuccess) -> None:
        host = origin_of(result.task.url).host
        for name in (host, f"{host} {url_to_pattern(result.task.url)}"):
            if result.rendering is not None or name in self._groups:
                self._groups[name] = _add_result(self._groups.pop(name, RenderStats()), result)
        while len(self._groups) > MAX_GROUPS:
            del self._groups[next(iter(self._groups))]


def _decide(
    mode: RenderMode, group: RenderStats, share: float, cost: float, worth: float | None, price: float | None
) -> tuple[bool, str]:
    if mode != "auto":
        return mode == "always", f"its site has render={mode}"
    if worth is not None and price is not None and share * worth < price * cost:
        return False, f"worth {share * worth / cost:.3g} per unit of cost, below the price of {price:.3g}"
    if not group.rendered:
        return True, "no similar page has been rendered yet"
    if share >= MIN_SHARE:
        return True, "rendering similar pages helps"
    if group.skipped >= group.rendered:
        return True, "rendering similar pages did not help, but one is tried again"
    return False, "rendering similar pages does not help"


def _add_result(before: RenderStats, result: FetchSuccess) -> RenderStats:
    rendering = result.rendering
    if rendering is None:
        return replace(before, skipped=before.skipped + 1)
    rendered = before.rendered + 1
    return RenderStats(
        rendered,
        before.brought + rendering.has_helped,
        before.seconds + (rendering.seconds - before.seconds) / rendered,
        before.requests + (rendering.requests - before.requests) / rendered,
    )


def _parse_groups(text: str | None) -> dict[str, RenderStats]:
    """Parse what an earlier run learned about renderings; empty if invalid.

    >>> _parse_groups('{"a.test": [2, 1, 1.5, 3, 0]}')["a.test"].brought, _parse_groups('{"a.test": 1}')
    (1, {})
    """
    try:
        rows = {
            str(name): RenderStats(int(rendered), int(brought), float(seconds), float(requests), int(skipped))
            for name, (rendered, brought, seconds, requests, skipped) in json.loads(text or "{}").items()
        }
    except (TypeError, ValueError, AttributeError):
        return {}
    sound = all(isfinite(one.seconds) and isfinite(one.requests) and one.rendered >= 0 for one in rows.values())
    return rows if sound else {}
