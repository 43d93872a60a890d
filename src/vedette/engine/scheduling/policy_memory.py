"""Policy memory: load and save the refresh policy's state of pages and groups, batch by batch.

Page rows are read from the crawl store for each batch; group rows stay in memory. Both are written with the batch. Each
row begins with the signature of its policy; a row with another signature is ignored. A page whose change is waiting to
be measured has the signature inverted.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from vedette.engine.decision_record import Decision, DecisionRecorder
from vedette.engine.messages import FetchResult, FetchSuccess
from vedette.engine.ports import CrawlStore, FetchGain, KnownPage, PageRow, RefreshState
from vedette.engine.scheduling.fetch_cost import BusySites, FetchCost, HostMeans
from vedette.engine.scheduling.policy_runner import PolicyRunner, Stage, at_current_cost, stream_name
from vedette.engine.scheduling.schedule import has_changed, is_good, is_source, status_after
from vedette.model import origin_of, section_of, site_of
from vedette.policy import Floats, Ints, rng_for
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.timeutil import parse_date

# A batch gets the rows of its own groups, renumbered from 0, the global group. The number of groups is limited: beyond
# it, pages count for their site or for the global group.


MAX_GROUPS = 50_000
MAX_NAME = 300
ALL_PAGES = ""


class GroupSelection(NamedTuple):
    """The page groups of a batch in the policy memory: their numbers, and each page's section and site rows."""

    numbers: Ints
    section: Ints
    site: Ints
    rows: Floats


class GroupRows:
    """The refresh policy's memory rows of page groups, by name; tracks those changed since the last save.

    >>> groups = GroupRows(width=1)
    >>> picked = groups.select(["https://a.example/x/1", "https://a.example/2"])
    >>> picked.numbers.tolist(), picked.section.tolist(), picked.site.tolist()
    ([0, 1, 2], [2, 1], [1, 1])
    >>> groups.update(picked, np.array([[3.0], [2.0], [1.0]]))
    >>> groups.pop_changed()
    [('', array([3.])), ('https://a.example/', array([2.])), ('https://a.example/x/', array([1.]))]
    """

    def __init__(self, width: int, rows: Iterable[tuple[str, Floats]] = (), most: int = MAX_GROUPS) -> None:
        self._most = most
        self._places: dict[str, int] = {ALL_PAGES: 0}
        self._names = [ALL_PAGES]
        self._rows = np.zeros((1, width))
        self._changed: dict[int, None] = {}
        for name, row in rows:
            place = self._find_row(name, 0)
            self._grow(place)
            self._rows[place] = row

    def __len__(self) -> int:
        return len(self._names)

    def select(self, urls: Sequence[str]) -> GroupSelection:
        """Select the memory rows of the groups that these pages belong to, each once."""
        sites = [self._find_row(site_of(url), 0) for url in urls]
        sections = [self._find_row(section_of(url), site) for url, site in zip(urls, sites, strict=True)]
        self._grow(len(self._names) - 1)
        numbers, places = np.unique(np.array([0, *sections, *sites], np.int64), return_inverse=True)
        section, site = np.split(places[1:].astype(np.int64), 2)
        return GroupSelection(numbers, section, site, self._rows[numbers])

    def update(self, picked: GroupSelection, rows: Floats) -> None:
        """Replace the policy memory rows of these page groups."""
        self._rows[picked.numbers] = rows
        self._changed.update(dict.fromkeys(picked.numbers.tolist()))

    def pop_changed(self) -> list[tuple[str, Floats]]:
        """Pop names and rows of page groups whose policy memory is not saved yet."""
        found = [(self._names[number], self._rows[number]) for number in sorted(self._changed)]
        self._changed.clear()
        return found

    def _find_row(self, name: str, instead: int) -> int:
        place = self._places.get(name)
        if place is not None:
            return place
        if len(self._names) >= self._most or len(name) > MAX_NAME:
            return instead
        self._places[name] = len(self._names)
        self._names.append(name)
        return self._places[name]

    def _grow(self, last: int) -> None:
        """Grow the array of group memory rows, with room to spare so that rows are rarely copied."""
        if last >= len(self._rows):
            more = np.zeros((last + 1, self._rows.shape[1]))
            self._rows = np.concatenate([self._rows, more])


class SourceReads:
    """When the feeds and sitemaps of each site were last read; any announced change before that is known.

    >>> reads = SourceReads.from_json(SourceReads().add("https://a.example/feed", 90.0).to_json())
    >>> reads.find(["https://a.example/x/1", "https://b.example/"]).tolist()
    [90.0, nan]
    """

    def __init__(self, read_s: Mapping[str, float] | None = None) -> None:
        self._read_s = dict(read_s or {})

    def add(self, url: str, now_s: float) -> "SourceReads":
        """Add a read of a source; sites beyond the number of groups are left out."""
        site = site_of(url)
        if site in self._read_s or len(self._read_s) < MAX_GROUPS:
            self._read_s[site] = max(now_s, self._read_s.get(site, now_s))
        return self

    def find(self, urls: Sequence[str]) -> Floats:
        """Find when the sources of each page's site were last read; NaN if it has none."""
        return np.array([self._read_s.get(site_of(url), np.nan) for url in urls], np.float64)

    def to_json(self) -> str:
        """Serialize the source reads for the next run."""
        return json.dumps(self._read_s)

    @classmethod
    def from_json(cls, text: str | None) -> "SourceReads":
        """Parse the source reads that an earlier run saved; empty if invalid."""
        try:
            times = {str(site): float(at_s) for site, at_s in json.loads(text or "{}").items()}
        except (TypeError, ValueError, AttributeError):
            return cls()
        return cls({site: at_s for site, at_s in times.items() if np.isfinite(at_s)})


NOT_MODIFIED = 304
SAME_FETCH_S = 1.0


class RefreshResult(NamedTuple):
    """A fetch result of a page for the policy memory, with the page's earlier state.

    ``is_known`` means that the policy has state for the page.

    ``links`` is how often pages have linked to it so far.
    """

    result: FetchSuccess
    earlier: PageRow | None
    state: RefreshState
    is_known: bool
    links: int | None = None

    @property
    def is_gone(self) -> bool:
        """Whether a refresh found that the page is gone."""
        return not is_good(status_after(self.result, self.earlier))

    @property
    def is_first(self) -> bool:
        """Whether a refresh has nothing to compare with: the page is new, came back, or has no state."""
        return self.earlier is None or not self.is_known or not is_good(self.earlier.status)

    @property
    def is_unmeasured(self) -> bool:
        """Whether a refresh found a change that counts only if searches notice it."""
        content = self.result.content
        return content is not None and content.is_unmeasured and not self.is_first and not self.is_gone

    @property
    def new_state(self) -> RefreshState:
        """The refresh state of a page after this result; its gain is measured later."""
        content, state = self.result.content, self.state
        return state._replace(
            words=content.words if content else state.words,
            share=content.change.share if content and content.change else None,
            before_s=None if self.is_first or self.earlier is None else self.earlier.fetched_s,
            gain=None,
            links=state.links if self.links is None else self.links,
        )

    @property
    def body_bytes(self) -> int:
        """Size of the refreshed page; without a body, the previous size."""
        is_unmodified = self.earlier is not None and self.result.status == NOT_MODIFIED
        return self.earlier.body_bytes if is_unmodified and self.earlier is not None else self.result.body_bytes

    @property
    def modified_s(self) -> float:
        """When the refreshed page or its server says that it was modified; NaN if neither does."""
        content = self.result.content
        stated_s = content.modified_s if content and content.modified_s is not None else None
        return stated_s if stated_s is not None else _parse_seconds(self.result.header("last-modified"))


def batch_from_results(results: Sequence[RefreshResult], picked: GroupSelection, cost: Floats) -> KnownPages:
    """Build the refresh policy's batch of pages that were just fetched."""
    batch = KnownPages(
        place=np.arange(len(results)),
        last_fetch_s=np.array([one.result.ended_s for one in results]),
        changed=np.array([has_changed(one.result, one.earlier) for one in results], np.bool_),
        first_fetch=np.array([one.is_first for one in results], np.bool_),
        modified_s=np.array([one.modified_s for one in results]),
        section=picked.section,
        site=picked.site,
        gone=np.array([one.is_gone for one in results], np.bool_),
        cost=cost,
    )
    return _add_state(batch, [one.new_state for one in results])


def batch_from_pages(looks: Sequence[KnownPage], picked: GroupSelection, cost: Floats) -> KnownPages:
    """Build the refresh policy's batch of stored pages, as their latest fetch left them."""
    first = np.array([look.state.before_s is None for look in looks], np.bool_)
    batch = KnownPages(
        place=np.arange(len(looks)),
        last_fetch_s=np.array([look.page.fetched_s for look in looks]),
        changed=np.array([look.page.changed_s == look.page.fetched_s for look in looks], np.bool_) & ~first,
        first_fetch=first,
        modified_s=np.array([_parse_seconds(look.page.last_modified) for look in looks]),
        section=picked.section,
        site=picked.site,
        cost=cost,
    )
    return _add_state(batch, [look.state for look in looks])


def rewind_batch(batch: KnownPages) -> KnownPages:
    """Rewind a refresh batch to before its fetches, when the earlier ones were the latest."""
    return replace(batch, last_fetch_s=batch.before_s, before_s=np.full(len(batch), np.nan))


def _add_state(batch: KnownPages, states: Sequence[RefreshState]) -> KnownPages:
    return replace(
        batch,
        before_s=_to_column([one.before_s for one in states]),
        gain=_to_column([one.gain for one in states]),
        views=_to_column([one.views for one in states]),
        share=_to_column([one.share for one in states]),
        born_s=_to_column([one.found_s for one in states]),
        words=_to_column([one.words for one in states]),
        links=_to_column([one.links for one in states]),
        signal_s=_to_column([one.signal_s for one in states]),
    )


def _to_column(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _count_bytes(result: FetchSuccess) -> int:
    """Count the bytes of a response that came home: all of them, or what an observer sent."""
    return result.body_bytes if result.sent_bytes is None else result.sent_bytes


def _parse_seconds(text: str) -> float:
    found = parse_date(text) if text else None
    return np.nan if found is None else found


def is_latest(look: KnownPage, gained: FetchGain) -> bool:
    """Check whether a measured gain belongs to the page's latest fetch: it was not refreshed since."""
    return abs(look.page.fetched_s - gained.fetched_s) <= SAME_FETCH_S


def with_gain(look: KnownPage, gained: FetchGain) -> KnownPage:
    """Return a known page with the measured gain of its latest fetch, for the refresh policy."""
    state = look.state
    gain = state.gain if gained.gain is None else gained.gain
    views = state.views if gained.views is None else gained.views
    return look._replace(state=state._replace(gain=gain, views=views))


SIGNATURE_BYTES, NUMBER_BYTES = 4, 8
COST_KEY, SECONDS_KEY, SENT_KEY = "refresh cost", "connection seconds", "bytes sent by observers"
READS_KEY = "source reads"
# There are many host means, so they are written periodically: a crash loses some minutes of them.
SAVE_EVERY_S = 600.0


class PageBatch(NamedTuple):
    """A batch of pages with the refresh policy's state of them and their groups."""

    batch: KnownPages
    memory: Memory
    groups: GroupSelection


class PolicyMemory:
    """Memory of the refresh policy over the crawl store. A ``witness`` records each batch with its decision.

    ``busy`` holds the current busy hours of sites.
    """

    def __init__(
        self, mind: PolicyRunner, book: CrawlStore, seed: int, witness: DecisionRecorder | None, busy: BusySites
    ) -> None:
        self._busy = busy
        self._runner, self._store, self._seed, self._recorder = mind, book, seed, witness
        page_width, group_width = mind.widths
        self._page_bytes = SIGNATURE_BYTES + NUMBER_BYTES * page_width
        # Pages keep the rows of an earlier version of a policy; groups are upgraded.
        self._marks = (mind.signature, *([mind.earlier_signature] if mind.earlier_signature else ()))
        self._unweighed = tuple(bytes(255 - byte for byte in mark) for mark in self._marks)
        groups = [
            (name, _decode_row(blob) if blob.startswith(mind.signature) else mind.upgrade_group(_decode_row(blob)))
            for name, blob in book.get_groups()
            if blob.startswith(self._marks)
        ]
        self._groups = GroupRows(group_width, groups)
        self._cost = FetchCost.from_json(book.get_value(COST_KEY))
        self._seconds = HostMeans.from_json(book.get_value(SECONDS_KEY))
        self._sent = HostMeans.from_json(book.get_value(SENT_KEY))
        self._reads = SourceReads.from_json(book.get_value(READS_KEY))
        self._kept_s: float | None = None

    def has_memory(self, state: RefreshState) -> bool:
        """Check whether the refresh policy has state for a page."""
        return len(state.memory) == self._page_bytes and state.memory.startswith((*self._marks, *self._unweighed))

    def is_unmeasured(self, state: RefreshState) -> bool:
        """Check whether a page's latest change must be measured before the policy learns from it."""
        return self.has_memory(state) and state.memory.startswith(self._unweighed)

    def is_eligible(self, look: KnownPage) -> bool:
        """Check whether the refresh policy schedules this page (good, with state, no source)."""
        return is_good(look.page.status) and not is_source(look.url, look.page.kind) and self.has_memory(look.state)

    def batch_results(self, results: Sequence[RefreshResult]) -> PageBatch:
        """Build a batch of just fetched pages with their policy memory; learn the mean fetch cost."""
        self._learn_cost([one for one in results if not one.is_gone])
        picked = self._groups.select([one.result.task.url for one in results])
        seconds = self._seconds.estimate([one.result.task.host for one in results])
        sizes = self._find_sizes([one.result.task.host for one in results], [one.body_bytes for one in results])
        batch = batch_from_results(results, picked, self._cost.estimate(sizes, seconds))
        batch = self._add_site_facts(batch, [one.result.task.url for one in results])
        return PageBatch(batch, self._load_memory([one.state for one in results], picked), picked)

    def batch_pages(self, looks: Sequence[KnownPage]) -> PageBatch:
        """Build a batch of stored pages with their policy memory."""
        picked = self._groups.select([look.url for look in looks])
        hosts = [origin_of(look.url).host for look in looks]
        seconds = self._seconds.estimate(hosts)
        sizes = self._find_sizes(hosts, [look.page.body_bytes for look in looks])
        batch = batch_from_pages(looks, picked, self._cost.estimate(sizes, seconds))
        batch = self._add_site_facts(batch, [look.url for look in looks])
        return PageBatch(batch, self._load_memory([look.state for look in looks], picked), picked)

    def _find_sizes(self, hosts: Sequence[str], sizes: Sequence[int]) -> list[int]:
        """Find how many bytes come home for each page: all of it, or what its host's observer sends on average."""
        sent = self._sent.estimate(hosts)
        return [size if mean is None else min(size, round(mean)) for size, mean in zip(sizes, sent, strict=True)]

    def _add_site_facts(self, batch: KnownPages, urls: Sequence[str]) -> KnownPages:
        """Add when each page's site last had a source read, and its busy hours."""
        busy_hours, busy_factor = self._busy.find(urls)
        return replace(batch, heard_s=self._reads.find(urls), busy_hours=busy_hours, busy_factor=busy_factor)

    def on_source_read(self, url: str, now_s: float) -> None:
        """Record that a feed or sitemap was read: its site has announced its changes up to then."""
        self._reads.add(url, now_s)

    def estimate_costs(self, results: Sequence[FetchResult]) -> Floats:
        """Estimate the cost of these fetches in ordinary fetches, by the policy memory's cost model."""
        sizes = [_count_bytes(result) if isinstance(result, FetchSuccess) else 0 for result in results]
        return self._cost.estimate(sizes, [result.connection_s for result in results])

    def _learn_cost(self, results: Sequence[RefreshResult]) -> None:
        if not results:
            return
        held_s = [one.result.connection_s for one in results]
        sizes = [one.body_bytes if one.result.sent_bytes is None else one.result.sent_bytes for one in results]
        self._cost = self._cost.observe(sizes, held_s)
        self._store.set_value(COST_KEY, self._cost.to_json())
        self._seconds.observe([one.result.task.host for one in results], held_s)
        sent = [(one.result.task.host, one.result.sent_bytes) for one in results]
        self._sent.forget([host for host, size in sent if size is None])
        pairs = [(host, float(size)) for host, size in sent if size is not None]
        self._sent.observe([host for host, _ in pairs], [size for _, size in pairs])
        now_s = results[-1].result.ended_s
        if self._kept_s is None or abs(now_s - self._kept_s) >= SAVE_EVERY_S:
            self._store.set_value(SECONDS_KEY, self._seconds.to_json())
            self._store.set_value(SENT_KEY, self._sent.to_json())
            self._store.set_value(READS_KEY, self._reads.to_json())
            self._kept_s = now_s

    def compute_due_times(self, stage: Stage, pages: PageBatch, after: Memory, now_s: float, price: float) -> Floats:
        """Compute the due times of a batch at a price, by the policy memory after the batch."""
        due_s = self._runner.due(after, pages.batch, now_s, price, rng_for(self._seed, stream_name(stage, now_s)))
        self.record_decision(stage, pages, after, now_s, {"price": price, "due_s": due_s})
        return due_s

    def record_decision(
        self, stage: Stage, pages: PageBatch, after: Memory, now_s: float, dates: Mapping[str, Any]
    ) -> None:
        """Record for the witness what the refresh policy received and returned."""
        if self._recorder is None:
            return
        columns = {name: getattr(pages.batch, name).tolist() for name in KnownPages.__slots__}
        facts = {**columns, **_list_rows(pages.memory), "price": [dates.get("price", 0.0)]}
        outcome = {"due_s": dates["due_s"].tolist()} if dates else {}
        outcome |= _list_rows(after) if stage != "asked" else {}
        policies = {self._runner.policy.name: _list_settings(self._runner.policy)}
        stream = stream_name(stage, now_s)
        self._recorder(Decision(f"refresh/{stage}", now_s, self._seed, stream, policies, facts, outcome))

    def save(self, pages: PageBatch, after: Memory, states: Sequence[RefreshState], *, unweighed: bool = False) -> None:
        """Save the policy memory of a batch; ``unweighed`` if its fetches are yet to be learned from."""
        mark = self._runner.signature
        row_mark = self._unweighed[0] if unweighed else mark
        rows = zip(states, after.pages, strict=True)
        self._store.save_refresh_states([one._replace(memory=row_mark + row.tobytes()) for one, row in rows])
        self._groups.update(pages.groups, after.groups)
        self._store.save_groups([(name, mark + row.tobytes()) for name, row in self._groups.pop_changed()])

    def _load_memory(self, states: Sequence[RefreshState], picked: GroupSelection) -> Memory:
        pages = np.zeros((len(states), self._runner.widths[0]))
        for row, one in enumerate(states):
            if self.has_memory(one):
                pages[row] = _decode_row(one.memory)
        return Memory(pages, picked.rows)


def _decode_row(blob: bytes) -> Floats:
    return np.frombuffer(blob, np.float64, offset=SIGNATURE_BYTES)


def _list_rows(memory: Memory) -> dict[str, Any]:
    return {"pages": memory.pages.tolist(), "groups": memory.groups.tolist()}


def _list_settings(policy: Any) -> dict[str, object]:  # noqa: ANN401 - each policy is a dataclass of its own
    """List the settings of a refresh policy for the decision record, with sets in order."""
    values = asdict(policy).items()
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in values}


class PolicyVerdict(NamedTuple):
    """The refresh policy's verdict on one page, for explanations; None if it gives none.

    ``worth`` is per unit of ``cost``. After ``median_wait_d`` days without a fetch the probability that the page has
    changed is one half; ``causes`` are what moved that belief besides the page's own changes.
    """

    policy: str
    reason: str
    rate_d: float | None
    rate_low_d: float | None
    rate_high_d: float | None
    chance: float | None
    worth: float | None
    price: float | None
    cost: float = 1.0
    median_wait_d: float | None = None
    causes: Sequence[str] = ()


def explain_page(mind: PolicyRunner, pages: PageBatch, now_s: float, price: float | None) -> PolicyVerdict:
    """Explain the refresh policy's verdict on the one page of a batch, at a price."""
    memory, batch = pages.memory, pages.batch
    rates, worth = mind.rates(memory, batch), mind.value(memory, batch, now_s)
    chance, wait_d = mind.chance(memory, batch, np.array([now_s])), mind.median_wait_d(memory, batch)
    low, high = (float(rates.low[0]), float(rates.high[0])) if rates else (None, None)
    return PolicyVerdict(
        policy=mind.policy.name,
        reason=mind.reason(memory, batch, 0, now_s),
        rate_d=float(rates.mean[0]) if rates else None,
        rate_low_d=low,
        rate_high_d=high,
        chance=float(chance[0]) if chance is not None else None,
        worth=float(worth[0]) if worth is not None else None,
        price=price,
        cost=float(at_current_cost(batch, now_s).cost[0]),
        median_wait_d=float(wait_d[0]) if wait_d is not None else None,
        causes=mind.causes(memory, batch, 0, now_s),
    )
