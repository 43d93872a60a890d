"""Observers experiment: when is it cheaper to look where the pages are, and what does that save? Observe99, 2.5.

A budget is the time per day, as a share of the time to fetch all pages from home (eq. 41). Each observation costs what
eq. 41 or eq. 42 says, so an observer's time is not free. Pages change as Poisson processes, and are fetched at regular
intervals, with the best frequencies for the budget (one price for all pages, at which the gain in freshness per second
is equal). So policies only differ in where pages are observed from:

- ``observers-0``: everything from home.
- ``observers-1``, ``observers-4``: observers where most of the distant pages are, in this order; with four, one is at
home. Hosts are assigned greedily (``fetch.observers.assignment``).
- ``figure-4``: no web; the comparison of the paper's figure 4 over latency, size and change share, one row for each.

``freshness_far`` is the freshness of large pages (above the median) in other regions. ``greedy_loss`` compares the
greedy assignment with the best one, found by trying all, for six hosts whose observers have room for half of the hosts
that they observe faster than home.
"""

from collections.abc import Mapping
from itertools import product

import numpy as np

from vedette.fetch.observers.assignment import HOME as AT_HOME
from vedette.fetch.observers.assignment import HostCosts, assign_hosts, find_best_assignment, sum_cost_s
from vedette.fetch.observers.costs import (
    Link,
    Task,
    compute_direct_s,
    compute_relative_time,
    compute_remote_s,
    find_break_even,
    find_break_even_latency_s,
)
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.worlds.regions import HOME, REGIONS, RegionPages, create_pages, get_link
from vedette.policy import Floats, rng_for
from vedette.refresh.known_pages import Bools

# The size of a difference as part of the page, and of an errand besides its URL (``runtime.observers.facts``).
COMPRESSION, ERRAND_BYTES = 0.05, 400.0
NO_LIMIT = 1e9
LATENCIES_S, SIZES, CHANGE_SHARES = (0.02, 0.1, 0.2, 0.4), (10e3, 100e3, 1e6), (0.01, 0.05, 0.25, 1.0)
HOME_LINK_BYTES_PER_S = 1e6
GREEDY_HOSTS = 6
OWN_METRICS: Mapping[str, Metric] = {
    "freshness_all": Metric("share of pages that are up to date", "share", True),
    "freshness_far": Metric("the same, of large pages in other regions", "share", True),
    "looks_far": Metric("observations a day of a large page in another region", "", True),
    "look_s": Metric("seconds of an observation, averaged over pages", "s", False),
    "moved": Metric("share of hosts that observers observe", "share"),
    "greedy_loss": Metric("cost of the greedy assignment beyond the best one", "share", False),
    "t1_s": Metric("seconds of an observation from home (eq. 41)", "s", False),
    "t2_s": Metric("seconds of an observation through an observer (eq. 42)", "s", False),
    "ratio": Metric("t2 / t1", "", False),
    "ratio_43": Metric("the same without latencies (eq. 43)", "", False),
    "break_even": Metric("observations from which the observer is faster, if it must be sent there first", ""),
    "switch_ms": Metric("latency from which the observer is faster, with these links", "ms"),
}


def allocate(rate: Floats, cost_s: Floats, budget_s: float) -> Floats:
    """Allocate fetches a day among pages for the best mean freshness within a daily time.

    A page that changes r times a day and is fetched f times is fresh for f/r (1 - exp(-r/f)) of the time. At the best
    allocation the derivative of that by f, per second, is the same for all pages that are fetched at all.

    >>> looks = allocate(np.array([1.0, 1.0]), np.array([1.0, 10.0]), 11.0)
    >>> (looks * [1.0, 10.0]).sum().round(3), bool(looks[0] > looks[1])
    (np.float64(11.0), True)
    """
    low, high = 1e-12, float((1.0 / (rate * cost_s)).max())
    for _ in range(40):
        price = (low * high) ** 0.5
        if float((_looks_at(price, rate, cost_s) * cost_s).sum()) > budget_s:
            low = price
        else:
            high = price
    looks = _looks_at(high, rate, cost_s)
    total_s = float((looks * cost_s).sum())
    return looks * (budget_s / total_s) if total_s else looks


def _looks_at(price: float, rate: Floats, cost_s: Floats) -> Floats:
    """Return the fetches a day at a price for a second: where (1 - (1 + x) exp(-x)) / r = price c, with x = r/f."""
    wanted = price * cost_s * rate
    small, large = np.full(len(rate), 1e-6), np.full(len(rate), 700.0)
    for _ in range(40):
        middle = (small * large) ** 0.5
        is_low = 1.0 - (1.0 + middle) * np.exp(-middle) < wanted
        small, large = np.where(is_low, middle, small), np.where(is_low, large, middle)
    return np.where(wanted < 1.0, rate / large, 0.0)


def compute_freshness(rate: Floats, looks: Floats) -> Floats:
    """Compute the share of time in which each page is up to date."""
    ratio = np.divide(looks, rate)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(looks > 0, ratio * -np.expm1(-1.0 / np.maximum(ratio, 1e-12)), 0.0)


def choose_regions(pages: RegionPages, count: int) -> list[str]:
    """Choose the regions of observers: those with the most distant pages first, then home."""
    sizes = {region: pages.region.count(region) for region in REGIONS if region != HOME}
    return [*sorted(sizes, key=lambda region: (-sizes[region], region)), HOME][:count]


def estimate_hosts(pages: RegionPages, regions: list[str], looks_per_change: float) -> list[HostCosts]:
    """Estimate the seconds of an observation of each host's average page, from home and from each region."""
    hosts = []
    for number, region in enumerate(pages.region):
        mine = pages.host == number
        size = float(pages.size[mine].mean())
        task = Task(size, 1.0 / looks_per_change, COMPRESSION, ERRAND_BYTES / size)
        seconds = {AT_HOME: compute_direct_s(1, get_link(HOME, region), size)}
        for place in regions:
            seconds[place] = compute_remote_s(1, get_link(HOME, place), get_link(place, region), task)
        hosts.append(HostCosts(f"h{number}", seconds))
    return hosts


def find_costs(pages: RegionPages, places: Mapping[str, str], change_share: Floats) -> Floats:
    """Find the seconds of an observation of each page, from where its host is observed."""
    costs = np.empty(len(pages.host))
    for page, host in enumerate(pages.host.tolist()):
        region, place, size = pages.region[host], places[f"h{host}"], float(pages.size[page])
        if place == AT_HOME:
            costs[page] = compute_direct_s(1, get_link(HOME, region), size)
        else:
            task = Task(size, float(change_share[page]), COMPRESSION, ERRAND_BYTES / size)
            costs[page] = compute_remote_s(1, get_link(HOME, place), get_link(place, region), task)
    return costs


def measure_greedy_loss(pages: RegionPages, regions: list[str], seed: int) -> float:
    """Measure how much worse greedy assignment is than the best one, if observers have room for half of the work."""
    hosts = estimate_hosts(pages, regions, 4.0)
    picked = rng_for(seed, "lab/observers/greedy").choice(len(hosts), min(GREEDY_HOSTS, len(hosts)), replace=False)
    some = [hosts[number] for number in picked.tolist()]
    gains = {
        place: [host.seconds[place] for host in some if host.seconds[place] < host.seconds[AT_HOME]]
        for place in regions
    }
    room = {place: 0.5 * sum(seconds) for place, seconds in gains.items()}
    best = sum_cost_s(some, find_best_assignment(some, room))
    return sum_cost_s(some, assign_hosts(some, room, NO_LIMIT)) / best - 1.0


def compare_scenarios() -> list[Measurements]:
    """Compare the two scenarios of the paper's figure 4 for several latencies, sizes and change shares."""
    rows: list[Measurements] = []
    near = Link(0.001, 1e-8)
    for latency_s, size, share in product(LATENCIES_S, SIZES, CHANGE_SHARES):
        far = Link(latency_s, 1.0 / HOME_LINK_BYTES_PER_S)
        task = Task(size, share, COMPRESSION, 1.0)
        t1_s = compute_direct_s(1, far, size)
        resident = task._replace(agent_share=ERRAND_BYTES / size)
        t2_s = compute_remote_s(1, far, near, resident) - far.latency_s
        rows.append({
            "latency_ms": 1000 * latency_s,
            "size_kb": size / 1000,
            "change_share": share,
            "t1_s": t1_s,
            "t2_s": t2_s,
            "ratio": t2_s / t1_s,
            "ratio_43": compute_relative_time(1, far, far, near, resident),
            "break_even": find_break_even(far, far, near, task),
            "switch_ms": 1000 * find_break_even_latency_s(far, far, near, resident),
        })  # fmt: skip
    return rows


class Observers(Experiment):
    """The observers experiment (``observers``)."""

    name = "observers"
    about = "When is it cheaper to observe pages from near them? (budget: share of the time of fetching all once a day)"
    worlds = ("regions",)
    usual_worlds = ("regions:large",)
    metrics = tuple(OWN_METRICS)
    own = OWN_METRICS
    budgets = (0.02, 0.1, 0.5)
    policies = ("figure-4", "observers-0", "observers-1", "observers-4")

    def run(self, cell: Cell) -> list[Measurements]:
        """Observe the pages of a web from some places at a budget, or compare the paper's scenarios."""
        if cell.policy == "figure-4":
            return compare_scenarios()
        pages = create_pages(cell.world.partition(":")[2], cell.seed)
        regions = choose_regions(pages, int(cell.policy.rpartition("-")[2]))
        links = [get_link(HOME, pages.region[host]) for host in pages.host.tolist()]
        direct_s = np.array([compute_direct_s(1, link, size) for link, size in zip(links, pages.size, strict=True)])
        budget_s = cell.budget * float(direct_s.sum())
        places = assign_hosts(estimate_hosts(pages, regions, 4.0), dict.fromkeys(regions, NO_LIMIT), NO_LIMIT)
        cost_s, looks = direct_s, allocate(pages.rate, direct_s, budget_s)
        for _ in range(3):  # how often a look finds a change depends on how often one looks
            share = -np.expm1(-pages.rate / np.maximum(looks, 1e-9))
            cost_s = find_costs(pages, places, share)
            looks = allocate(pages.rate, cost_s, budget_s)
        fresh = compute_freshness(pages.rate, looks)
        far: Bools = np.array([pages.region[host] != HOME for host in pages.host.tolist()])
        large = far & (pages.size > np.median(pages.size))
        row = {
            "freshness_all": float(fresh.mean()),
            "freshness_far": float(fresh[large].mean()),
            "looks_far": float(looks[large].mean()),
            "look_s": float((cost_s * looks).sum() / looks.sum()),
            "moved": sum(place != AT_HOME for place in places.values()) / len(places),
        }
        return [{**row, **({"greedy_loss": measure_greedy_loss(pages, regions, cell.seed)} if regions else {})}]


EXPERIMENT = Observers()
