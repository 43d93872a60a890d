"""What an observation costs from home, and through a remote observer (Observe99, section 2.5, equations 41-43).

Three machines: home A, the site B, and the observer C near the site. A link from i to j has a latency ``L_ij`` (one
way, seconds) and takes ``N_ij`` seconds per byte. For k observations of a page of ``S_D`` bytes, with an agent of
``beta S_D`` bytes, a share gamma of observations that find a change, and changes that shrink to a part eta of the page:

    t1 = k (2 L_AB + N_AB S_D)                                                                   (41)
    t2 = (L_AC + N_AC beta S_D + C_startup) + k [(2 L_CB + N_CB S_D) + gamma (L_AC + N_AC eta S_D)]   (42)
    1 > (N_AC / N_AB) (beta / k + gamma eta) + N_CB / N_AB    as all L_ij and C_startup go to 0          (43)

(43) assumes zero latency, so decisions use (41) and (42). Our observers stay where they are: what the paper's agent
carries is sent once with each errand, so beta counts the bytes of an errand, and C_startup is 0.

Printed, (42) has a message of half a round trip for each change. Our observers report many observations at once, in r
requests with a response each, and every observation takes beta S_D bytes, for its errand and for what is not a change
(``compute_reported_s``):

    t2' = k (2 L_CB + N_CB S_D) + r 2 L_AC + k N_AC (beta + gamma eta) S_D

Both sum up the time that is spent. While a report is on its way, the observer goes on requesting pages, so less time
passes until the last of them is at home, unless the observer has nothing to do before the next report.

The assumptions that a live link does not satisfy are measured, not assumed: a request on a fresh connection pays more
than two latencies (handshakes), and a slow start makes seconds per byte larger for small pages. Both are in the fitted
``L`` and ``N`` of a link, which are therefore effective values (``LinkMeter``).
"""

from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple


class Link(NamedTuple):
    """A link between two machines: one-way latency in seconds, and seconds per byte."""

    latency_s: float
    per_byte_s: float


class Task(NamedTuple):
    """What is observed: page size, change share gamma, compression eta of a change, and agent size beta."""

    size_bytes: float
    change_share: float
    compression: float
    agent_share: float = 0.0


def compute_direct_s(count: float, home_site: Link, size_bytes: float) -> float:
    """Compute t1, the time of this many observations from home (eq. 41).

    >>> compute_direct_s(10, Link(0.1, 1e-6), 100_000)
    3.0
    """
    return count * (2.0 * home_site.latency_s + home_site.per_byte_s * size_bytes)


def compute_remote_s(
    count: float, home_observer: Link, observer_site: Link, task: Task, startup_s: float = 0.0
) -> float:
    """Compute t2, the time of this many observations through a remote observer (eq. 42).

    >>> near, far = Link(0.001, 1e-8), Link(0.1, 1e-6)
    >>> round(compute_remote_s(10, far, near, Task(100_000, change_share=0.05, compression=0.2, agent_share=0.01)), 4)
    0.191
    """
    first_s = home_observer.latency_s + home_observer.per_byte_s * task.agent_share * task.size_bytes + startup_s
    look_s = 2.0 * observer_site.latency_s + observer_site.per_byte_s * task.size_bytes
    return first_s + count * (look_s + task.change_share * _report_s(home_observer, task))


def compute_reported_s(count: float, reports: float, home_observer: Link, observer_site: Link, task: Task) -> float:
    """Compute t2', the time of this many observations at the site and of the reports on them.

    >>> near, far = Link(0.001, 1e-8), Link(0.1, 1e-6)
    >>> round(compute_reported_s(10, 2, far, near, Task(100_000, 0.05, 0.2, agent_share=0.01)), 4)
    0.45
    """
    site_s = count * (2.0 * observer_site.latency_s + observer_site.per_byte_s * task.size_bytes)
    sent_bytes = count * (task.agent_share + task.change_share * task.compression) * task.size_bytes
    return site_s + reports * 2.0 * home_observer.latency_s + home_observer.per_byte_s * sent_bytes


def compute_relative_time(count: float, home_site: Link, home_observer: Link, observer_site: Link, task: Task) -> float:
    """Compute the right side of (43): remote time divided by direct time without latencies; remote wins below 1.

    >>> near, far = Link(0.0, 1e-8), Link(0.0, 1e-6)
    >>> round(compute_relative_time(10, far, far, near, Task(100_000, 0.05, 0.2, 0.01)), 4)
    0.021
    """
    relative = task.agent_share / count + task.change_share * task.compression
    return home_observer.per_byte_s / home_site.per_byte_s * relative + observer_site.per_byte_s / home_site.per_byte_s


def find_break_even(home_site: Link, home_observer: Link, observer_site: Link, task: Task) -> float:
    """Find the number of observations at which the remote observer becomes faster (t2 = t1); infinity if it never does.

    The paper's condition: the download alone must be faster by more than the reports cost.


    >>> near, far = Link(0.001, 1e-8), Link(0.1, 1e-6)
    >>> round(find_break_even(far, far, near, Task(100_000, 0.05, 0.2, agent_share=1.0)), 3)
    0.687
    >>> find_break_even(near, far, far, Task(100_000, 0.05, 0.2))
    inf
    """
    first_s = compute_remote_s(0, home_observer, observer_site, task)
    saved_s = compute_direct_s(1, home_site, task.size_bytes) - (
        compute_remote_s(1, home_observer, observer_site, task) - first_s
    )
    return first_s / saved_s if saved_s > 0 else inf


def find_break_even_latency_s(home_site: Link, home_observer: Link, observer_site: Link, task: Task) -> float:
    """Find the latency of the direct link above which remote observation is faster in the long run (42 = 41).

    >>> near, far = Link(0.001, 1e-8), Link(0.1, 1e-6)
    >>> round(find_break_even_latency_s(far, far, near, Task(10_000, 1.0, 0.5)), 5)
    0.04855
    """
    remote_s = compute_remote_s(1, home_observer, observer_site, task) - compute_remote_s(
        0, home_observer, observer_site, task
    )
    return max(remote_s - home_site.per_byte_s * task.size_bytes, 0.0) / 2.0


def _report_s(link: Link, task: Task) -> float:
    return link.latency_s + link.per_byte_s * task.compression * task.size_bytes


# How many measurements a link's sums remember; after this many fetches, they have adapted to a new route.
WINDOW = 200.0
# Fewer measurements do not determine the slope.
MIN_COUNT = 5.0


@dataclass(frozen=True, slots=True)
class LinkMeter:
    """Measured exchanges over a link, as decaying sums, from which latency and seconds per byte are fitted.

    An exchange of b bytes takes 2 L + N b seconds; the line is fitted by least squares.


    >>> meter = LinkMeter()
    >>> for size in (1_000, 20_000, 5_000, 90_000, 40_000):
    ...     meter = meter.add(size, 0.4 + 1e-6 * size)
    >>> link = meter.fit()
    >>> round(link.latency_s, 6), round(link.per_byte_s * 1e6, 6), round(meter.estimate_s(50_000), 3)
    (0.2, 1.0, 0.45)
    >>> LinkMeter().fit() is None
    True
    """

    count: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    def add(self, size_bytes: float, seconds: float) -> "LinkMeter":
        """Add an exchange of this many bytes and seconds; older ones decay."""
        kept = 1.0 - 1.0 / WINDOW if self.count >= WINDOW else 1.0
        return LinkMeter(
            self.count * kept + 1.0,
            self.bytes * kept + size_bytes,
            self.seconds * kept + seconds,
            self.squares * kept + size_bytes * size_bytes,
            self.products * kept + size_bytes * seconds,
        )

    @property
    def mean_bytes(self) -> float:
        """The mean size of an exchange."""
        return self.bytes / self.count if self.count else 0.0

    @property
    def mean_s(self) -> float:
        """The mean duration of an exchange."""
        return self.seconds / self.count if self.count else 0.0

    def fit(self) -> Link | None:
        """Fit latency and seconds per byte; None until there are enough measurements.

        If all sizes are about the same, they do not determine the slope, and all time counts as latency. Neither result
        is negative.
        """
        if self.count < MIN_COUNT:
            return None
        spread = self.squares / self.count - self.mean_bytes**2
        both = self.products / self.count - self.mean_bytes * self.mean_s
        slope = max(both / spread, 0.0) if spread > (0.01 * self.mean_bytes) ** 2 + 1.0 else 0.0
        slope = min(slope, self.mean_s / self.mean_bytes) if self.mean_bytes else slope
        return Link(max(self.mean_s - slope * self.mean_bytes, 0.0) / 2.0, slope)

    def estimate_s(self, size_bytes: float) -> float:
        """Estimate the duration of an exchange of this size from the fitted line, or the mean if there is none yet."""
        link = self.fit()
        return self.mean_s if link is None else 2.0 * link.latency_s + link.per_byte_s * size_bytes


@dataclass(frozen=True, slots=True)
class ChangeMeter:
    """Observations of a host by an observer: their number, how many found a change, sizes, and bytes sent home.

    >>> meter = ChangeMeter().add(10_000, 0).add(10_000, 500, is_changed=True)
    >>> meter.change_share, meter.compression, meter.sent_per_look
    (0.5, 0.05, 250.0)
    """

    looks: float = 0.0
    changes: float = 0.0
    bytes: float = 0.0
    changed_bytes: float = 0.0
    sent_bytes: float = 0.0

    def add(self, size_bytes: float, sent_bytes: float, *, is_changed: bool = False) -> "ChangeMeter":
        """Add an observation of a page of this size for which this many bytes were sent home."""
        kept = 1.0 - 1.0 / WINDOW if self.looks >= WINDOW else 1.0
        faded = replace(
            self,
            looks=self.looks * kept + 1.0,
            changes=self.changes * kept + is_changed,
            bytes=self.bytes * kept + size_bytes,
        )
        changed = size_bytes if is_changed else 0.0
        return replace(
            faded, changed_bytes=self.changed_bytes * kept + changed, sent_bytes=self.sent_bytes * kept + sent_bytes
        )

    @property
    def change_share(self) -> float:
        """The share of observations that found a change (gamma)."""
        return self.changes / self.looks if self.looks else 1.0

    @property
    def compression(self) -> float:
        """The bytes sent home per change, relative to the page (eta)."""
        return self.sent_bytes / self.changed_bytes if self.changed_bytes else 1.0

    @property
    def mean_bytes(self) -> float:
        """The mean size of an observed page."""
        return self.bytes / self.looks if self.looks else 0.0

    @property
    def sent_per_look(self) -> float:
        """The mean number of bytes that an observation sends home."""
        return self.sent_bytes / self.looks if self.looks else 0.0

    def to_task(self, agent_bytes: float = 0.0) -> Task:
        """Return the parameters for the equations; ``agent_bytes`` is the size of an errand."""
        share = agent_bytes / self.mean_bytes if self.mean_bytes else 0.0
        return Task(self.mean_bytes, self.change_share, self.compression, share)
