"""Console and command line of a cluster: they show and change all shards, and report a silent shard."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import pytest
from tests.cluster_runs import Cluster, open_cluster
from tests.postgres_server import MISSING, find_programs, run_postgres
from tests.tree_runs import PATIENCE_S, patiently
from tests.tree_worlds import ring_town

from vedette.adapters.registry.command_log import list_latest
from vedette.adapters.registry.database import DSN_ENV, connect
from vedette.adapters.registry.directory import list_machines
from vedette.errors import UsageError
from vedette.runtime.cluster.client import run_in_cluster
from vedette.web.commands.commands import Undo

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)

HOSTS, SHARDS = 8, 2
PAGES = (
    *(
        "",
        "sites",
        "queue",
        "discover",
        "discovery",
        "watches",
        "sponsored",
        "refresh",
        "budget",
        "searches",
        "ranking",
    ),
    *("results", "cluster", "storage", "actions", "pages"),
)


class Gateway:
    """A browser that is signed in to a node's console."""

    def __init__(self, address: str, token: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port, self._cookie, self.csrf = int(port), "", ""
        self.request("POST", "/console/signin", {"token": token, "next": ""})

    def request(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
        """Return status and text."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE_S)
        headers = {"origin": f"http://{self._host}:{self._port}", "cookie": self._cookie}
        if form is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, urlencode(form) if form is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        if cookie := answer.headers["set-cookie"]:
            self._cookie = cookie.partition(";")[0]
        connection.close()
        return answer.status, text

    def show(self, page: str) -> str:
        """Return the text of a page of the console."""
        status, text = self.request("GET", f"/console/{page}")
        assert status == 200, (page, status, text)
        return text

    def post(self, page: str, form: dict[str, str]) -> int:
        """Submit a form of the console; return the status."""
        (csrf,) = set(re.findall(r'name="csrf" value="([^"]+)"', self.show("results")))
        return self.request("POST", f"/console/{page}", {"csrf": csrf, **form})[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A node that runs both shards and a gateway, after its first crawl."""
    folder = tmp_path_factory.mktemp("cluster")
    with run_postgres() as postgres, open_cluster(postgres, folder, HOSTS, SHARDS, 10.0) as run:
        config = folder / "vedette.toml"
        config.write_text(config.read_text() + "\n[serve]\nsponsored = true\n")
        run.join("a", "--port", "0")
        wanted = set(ring_town(HOSTS).urls())
        patiently(lambda: wanted <= run.pages().keys())
        patiently(lambda: run.searchable() == len(wanted))
        yield run


@pytest.fixture(scope="module")
def gateway(cluster: Cluster) -> Gateway:
    """The console of its gateway."""
    folder = cluster.run.data / "a" / "gateway-a"
    command = [sys.executable, "-m", "vedette", "token", "new", "--data", str(folder), "--json"]
    token = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_S).stdout)["token"]
    with connect(cluster.dsn) as connection:
        (machine,) = list_machines(connection)
    return Gateway(machine.gateway, token)


def vedette(cluster: Cluster, *words: str, code: int = 0) -> Any:
    """Run a command on the cluster; return its JSON."""
    command = [sys.executable, "-m", "vedette", *words, "--cluster", "--json"]
    done = subprocess.run(
        command, capture_output=True, check=False, timeout=PATIENCE_S, env={**os.environ, DSN_ENV: cluster.dsn}
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_every_page_shows_all_shards(cluster: Cluster, gateway: Gateway) -> None:
    """Sites, URLs and explanations come from both shards, and no page is incomplete."""
    for page in PAGES:
        patiently(lambda page=page: "did not respond" not in gateway.show(page))  # type: ignore[misc]  # the default binds it
    assert [host for host in cluster.run.web.hosts if host not in gateway.show("sites")] == []
    urls, place = set[str](), 0
    while True:
        text = gateway.show(f"pages?what=kept&after={place}")
        urls |= set(re.findall(r"/console/explain\?url=([^\"&]+)", text))
        further = max(map(int, re.findall(r"after=(\d+)", text)), default=0)
        if further <= place:
            break
        place = further
    assert set(ring_town(HOSTS).urls()) <= {unquote(url) for url in urls}
    for host in cluster.run.web.hosts:
        assert "status 200" in gateway.show(f"explain?{urlencode({'url': f'http://{host}/'})}")


def test_rules_and_watches_apply_to_all_shards(cluster: Cluster, gateway: Gateway) -> None:
    """What the console adds exists on every shard, and console and command line list it once."""
    assert gateway.post("watches/add", {"name": "all", "place": "", "query": "town"}) == 303
    assert gateway.show("watches").count('id="watch-all"') <= 1
    assert "all" in gateway.show("watches")
    done = vedette(cluster, "rules", "block", "blocked.test")
    assert (done["done"], done["running"]) == (
        "rule added: pages of blocked.test are neither shown nor fetched",
        True,
    )
    assert "blocked.test" in gateway.show("results")
    assert [rule["value"] for rule in vedette(cluster, "rules", "list")["rules"]] == ["blocked.test"]


def test_a_command_is_undone_in_all_shards(cluster: Cluster, gateway: Gateway) -> None:
    """Once; undoing that executes it again. The console offers what can be undone."""

    def list_rules() -> list[str]:
        return [rule["value"] for rule in vedette(cluster, "rules", "list")["rules"] if "undone" in rule["value"]]

    vedette(cluster, "rules", "block", "undone.test")
    with connect(cluster.dsn) as connection:
        number = list_latest(connection, 1, None)[0][0].number
    assert f'value="{number}"' in gateway.show("actions")
    undone = run_in_cluster(cluster.dsn, Undo(number), "a test")
    assert undone.words.startswith("undone: ")
    assert list_rules() == []
    assert f'value="{number}"' not in gateway.show("actions")
    for again in (number, 12345):
        with pytest.raises(UsageError):
            run_in_cluster(cluster.dsn, Undo(again), "a test")
    run_in_cluster(cluster.dsn, Undo(undone.action), "a test")
    assert list_rules() == ["undone.test"]


def test_the_command_line_manages_sites_of_the_cluster(cluster: Cluster) -> None:
    """This includes sites, settings, fetches and explanations, each with its outcome."""
    host = next(iter(cluster.run.web.hosts))
    start = f"http://{host}/"
    assert len(vedette(cluster, "sites", "list")["sites"]) == HOSTS
    assert "delay" in vedette(cluster, "sites", "set", start, "delay=1s")["done"]
    assert [site["delay_s"] for site in vedette(cluster, "sites", "list")["sites"] if site["start"] == start] == [1.0]
    assert vedette(cluster, "set", "crawl.budget", "50/s")["done"] == "set crawl.budget to 50/s"
    assert vedette(cluster, "set")["settings"]["crawl.budget"] == "50/s"
    (fetched,) = vedette(cluster, "fetch", start)["urls"]
    assert (fetched["standing"], fetched["status"], fetched["had"]) == ("fetched", 200, True)
    assert vedette(cluster, "explain", start)["page"]["status"] == 200
    assert "no URL has failed" in vedette(cluster, "retry", start)["done"]


def test_a_silent_shard_is_named(cluster: Cluster, gateway: Gateway) -> None:
    """Its numbers are missing, which the page says; the others are shown."""
    (node,) = cluster.nodes.values()
    children = Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text().split()
    search = next(int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text() == "vedette search\n")
    os.kill(search, signal.SIGSTOP)
    try:
        text = gateway.show("storage")
        assert "did not respond, so the numbers here may be incomplete" in text
        assert len(re.findall(r"Shard \d did not respond", text)) == 1
    finally:
        os.kill(search, signal.SIGCONT)
    patiently(lambda: "did not respond" not in gateway.show("storage"))
