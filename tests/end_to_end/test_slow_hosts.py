"""Hosts that hang, trickle, refuse or say 429 keep no one from the hosts that answer."""

from pathlib import Path

from tests.tree_runs import kill_all, open_run, patiently
from tests.tree_worlds import slow_town

from vedette.lab.judge.access_log import AccessEntry

HOSTS = 300
TIMEOUT_S = 240.0  # so long hosts may hang; good ones need a tenth of that, and more on a busy machine


def test_good_hosts_go_on_although_nine_in_ten_never_bring_a_page(tmp_path: Path) -> None:
    """Every good host is fetched page after page while more bad ones hang than a fetcher has slots."""
    good = [each.name for each in slow_town(HOSTS).manners if each.is_good]
    with open_run("slow_town", HOSTS, tmp_path, speed=1.0, delay_s=0.2, timeout_s=TIMEOUT_S, workers=1) as run:
        settings = run.folder / "vedette.toml"
        settings.write_text(settings.read_text() + "concurrency = 40\n")
        process = run.start()
        try:
            patiently(lambda: all(brought(run.entries(), name) >= 20 for name in good), TIMEOUT_S)
        finally:
            kill_all(process)
        run.web.stop()
        entries = run.entries()
        # Hanging hosts were requested as well, and none of them has responded.
        hanging = {entry.host for entry in entries if entry.host not in good and not entry.whole}
        assert len(hanging) > 40
        assert not any(brought(entries, name) for name in hanging)


def brought(entries: list[AccessEntry], host: str) -> int:
    """How many pages a host has answered with."""
    return sum(
        entry.host == host and entry.status == 200 and entry.whole and entry.target != "/robots.txt"
        for entry in entries
    )
