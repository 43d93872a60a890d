"""Expected-gain refresh: fetch a page again when the gain expected for searchers is worth the price."""

from dataclasses import dataclass, replace

import numpy as np

from vedette.policy import Floats
from vedette.refresh.freshness_index import announced_worth, solve_announced
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.age import Ageing
from vedette.refresh.models.announced import AnnouncedBelief, Announcements, is_announced
from vedette.refresh.models.base import Belief, Rates, to_chance
from vedette.refresh.models.mixture import Mixture
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rows import slice_memory
from vedette.refresh.models.two_stage import TwoStage
from vedette.refresh.models.waves import Waves
from vedette.refresh.models.young import Young
from vedette.timeutil import DAY_S

# The models it uses; hours of the week cost more than they gained on the histories that were tried.
MODEL = Mixture(parts=(Waves(), Pooled(), Ageing(), TwoStage(), Young()))
# Pages die in waves, too: if one of a section is gone, others may be. And a dead copy also misleads searchers.
DEATHS = Waves(name="deaths")
# Announcements in sitemaps, feeds and pings come on top; they are no part of the mixture, so they count from the first
# day.
ANNOUNCED = Announcements()
# Columns after those of the models: a page's total gain of changes, their number, and how often it is seen.
GAINS, MEASURED, VIEWS = range(3)
# For explanations: the smallest change of a belief to mention; and how far ahead to look for a change.
NOTABLE, MAX_WAIT_D, HALVINGS = 0.05, 3650.0, 30
# Per group: the total gain of changes, their number, and how often the changed pages are seen.
GROUP_WIDTH = 3


@dataclass(frozen=True, slots=True)
class ExpectedGain:
    """Refresh a page when the expected gain of a fetch reaches the price (index of Cho, Azar and Olston).

        worth = (mu / h) (1 - e^-x (1 + x)) / cost,    due when worth = price

    x is the believed staleness of the copy (-log of the probability that it is current, so that time, age, waves and
    announcements can all increase it: a mixture of models says how, plus ``announced``), h its hazard of going stale,
    and mu what a change of this page is worth to searchers, 1 for an ordinary page. So no fetch is worth more than mu /
    h. If changes are announced the index is that of GREEDY-NCIS (``freshness_index.announced_worth``). A page that is
    gone has gone stale, too; that probability is modeled separately from its changes, so that neither distorts the
    other:

        mu = floor + (1 - floor) (gains + c usual) / (changes + c) / (mean gain of a change)

    The gain of a change is measured when it is indexed (Delta-Q_A). For a page without its own history the usual gain
    depends on how often people see it. The floor keeps pages current that no one has searched for yet.

    No page is starved: none waits longer than ``longest_s``, whatever the price.

    Useful for all refreshes; this is the policy that runs live. Not useful for discovery sources, which are polled for
    their links.

    References: the index as in ``freshness_index``; the gain of a change: Pandey08, 4.6; model and floor are ours.

    Two pages were fetched ten days ago and again now; one had changed. It is due sooner, and both wait longer at a
    higher price:

    >>> from vedette.policy import rng_for
    >>> policy, now, no = ExpectedGain(), 10 * DAY_S, np.zeros(2, bool)
    >>> first = KnownPages(np.arange(2), np.ones(2), no, ~no, np.full(2, np.nan))
    >>> second = KnownPages(np.arange(2), np.full(2, now), np.array([True, False]), no, np.full(2, np.nan), np.ones(2))
    >>> state = policy.observe(policy.observe(policy.start(None), first, 1.0), second, now)
    >>> cheap, dear = (policy.due(state, second, now, price, rng_for(1, "refresh")) for price in (0.1, 1.0))
    >>> bool(cheap[0] < cheap[1]), bool((cheap < dear).all())
    (True, True)
    """

    name: str = "expected-gain"
    model: Mixture = MODEL
    deaths: Waves = DEATHS
    announced: Announcements = ANNOUNCED
    floor: float = 0.9
    confidence: float = 2.0
    longest_s: float = 180 * DAY_S
    priced: bool = True
    wants: frozenset[str] = frozenset({"gain", "views"})

    @property
    def page_width(self) -> int:
        """The number of values that expected-gain refresh stores per page."""
        return self.model.page_width + self.deaths.page_width + 3

    @property
    def group_width(self) -> int:
        """The number of values that expected-gain refresh stores per group of pages."""
        return self.model.group_width + self.deaths.group_width + self.announced.group_width + GROUP_WIDTH

    @property
    def earlier_group_width(self) -> int:
        """The width of group rows before they had the gaps between announcements; such rows can be upgraded."""
        return self.group_width - 2

    def upgrade_group(self, row: Floats) -> Floats:
        """Return a group row of the earlier width with room for the gaps between announcements."""
        at = self.model.group_width + self.deaths.group_width + self.announced.group_width - 2
        upgraded: Floats = np.insert(row, [at, at], 0.0)
        return upgraded

    def start(self, config: None) -> Memory:
        """Return an empty expected-gain memory."""
        return Memory.empty(self.page_width, self.group_width)

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Train the change model with what the fetches found, and count their gains if known already."""
        after = state.grow_for(batch)
        begun = batch.place[batch.first_fetch]
        for rows, learned in (
            (self._model_memory(after), self.model.learn(self._model_memory(state), batch)),
            (self._deaths_memory(after), self.deaths.learn(self._deaths_memory(state), _as_deaths(batch))),
            (self._announced_memory(after), self.announced.learn(self._announced_memory(state), batch)),
        ):
            rows.pages[:], rows.groups[:] = learned.pages, learned.groups
        self._gains_memory(after).pages[begun] = 0.0
        return self.learn_gains(after, batch, now)

    def learn_gains(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Add the measured gains of earlier fetches (``gain``), and how often pages are seen (``views``)."""
        after = state.grow_for(batch)
        own, groups = self._gains_memory(after).pages, self._gains_memory(after).groups
        seen = np.isfinite(batch.views)
        own[batch.place[seen], VIEWS] = np.maximum(batch.views[seen], 0.0)
        some = np.isfinite(batch.gain) & batch.changed & ~batch.first_fetch
        gain, rows = np.maximum(batch.gain[some], 0.0), batch.place[some]
        own[rows, GAINS] += gain
        own[rows, MEASURED] += 1.0
        groups[0] += gain.sum(), len(gain), own[rows, VIEWS].sum()
        return after

    def value(self, state: Memory, batch: KnownPages, now: float) -> Floats:
        """Return the expected gain of fetching each page now, per unit of cost.

        1 is an ordinary change that is available for a day.
        """
        belief, recall, false_d = self.belief(state, batch, np.full(len(batch), now))
        part = announced_worth(belief.staleness, recall, false_d / belief.hazard)
        worth: Floats = self.weights(state, batch) / belief.hazard * part / batch.cost
        return worth

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return when the expected gain reaches the price, if nothing is announced and hazards stay."""
        at_s = np.maximum(batch.last_fetch_s, now)
        belief, recall, false_d = self.belief(state, batch, at_s)
        part = price * batch.cost * belief.hazard / self.weights(state, batch)
        left = np.maximum(solve_announced(part, recall, false_d / belief.hazard) - belief.staleness, 0.0)
        latest_s = batch.last_fetch_s + self.longest_s
        due: Floats = np.minimum(at_s + left / ((1.0 - recall) * belief.hazard) * DAY_S, latest_s)
        return due

    def chance(self, state: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the probability that each page has changed by a time, including announcements."""
        return to_chance(self._change_belief(state, batch, at_s).belief)

    def rates(self, state: Memory, batch: KnownPages) -> Rates:
        """Return how often each page changes, for display."""
        return self.model.rates(self._model_memory(state), batch)

    def median_wait_d(self, state: Memory, batch: KnownPages) -> Floats:
        """Return the days after its last fetch by which each page has changed with probability .5; at most 10 years."""
        low, high = np.zeros(len(batch)), np.full(len(batch), MAX_WAIT_D)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            at_s = batch.last_fetch_s + middle * DAY_S
            late = self.model.chance(self._model_memory(state), batch, at_s) >= 0.5
            low, high = np.where(late, low, middle), np.where(late, middle, high)
        return high

    def causes(self, state: Memory, batch: KnownPages, row: int, now: float) -> list[str]:
        """List what moves the belief about a page besides its own pace: announcements, silence, waves, deaths."""
        one = batch.select(np.array([row]))
        at_s = np.array([now])
        plain = self.model.belief(self._model_memory(state), one, at_s)
        announced = self._change_belief(state, one, at_s)
        silence = float((plain.staleness - announced.belief.staleness)[0])
        swept = max(float(part.wave_staleness(mine, one)[0]) for part, mine in self._waves_parts(state))
        # More than without any evidence: everything may disappear.
        dead, usual = (
            float(self.deaths.belief(self._deaths_memory(each), _as_deaths(one), at_s).staleness[0])
            for each in (state, self.start(None))
        )
        announcements = ["a change was announced"] if bool(is_announced(one, at_s)[0]) else []
        found = [
            (silence, "its site announces changes, but did not announce this one"),
            (swept, "pages near it changed together"),
            (dead - usual, "pages near it have disappeared"),
        ]
        return announcements + [words for staleness, words in found if staleness >= NOTABLE]

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """Describe how soon a page changes, how likely it has changed by now and why, and how much that matters."""
        one = batch.select(np.array([row]))
        wait_d = float(self.median_wait_d(state, one)[0])
        chance = float(self.chance(state, one, np.array([now]))[0])
        weight = float(self.weights(state, one)[0])
        causes = " and ".join(self.causes(state, one, 0, now))
        return (
            f"expected-gain: 50% chance of a change within {_format_days(wait_d)}, {chance:.0%} by now"
            f"{f' ({causes})' if causes else ''}, and a change counts {weight:.1f} times an ordinary one"
        )

    def _waves_parts(self, state: Memory) -> list[tuple[Waves, Memory]]:
        parts = self.model.iterate_parts(self._model_memory(state))
        return [(part, mine) for part, mine in parts if isinstance(part, Waves)]

    def belief(self, state: Memory, batch: KnownPages, at_s: Floats) -> AnnouncedBelief:
        """Return the belief that each page has changed or is gone, by the sum of both hazards."""
        changes, recall, false_d = self._change_belief(state, batch, at_s)
        deaths = self.deaths.belief(self._deaths_memory(state), _as_deaths(batch), at_s)
        both = Belief(*(change + death for change, death in zip(changes, deaths, strict=True)))
        return AnnouncedBelief(both, recall * changes.hazard / both.hazard, false_d)

    def _change_belief(self, state: Memory, batch: KnownPages, at_s: Floats) -> AnnouncedBelief:
        by_looks = self.model.belief(self._model_memory(state), batch, at_s)
        return self.announced.adjust_belief(self._announced_memory(state), batch, by_looks, at_s)

    def _model_memory(self, state: Memory) -> Memory:
        return slice_memory(state, 0, self.model.page_width, 0, self.model.group_width)

    def _deaths_memory(self, state: Memory) -> Memory:
        deaths = self.deaths
        return slice_memory(state, self.model.page_width, deaths.page_width, self.model.group_width, deaths.group_width)

    def _announced_memory(self, state: Memory) -> Memory:
        return slice_memory(state, 0, 0, self.model.group_width + self.deaths.group_width, self.announced.group_width)

    def _gains_memory(self, state: Memory) -> Memory:
        page = self.model.page_width + self.deaths.page_width
        return slice_memory(state, page, 3, self.group_width - GROUP_WIDTH, GROUP_WIDTH)

    def weights(self, state: Memory, batch: KnownPages) -> Floats:
        """Return mu: the expected gain of a change of each page, in units of an ordinary change."""
        state = state.ensure_rows(batch)
        memory = self._gains_memory(state)
        own = memory.pages[batch.place]
        gains, measured, views = memory.groups[0]
        if not gains > 0:
            return np.ones(len(batch))
        mean = gains / measured
        usual = np.where(views > 0, own[:, VIEWS] * gains / max(views, 1e-300), mean)
        expected = (own[:, GAINS] + self.confidence * usual) / (own[:, MEASURED] + self.confidence)
        weight: Floats = self.floor + (1.0 - self.floor) * expected / mean
        return weight


def _as_deaths(batch: KnownPages) -> KnownPages:
    """Convert the batch for the model of page deaths: a change is a page appearing or disappearing."""
    unknown = np.full(len(batch), np.nan)
    nothing = np.zeros(len(batch), np.bool_)
    return replace(batch, changed=batch.gone, gone=nothing, modified_s=unknown, signal_s=unknown)


def _format_days(days: float) -> str:
    """Format a time span in days for a refresh reason, in hours, days or years.

    >>> _format_days(0.02), _format_days(3.0), _format_days(800.0)
    ('0.5 hours', '3.0 days', '2.2 years')
    """
    if days < 1:
        return f"{days * 24:.1f} hours"
    return f"{days:.1f} days" if days < 366 else f"{days / 365.25:.1f} years"
