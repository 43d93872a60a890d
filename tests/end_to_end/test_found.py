"""Fetched pages are searchable within seconds, and deleted ones are not, even while the index is rebuilt or killed.

A real ``vedette up`` crawls a small web on loopback and serves it. Each test has its own pages, which the home page
links to as soon as they exist.
"""

import http.client
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from tests.search_runs import Leaf, SmallWeb, Up, page, prose, small_web, up
from tests.tree_runs import patiently

from vedette.adapters.index_store.generations import Generations

HOME = "http://town.test/"


class Town:
    """The small web, what crawls it, and its home page."""

    def __init__(self, web: SmallWeb, run: Up) -> None:
        self.web = web
        self.run = run
        self._links: dict[str, str] = {}

    def born(self, pages: dict[str, Leaf]) -> None:
        """Create these pages, by path, and link to them from the home page."""
        for path, leaf in pages.items():
            self.web.pages[HOME.rstrip("/") + path] = leaf
            self._links[path] = f"see {path}"
        self.web.pages[HOME] = page("Town", "Everything in this town is new.", self._links)

    def finds(self, query: str, *paths: str) -> None:
        """Wait until a query finds exactly these pages."""
        wanted = sorted(HOME.rstrip("/") + path for path in paths)
        patiently(lambda: sorted(self._found(query)) == wanted)

    def refetched(self, *paths: str) -> None:
        """Fetch pages again now."""
        self.run.vedette("fetch", *(HOME.rstrip("/") + path for path in paths))

    def _found(self, query: str) -> list[str]:
        """Return nothing while the server is being restarted."""
        try:
            return self.run.found(query)
        except (OSError, http.client.HTTPException):
            return []


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A town whose home page is polled every second."""
    folder = tmp_path_factory.mktemp("town")
    home = page("Town", "Nothing has happened yet.")
    with small_web({HOME: home}) as web, up(web, folder, HOME, speed=10) as run:
        run.vedette("sites", "set", HOME, "overrule=trap")  # copies and gone pages bring little, and are meant to
        yield Town(web, run)


def test_a_page_is_found_after_its_only_fetch(town: Town) -> None:
    """A search finds a new page after its first fetch."""
    for number in range(3):
        path = f"/born/{number}"
        town.born({path: page(f"Birth {number}", f"quickword{number}")})
        town.finds(f"quickword{number}", path)
        assert len(town.web.visited(HOME.rstrip("/") + path)) == 1


def test_deleted_moved_and_noindexed_pages_leave_the_results(town: Town) -> None:
    """After the next fetch, a deleted page leaves the results, and a moved one is found at its new URL."""
    names = ("gone", "moved", "marked", "told")
    town.born({f"/leaves/{name}": page(f"Leaf {name}", f"leafword {name}leaf") for name in names})
    town.finds("leafword", *(f"/leaves/{name}" for name in names))
    base = HOME.rstrip("/") + "/leaves/"
    town.web.pages[f"{base}new"] = town.web.pages[f"{base}moved"]
    town.web.pages[f"{base}gone"] = Leaf("no more", 404)
    town.web.pages[f"{base}moved"] = Leaf("", 301, (("Location", "/leaves/new"),))
    noindex = '<meta name="robots" content="noindex">'
    town.web.pages[f"{base}marked"] = page("Leaf marked", "leafword markedleaf", head=noindex)
    told = town.web.pages[f"{base}told"]
    town.web.pages[f"{base}told"] = told._replace(body=told.body + " ", headers=(("X-Robots-Tag", "noindex"),))
    town.refetched(*(f"/leaves/{name}" for name in names))
    town.finds("leafword", "/leaves/new")
    for name in ("gone", "marked", "told"):
        assert town.run.found(f"{name}leaf") == []


def test_a_changed_page_is_found_by_its_new_words_only(town: Town) -> None:
    """After the next fetch, only the new words find the page, with a snippet that contains them."""
    town.born({"/change": page("Diary", "yesterdayword")})
    town.finds("yesterdayword", "/change")
    town.web.pages[f"{HOME}change"] = page("Diary", "tomorrowword")
    town.refetched("/change")
    town.finds("tomorrowword", "/change")
    assert town.run.found("yesterdayword") == []
    (result,) = town.run.search("tomorrowword")["results"]
    assert "tomorrowword" in result["snippet"]


def test_near_copies_are_folded(town: Town) -> None:
    """Only one of several nearly identical pages is shown, with the number of the others, which can be listed."""
    text = f"twinword {prose('twins', 400)}"
    paths = [f"/twins/{name}" for name in ("one", "two", "three")]
    town.born({path: Leaf(_twin(text, path)) for path in paths})
    patiently(lambda: _similar(town.run.search("twinword")) == [2])
    (shown,) = town.run.search("twinword")["results"]
    listed = town.run.get(f"/similar/{shown['id']}").body.decode()
    others = [path for path in paths if not shown["url"].endswith(path)]
    assert all(f'href="{HOME.rstrip("/")}{path}"' in listed for path in others)
    patiently(lambda: _shown(town, "/search?q=twinword&similar=0") == len(paths))


def _twin(text: str, path: str) -> str:
    return f"<!doctype html><title>Twin</title><main><h1>Twin</h1><p>{text} and {path.rpartition('/')[2]}.</p></main>"


def _shown(town: Town, path: str) -> int:
    return town.run.get(path).body.decode().count('<li class="result">')


def _similar(answer: dict[str, Any]) -> list[int]:
    return [result["similar"] for result in answer["results"]]


def test_a_rebuilt_index_takes_over_unnoticed(town: Town) -> None:
    """While another process rebuilds the index and it is switched, every search finds the same as before."""
    paths = [f"/steady/{number}" for number in range(8)]
    town.born({path: page(f"Steady {path}", f"steadyword {path[-1]}st") for path in paths})
    town.finds("steadyword", *paths)
    generations = Generations(town.run.folder / "data")
    before = generations.current()
    with Watching(town.run, "steadyword", len(paths)) as watching:
        told = json.loads(town.run.vedette("reindex", "--json"))
        patiently(lambda: generations.current() != before)
        seen = watching.searches
        patiently(lambda: watching.searches > seen + 100)  # some of them in the new one
    assert watching.failures == []
    assert told["pages"] >= len(paths)
    town.born({"/after": page("Afterwards", "afterword")})
    town.finds("afterword", "/after")


class Watching:
    """Search all the time, and record everything that is wrong."""

    def __init__(self, run: Up, query: str, total: int) -> None:
        self._run = run
        self._asked = (query, total)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.searches = 0
        self.failures: list[object] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _watch(self) -> None:
        query, total = self._asked
        while not self._ending.is_set() and len(self.failures) < 10:
            try:
                answer = self._run.search(query)
                if (answer["total"], len(answer["results"])) != (total, total):
                    self.failures.append((answer["total"], len(answer["results"])))
            except (OSError, http.client.HTTPException, AssertionError) as error:
                self.failures.append(error)
            self.searches += 1


@pytest.mark.parametrize("name", ["indexer", "server"])
def test_killed_processes_are_restarted_and_nothing_is_lost(town: Town, name: str) -> None:
    """After kill -9 a new process replaces it; earlier and new pages are found."""
    town.born({f"/{name}/before": page(f"Before {name}", f"before{name}word")})
    town.finds(f"before{name}word", f"/{name}/before")
    killed = town.run.pid(name)
    os.kill(killed, signal.SIGKILL)
    town.born({f"/{name}/after": page(f"After {name}", f"after{name}word")})
    patiently(lambda: town.run.pid(name) != killed)
    town.finds(f"after{name}word", f"/{name}/after")
    town.finds(f"before{name}word", f"/{name}/before")


def test_an_indexer_killed_at_work_loses_nothing(town: Town) -> None:
    """Killed repeatedly while pages come in, it ends with an index that has each of them once."""
    paths = [f"/hail/{number}" for number in range(20)]
    town.born({path: page(f"Hail {path}", "hailword") for path in paths})
    for path in paths[::7]:
        patiently(lambda path=path: town.web.visited(HOME.rstrip("/") + path))  # type: ignore[misc]  # the default binds the path
        os.kill(town.run.pid("indexer"), signal.SIGKILL)
    patiently(lambda: town.run.search("hailword", n=50)["total"] == len(paths))
    found = [result["url"] for result in town.run.search("hailword", n=50)["results"]]
    assert sorted(found) == sorted(HOME.rstrip("/") + path for path in paths)


def test_no_error_was_reported_except_the_kills(town: Town) -> None:
    """No process of the tree exited or reported an error on its own."""
    said = town.run.messages().splitlines()
    assert [line for line in said if line and "SIGKILL" not in line] == []


def test_the_folder_is_found_from_the_command_line(town: Town) -> None:
    """``vedette search`` finds the same as the running server."""
    town.born({"/line": page("Line", "commandlineword")})
    town.finds("commandlineword", "/line")
    told = json.loads(town.run.vedette("search", "commandlineword", "--json"))
    assert [result["url"] for result in told["results"]] == [f"{HOME}line"]


def test_several_servers_answer_as_one(tmp_path: Path) -> None:
    """Connections are distributed, every server finds the same, and their counts add up."""
    home = page("Town", "Nothing but granite here.")
    with small_web({HOME: home}) as web, up(web, tmp_path, HOME, serve="processes = 2") as run:
        assert run.pid("server") != run.pid("s2")
        patiently(lambda: all(run.found("granite") for _ in range(10)))
        before = searches_counted(run)
        for _ in range(30):
            assert run.found("granite") == [HOME]
        assert searches_counted(run) == before + 30


def searches_counted(run: Up) -> int:
    """Return the number of searches over all servers."""
    lines = run.get("/metrics").body.decode().splitlines()
    return next(int(float(line.split()[-1])) for line in lines if line.startswith("vedette_search_seconds_count"))
