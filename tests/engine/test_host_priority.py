"""If connections are limited, ready hosts are served by their best waiting URL.

None is requested early, none starves.
"""

from collections import Counter
from itertools import pairwise

from tests.engine.memory_web import Asked, Drive, MemoryWeb, page, rules_for

from vedette.engine.coordinator.hosts import HostCalendar
from vedette.engine.coordinator.state import HostState
from vedette.engine.ports import FetchGain
from vedette.frontier.back_queues import FAIR_TURN

GOOD, POOR = 2, 6
HOSTS = tuple(f"h{number}.test" for number in range(GOOD + POOR))
TOOK_S, DELAY_S, CONNECTIONS, TAUGHT_S, SPAN_S = 1.0, 1.0, 2, 60.0, 240.0


def crawl() -> list[Asked]:
    """Return the requests after first fetches of two hosts gained much, and those of others gained nothing."""
    web = MemoryWeb()
    for number, host in enumerate(HOSTS):
        paths = [f"/{'good' if number < GOOD else 'poor'}/{page}" for page in range(400)]
        web.replies[f"https://{host}/"] = page(*paths, took_s=TOOK_S)
        web.replies |= {f"https://{host}{path}": page(title=path, took_s=TOOK_S) for path in paths}
        web.names[host] = (f"93.184.1.{number + 1}",)
    rules = rules_for(*(f"https://{host}/" for host in HOSTS), delay_s=DELAY_S, address_delay_s=0.0)
    drive = Drive(web, rules, workers=1, room=CONNECTIONS).begin().run(TAUGHT_S)
    rows = [(url, row) for url, row in drive.pages().items() if not url.endswith("test/")]
    firsts = [FetchGain(row.id, row.fetched_s, 9.0 if "/good/" in url else 0.0, None) for url, row in rows]
    drive.keeper.on_gains([FetchGain(row.id, row.fetched_s, 1.0, None) for _, row in rows], drive.now_s, firsts)
    began_s = drive.now_s
    drive.run(SPAN_S)
    # URLs assigned before the gains were known are requested first.
    return [asked for asked in drive.log if asked.sent_s >= began_s + SPAN_S / 4]


def test_connections_go_to_the_hosts_with_the_best_that_waits() -> None:
    """Good hosts are requested as often as their delay allows, poor ones with the rest, each of them repeatedly."""
    log = crawl()
    times = {host: [asked.sent_s for asked in log if asked.host == host] for host in HOSTS}
    rest_s = [after - before for each in times.values() for before, after in pairwise(each)]
    assert min(rest_s) >= TOOK_S + DELAY_S - 1e-6, "worth never shortens a pause"
    span_s = 3 * SPAN_S / 4
    counts = Counter(asked.host for asked in log)
    polite = span_s / (TOOK_S + DELAY_S)
    even = span_s * CONNECTIONS / TOOK_S / len(HOSTS)
    assert all(counts[host] >= 0.8 * polite for host in HOSTS[:GOOD])
    assert sum(counts[host] for host in HOSTS[GOOD:]) < 0.8 * even * POOR
    longest_s = max(after - before for host in HOSTS[GOOD:] for before, after in pairwise(times[host]))
    assert longest_s <= FAIR_TURN * len(HOSTS) * TOOK_S / CONNECTIONS + TOOK_S + DELAY_S


def test_the_best_host_comes_first_and_none_starves() -> None:
    """Of the due hosts, the best comes first, and every fourth time the one that waited longest."""
    calendar = HostCalendar()
    hosts = [HostState(f"{number}.test", number, worth=float(number)) for number in range(8)]
    for at_s, host in enumerate(hosts):
        calendar.put(host, float(at_s))
    assert calendar.take(-1.0) is None
    assert [calendar.take(6.5).id for _ in range(3)] == [6, 5, 4]  # type: ignore[union-attr]  # all of them are due
    assert calendar.next_s() == float("-inf")
    assert calendar.take(6.5) is hosts[0]
    hosts[3].queued_s = None
    calendar.put(hosts[3], 100.0)
    hosts[1].requested[7] = None
    calendar.put(hosts[1], 50.0)  # it is due already: this only says that there is something better now
    assert [calendar.take(6.5), calendar.take(6.5), calendar.take(6.5)] == [hosts[1], hosts[2], None]
    assert calendar.next_s() == 7.0
    assert [calendar.take(100.0), calendar.take(100.0), calendar.take(100.0)] == [hosts[7], hosts[3], None]
