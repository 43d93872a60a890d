"""Learned copies through the whole tree: the coordinator learns, fetchers apply, and the next run remembers."""

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from random import Random

from tests.tree_runs import Run

from vedette.discover.urls.duplicate_evidence import CopyEvidence
from vedette.engine.coordinator.duplicates import LESSONS_KEY
from vedette.lab.worlds.synthetic.server import start_server
from vedette.lab.worlds.world import Reply, WorldHost, WorldRequest

SPEED = 600.0
ITEMS = 150
HTML = (("content-type", "text/html; charset=utf-8"),)


class TwinTown:
    """A shop and its mirror; links to an item have a parameter that does not affect the page."""

    name = "twin town"
    start_s = 1_700_000_000.0

    def __init__(self, hosts: int) -> None:
        self._names = ("www.twins.test", "mirror.twins.test")[:hosts]

    def hosts(self) -> tuple[WorldHost, ...]:
        """Both hosts of the shop."""
        return tuple(WorldHost(name, f"127.9.0.{number}") for number, name in enumerate(self._names, 1))

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """Return the same page for any host and parameter."""
        del now_s
        path = question.target.partition("?")[0]
        number = path.removeprefix("/item/") if path != "/" else "0"
        if not number.isdigit() or int(number) >= ITEMS:
            return Reply(404, HTML, b"<h1>Not found</h1>")
        return Reply(200, HTML, self._page(int(number)).encode())

    def _page(self, number: int) -> str:
        rng = Random(number)  # noqa: S311 - a text, no secret
        words = " ".join("".join(rng.choices("abdegiklmnoprstu", k=6)) for _ in range(200))
        targets = [f"/item/{(number * 3 + step) % ITEMS}?from={number}" for step in range(1, 5)]
        links = "".join(f'<a href="http://{name}{target}">on</a> ' for name in self._names for target in targets)
        return f"<!doctype html><title>Item {number}</title><main><p>{words}</p></main><nav>{links}</nav>"


def lessons_of(run: Run) -> CopyEvidence:
    """Load what a crawl has learned about copies."""
    with closing(sqlite3.connect(run.data / "state.db")) as db:
        ((text,),) = db.execute("SELECT value FROM life WHERE what = ?", (LESSONS_KEY,)).fetchall()
    return CopyEvidence.from_json(text)


def asked_items(run: Run) -> list[str]:
    """Return every request for an item."""
    return [entry.url for entry in run.entries() if "/item/" in entry.target and entry.status == 200]


def test_spellings_and_mirrors_are_learned_and_not_forgotten(tmp_path: Path) -> None:
    """Each item is fetched less than twice, although it has hundreds of spellings, and a second run fetches none."""
    with start_server(f"{__name__}:TwinTown", 2, speed=SPEED, log_path=tmp_path / "access.log") as web:
        (tmp_path / "hosts.txt").write_text("\n".join(web.connect_to_lines()))
        (tmp_path / "vedette.toml").write_text("[crawl]\nworkers = 2\n")
        run = Run(web, tmp_path, SPEED, 1.0)
        done = subprocess.run(run.command(), stdout=subprocess.PIPE, check=True)
        assert json.loads(done.stdout)["ending"] == "done"
        rules = lessons_of(run).build_rules().rules
        assert "parameter" in {rule.subject.kind for rule in rules}
        subprocess.run(run.command(), stdout=subprocess.PIPE, check=True)
        assert lessons_of(run).build_rules().rules == rules
    asked = asked_items(run)
    assert len({url.partition("?")[0].rpartition("/")[2] for url in asked}) == ITEMS
    assert len(asked) < 2 * ITEMS
