"""What is foreseen of unseen URLs, where choices are made: their front queues, their order in line, their worth."""

from collections.abc import Sequence
from math import inf, nan

import numpy as np

from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.state import KeptHost
from vedette.engine.ports import Leased, Urls
from vedette.engine.scheduling.impact_ports import Foresight
from vedette.frontier.impact.estimates import Weighed, fronts_by_rank
from vedette.frontier.unseen import Unseen
from vedette.policy import Floats

__all__ = ["Foreseeing"]


class Foreseeing:
    """Asks ``foresight`` where the order is by impact and something was worked out; else nothing happens."""

    def __init__(self, hosts: Hosts, urls: Urls, foresight: Foresight) -> None:
        self._hosts, self._urls, self._foresight = hosts, urls, foresight

    @property
    def is_at_work(self) -> bool:
        """Whether something is foreseen, and the operator wants it heeded."""
        return self._hosts.rules.order == "impact" and self._foresight.turn > 0

    def fronts(self, urls: Sequence[str]) -> dict[int, int]:
        """The front queues of URLs that are found now, by their places, as far as what they bring is foreseen."""
        if not self.is_at_work:
            return {}
        gains = self._foresight.gains(np.zeros(len(urls), np.uint32), urls)
        known = np.flatnonzero(np.isfinite(gains))
        return dict(zip(known.tolist(), self._foresight.fronts(gains[known]).tolist(), strict=True))

    def line_up(self, host: KeptHost) -> None:
        """After each making of what is foreseen, those that wait for a host stand in line by it, the best first.

        Of whom nothing is foreseen (known pages that wait again, what was found since) stays in its queue, in front.
        """
        if not self.is_at_work or host.lined_up == self._foresight.turn:
            return
        host.lined_up = self._foresight.turn
        ids, before = self._urls.lined_up(host.id)
        gains = self._foresight.known(ids)
        known = np.isfinite(gains)
        fronts = before.astype(np.int64)
        fronts[known] = fronts_by_rank(gains[known])
        order = np.argsort(np.where(known, -gains, -inf), kind="stable")
        self._urls.line_up(host.id, ids[order], fronts[order])

    def weighed(self, leased: Sequence[Leased], batch: Unseen) -> Unseen:
        """The batch with what is foreseen of each."""
        if not self.is_at_work:
            return batch
        return Weighed(batch.depth, batch.found, batch.inlinks, self._gains(leased))

    def gain(self, leased: Leased) -> float:
        """What is foreseen of one; NaN where nothing is."""
        return float(self._gains([leased])[0]) if self.is_at_work else nan

    def _gains(self, leased: Sequence[Leased]) -> Floats:
        return self._foresight.gains(np.array([one.id for one in leased], np.uint32), [one.url for one in leased])
