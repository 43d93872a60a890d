"""Hosts that hang, trickle, refuse or return 429 do not delay other hosts."""

from collections import Counter
from pathlib import Path

from tests.tree_runs import PROVE, kill_all, open_run, patiently
from tests.tree_worlds import slow_town

from vedette.lab.judge.access_log import AccessEntry

# Hosts, requests at once, and pages that each good host has to send.
HOSTS, SLOTS, PAGES = (300, 40, 20) if PROVE else (160, 20, 10)
TIMEOUT_S = 1_200.0  # so long hosts may hang; good ones need seconds, and minutes on a busy machine


def test_good_hosts_are_fetched_although_nine_in_ten_hang(tmp_path: Path) -> None:
    """All good hosts are still fetched while more bad ones hang than a fetcher has slots."""
    good = [each.name for each in slow_town(HOSTS).manners if each.is_good]
    with open_run("slow_town", HOSTS, tmp_path, speed=1.0, delay_s=0.2, timeout_s=TIMEOUT_S, workers=1) as run:
        settings = run.folder / "vedette.toml"
        settings.write_text(settings.read_text() + f"concurrency = {SLOTS}\n")
        process = run.start()
        try:
            patiently(lambda: min(map(count_pages(run.entries()).__getitem__, good)) >= PAGES, TIMEOUT_S)
        finally:
            kill_all(process)
        run.web.stop()
        entries = run.entries()
        # Hanging hosts were requested as well, and none of them has responded.
        hanging = {entry.host for entry in entries if entry.host not in good and not entry.whole}
        assert len(hanging) > SLOTS
        assert not hanging & count_pages(entries).keys()


def count_pages(entries: list[AccessEntry]) -> Counter[str]:
    """Count the pages that each host has sent."""
    return Counter(
        entry.host for entry in entries if entry.status == 200 and entry.whole and entry.target != "/robots.txt"
    )
