"""The three that ask for fetches in ``joint_run``: for changes, for links, and for unseen pages."""

from collections.abc import Sequence

import numpy as np

from vedette.discover.policies.accrual import Accrual
from vedette.discover.polling.arrivals import LIVES_H, chance_up
from vedette.discover.polling.look_book import Brought, LookBook
from vedette.discover.polling.overlap import gathered
from vedette.discover.polling.poll_value import urgency
from vedette.engine.scheduling.first_groups import groups_of_unseen
from vedette.lab.runs.refresh.agents import Mind, Told
from vedette.lab.worlds.history import Answers, Bools, History
from vedette.policy import Floats, Ints
from vedette.pricing import LASTING_D, Firsts
from vedette.refresh.policies.expected_gain import ExpectedGain

__all__ = ["Looker", "Refresher", "Unseen"]

DAY_H = 24.0


class Refresher(Mind):
    """The refresh policy, asked what fetches are worth and never when: all pages are weighed at each batch."""

    def __init__(self, history: History, seed: int) -> None:
        super().__init__(ExpectedGain(), history, seed)

    def came(self, pages: Ints, told: Told, now_s: float) -> None:
        """What fetches found."""
        made = self._made(pages, told)
        self._keep(pages, made.groups, self._policy.observe(made.state, made.batch, now_s))

    def value(self, pages: Ints, since_s: Floats, now_s: float) -> Floats:
        """What fetches of these pages are worth now, by what they have probably changed."""
        none = np.zeros(len(pages), np.bool_)
        worth = self.worth(pages, Told(since_s, none, none), now_s)
        assert worth is not None, "the policy has a price"
        return worth


class Looker:
    """The discovery policy over all pages with copies; a fetch of any of them is a look."""

    def __init__(self, history: History) -> None:
        self._policy = Accrual()
        self._state = self._policy.start(None)
        self._book = LookBook(history.site)

    def came(self, answers: Answers, new: Sequence[Bools], now_s: float) -> None:
        """What fetches showed, and which of it was new."""
        start = np.concatenate([[0], np.cumsum([len(links) for links in answers.links])]).astype(np.int64)
        target, fresh = np.concatenate(answers.links), np.concatenate(new)
        brought = Brought(answers.pages, answers.version >= 0, start, target, fresh)
        self._state = self._policy.observe(self._state, self._book.enter(brought, now_s), now_s)

    def page_days(self, pages: Ints, now_s: float) -> Floats:
        """The days, of all new pages together, by which finding them is put off where a page is not fetched now.

        What the policy calls urgency is in pages that are lost; here no link is, so it is how long they wait.
        """
        arrivals = self._state.arrivals
        late = urgency(gathered(self._state, pages, now_s), np.inf) * LIVES_H / DAY_H
        waited: Floats = (arrivals.rates(pages, now_s).mean * late).sum(axis=1)
        return waited * chance_up(arrivals.down_s[pages], arrivals.looked_s[pages], now_s)


class Unseen:
    """What first fetches brought, by section, by folders in the address and by in-links."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._inlinks = np.zeros(len(urls), np.int64)
        self._firsts = Firsts()

    def linked(self, pages: Ints) -> None:
        """A page that was fetched links to these."""
        self._inlinks[pages] += 1

    def changed(self, gains: Floats) -> None:
        """What changes brought that refreshes found."""
        self._firsts = self._firsts.changed(gains)

    def came(self, pages: Ints, gains: Floats) -> None:
        """What first fetches brought."""
        self._firsts = self._firsts.came(self._groups(pages), gains)

    def worth(self, pages: Ints) -> Floats:
        """What first fetches of these are worth."""
        return self._firsts.worth(self._groups(pages)) * LASTING_D

    @property
    def page_worth(self) -> float:
        """What it is worth to know a page a day sooner."""
        return self._firsts.page_worth

    def _groups(self, pages: Ints) -> list[tuple[str, str, str]]:
        return [groups_of_unseen(self._urls[page], int(self._inlinks[page])) for page in pages.tolist()]
