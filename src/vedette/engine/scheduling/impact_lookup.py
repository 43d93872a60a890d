"""What is foreseen of unseen URLs, where choices are made: their front queues, their order in line, their worth."""

from collections.abc import Sequence
from math import inf, nan

import numpy as np

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import HostState
from vedette.engine.ports import LeasedUrl, UrlFrontier
from vedette.engine.scheduling.impact_ports import ImpactEstimates
from vedette.frontier.impact.estimates import UnseenWithGain, assign_by_rank
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats


class ImpactLookup:
    """Asks ``foresight`` where the order is by impact and something was worked out; else nothing happens."""

    def __init__(self, hosts: HostTable, urls: UrlFrontier, foresight: ImpactEstimates) -> None:
        self._hosts, self._urls, self._estimates = hosts, urls, foresight

    @property
    def is_active(self) -> bool:
        """Whether something is foreseen, and the operator wants it heeded."""
        return self._hosts.rules.order == "impact" and self._estimates.version > 0

    def get_front_queues(self, urls: Sequence[str]) -> dict[int, int]:
        """The front queues of URLs that are found now, by their places, as far as what they bring is foreseen."""
        if not self.is_active:
            return {}
        gains = self._estimates.get_gains(np.zeros(len(urls), np.uint32), urls)
        known = np.flatnonzero(np.isfinite(gains))
        return dict(zip(known.tolist(), self._estimates.get_front_queues(gains[known]).tolist(), strict=True))

    def reorder_host(self, host: HostState) -> None:
        """After each making of what is foreseen, those that wait for a host stand in line by it, the best first.

        Of whom nothing is foreseen (known pages that wait again, what was found since) stays in its queue, in front.
        """
        if not self.is_active or host.impact_version == self._estimates.version:
            return
        host.impact_version = self._estimates.version
        ids, before = self._urls.get_queue(host.id)
        gains = self._estimates.get_known(ids)
        known = np.isfinite(gains)
        fronts = before.astype(np.int64)
        fronts[known] = assign_by_rank(gains[known])
        order = np.argsort(np.where(known, -gains, -inf), kind="stable")
        self._urls.set_queue(host.id, ids[order], fronts[order])

    def add_impact(self, leased: Sequence[LeasedUrl], batch: UnseenUrls) -> UnseenUrls:
        """The batch with what is foreseen of each."""
        if not self.is_active:
            return batch
        return UnseenWithGain(batch.depth, batch.found, batch.inlinks, self._get_gains(leased))

    def get_gain(self, leased: LeasedUrl) -> float:
        """What is foreseen of one; NaN where nothing is."""
        return float(self._get_gains([leased])[0]) if self.is_active else nan

    def _get_gains(self, leased: Sequence[LeasedUrl]) -> Floats:
        return self._estimates.get_gains(np.array([one.id for one in leased], np.uint32), [one.url for one in leased])
