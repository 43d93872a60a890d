"""A git history becomes the history of a web."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.git_repositories import Repository
from tests.lab.histories import same

from vedette.errors import UsageError
from vedette.lab.worlds.git import blobs, import_git, read_git
from vedette.lab.worlds.git.blobs import read_markdown, read_rst
from vedette.lab.worlds.git.walk import repair_commit_times
from vedette.lab.worlds.history import FEED, PAGE, SITEMAP, History, HistoryFetcher
from vedette.lab.worlds.history_file import load_history

DAY = 86_400


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Return one repository for all tests; every test has its own branch."""
    return Repository(tmp_path_factory.mktemp("git") / "site.git")


def paths_of(history: History) -> list[str]:
    """Return the pages without their host, by number."""
    return ["/" + url.split("/", 3)[3] for url in history.urls]


def links(history: History, page: str, version: int = 0) -> list[str]:
    """Return the links of a version of a page, by path."""
    paths = paths_of(history)
    first = int(history.first_version[paths.index(page)])
    return [paths[number] for number in history.links_of(first + version)]


def html(*hrefs: str, words: str = "Some words.") -> bytes:
    """Return a page with links."""
    return (f"<p>{words}</p>" + "".join(f"<a href='{href}'>x</a>" for href in hrefs)).encode()


def test_births_versions_and_deaths(repository: Repository) -> None:
    """A page is born with its file, has a version for each of its contents, and dies with its file."""
    world = repository.branch(
        "lives",
        (DAY, {b"index.html": html("a.html")}),
        (2 * DAY, {b"index.html": html("a.html"), b"a.html": html()}),
        (3 * DAY, {b"index.html": html("a.html", words="Others."), b"a.html": html()}),
        (4 * DAY, {b"index.html": html("a.html", words="Others.")}),
    )
    history = read_git(world)
    assert paths_of(history) == ["/", "/a.html"]
    assert history.born_s.tolist() == [DAY, 2 * DAY]
    assert history.died_s.tolist() == [np.inf, 4 * DAY]
    assert history.version_page.tolist() == [0, 0, 1]
    assert history.version_at_s.tolist() == [DAY, 3 * DAY, 2 * DAY]
    assert [history.texts.text(version) for version in range(3)] == ["Some words.", "Others.", "Some words."]
    assert (history.begin_s, history.end_s, history.missing) == (DAY, 4 * DAY, 0)


def test_a_page_that_comes_back_is_a_new_page(repository: Repository) -> None:
    """Two lives have two numbers and one URL; a link that outlasts the first life leads to both."""
    home = {b"index.html": html("a.html")}
    both = {**home, b"a.html": html()}
    history = read_git(repository.branch("again", (1, both), (2, home), (3, both)))
    assert paths_of(history) == ["/", "/a.html", "/a.html"]
    assert history.links_of(0).tolist() == [1, 2]
    asked = HistoryFetcher(history)
    assert [asked.fetch(np.array([0]), at_s).links[0].tolist() for at_s in (1.0, 2.0, 3.0)] == [[1], [1], [1, 2]]


def test_moves_are_seen_within_one_commit(repository: Repository) -> None:
    """A file that disappears while the same or nearly the same one appears elsewhere has been moved."""
    long = b"".join(b"<p>Line %d of a page that says a lot.</p>\n" % line for line in range(40))
    before = {b"a.html": html(), b"b.html": long, b"c.html": html(words="Alone."), b"index.html": html(words="Home")}
    after = {b"n/a.html": html(), b"n/e.html": long + b"<p>More.</p>", b"index.html": html(words="Home")}
    history = read_git(repository.branch("moves", (1, before), (2, after)))
    paths = paths_of(history)
    moved = {paths[old]: paths[new] for old, new in enumerate(history.moved_to) if new >= 0}
    assert moved == {"/a.html": "/n/a.html", "/b.html": "/n/e.html"}


def test_waves_are_changes_of_many_pages(repository: Repository) -> None:
    """Versions of a commit that touches more pages than the limit are marked; the limit can be set."""
    old = {b"%d.html" % number: html() for number in range(4)}
    new = {path: html(words="New.") for path in old}
    world = repository.branch("waves", (1, {b"0.html": html()}), (2, old), (3, new))
    assert read_git(world, many=3).wave.tolist() == [False, True, False, True, False, True, False, True]
    assert not read_git(world).wave.any()


def test_only_first_parents_are_followed(repository: Repository) -> None:
    """The states of a merged branch were never shown; its changes arrive with the merge."""
    first = repository.commit({b"a.html": html()}, 1)
    side = repository.commit({b"a.html": html(words="Never shown.")}, 2, first)
    side = repository.commit({b"a.html": html(words="Merged.")}, 3, side)
    merge = repository.commit({b"a.html": html(words="Merged.")}, 4, first, side)
    history = read_git(repository.name("merges", merge))
    assert history.version_at_s.tolist() == [1, 4]


def test_wrong_clocks_move_only_their_own_commit(repository: Repository) -> None:
    """A commit in the far future or past gets the time of the one before; commits within one second are one change."""
    states = [{b"a.html": html(words=f"Version {number}.")} for number in range(6)]
    history = read_git(repository.branch("clocks", *zip((10, 20, 2037, 30, 1, 40), states, strict=True)))
    assert history.version_at_s.tolist() == [10, 20, 30, 40]
    assert [history.texts.text(version)[8] for version in range(4)] == ["0", "2", "4", "5"]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_believed_times_never_go_back(times: list[int]) -> None:
    """Times are in order, each is the time of a commit, and times already in order are kept."""
    found = repair_commit_times(times)
    assert found == sorted(found)
    assert set(found) <= set(times)
    assert repair_commit_times(sorted(times)) == sorted(times)


def test_what_is_missing_is_counted_and_skipped(tmp_path: Path) -> None:
    """A version without its blob is not a version; a page that never has one is not a page; all else stays."""
    repository = Repository(tmp_path / "holes.git")
    gone, never = html(words="Gone."), html(words="Never there.")
    world = repository.branch(
        "main",
        (1, {b"a.html": html(), b"b.html": never}),
        (2, {b"a.html": gone, b"b.html": never}),
        (3, {b"a.html": html(words="Last."), b"b.html": never}),
    )
    repository.lose(gone)
    repository.lose(never)
    history = read_git(world)
    assert paths_of(history) == ["/a.html"]
    assert history.version_at_s.tolist() == [1, 3]
    assert history.missing == 2


def test_a_missing_tree_is_stepped_over(tmp_path: Path) -> None:
    """A commit whose tree is missing changes nothing; the next one is compared with the one before it."""
    repository = Repository(tmp_path / "trees.git")
    states = [{b"a.html": html(words=word)} for word in ("One.", "Two.", "Three.")]
    world = repository.branch("main", *enumerate(states, 1))
    name = str(repository.tree(states[1]))
    (repository.path / "objects" / name[:2] / name[2:]).unlink()
    history = read_git(world)
    assert (history.version_at_s.tolist(), history.missing) == ([1, 3], 1)


def test_shallow_empty_and_unknown_are_told(tmp_path: Path, repository: Repository) -> None:
    """The user has to fix what cannot be read, and the message says what is there."""
    world = repository.branch("errors", (1, {b"docs/a.html": html(), b"blog/b.html": html()}))
    with pytest.raises(UsageError, match="errors"):
        read_git(world.replace("#errors", "#error"))
    with pytest.raises(UsageError, match="docs"):
        read_git(f"{world}:doc")
    with pytest.raises(UsageError, match="no pages"):
        read_git(repository.branch("pictures", (1, {b"a.png": b"\x89PNG"})))
    with pytest.raises(UsageError, match="no such repository"):
        read_git(f"git:{tmp_path}/nowhere")
    with pytest.raises(UsageError, match="cannot read"):
        read_git(f"git:{tmp_path}")
    empty = Repository(tmp_path / "empty.git")
    with pytest.raises(UsageError, match="empty"):
        read_git(f"git:{empty.path}")
    tip = empty.commit({b"a.html": html()}, 1)
    (empty.path / "shallow").write_text(f"{tip}\n")
    with pytest.raises(UsageError, match="unshallow"):
        read_git(empty.name("main", tip))


def test_hostile_names_and_bytes(repository: Repository) -> None:
    """Names that no URL can have are not pages, others are escaped; binary content is read as is."""
    files = {
        b"../up.html": html(),
        b"a/../b.html": html(),
        b".hidden/c.html": html(),
        b"x" * 3000 + b".html": html(),
        b"caf\xe9 \n?.html": html("caf%E9%20%0A%3F.html", "junk.html"),
        b"junk.html": bytes(range(256)) * 20,
    }
    history = read_git(repository.branch("hostile", (1, files)))
    assert paths_of(history) == ["/caf%E9%20%0A%3F.html", "/junk.html"]
    assert links(history, "/caf%E9%20%0A%3F.html") == ["/junk.html"]


def test_symbolic_links_and_files_that_become_folders(repository: Repository) -> None:
    """A name that is no longer a file is no longer a page; symbolic links are not pages."""
    target = repository.git.create_blob(b"a.html")
    builder = repository.git.TreeBuilder()
    builder.insert("a.html", repository.git.create_blob(html()), pygit2.enums.FileMode.BLOB)
    builder.insert("b.html", target, pygit2.enums.FileMode.LINK)
    who = pygit2.Signature("A", "a@example.org", 1, 0)
    first = repository.git.create_commit(None, who, who, "x", builder.write(), [])
    second = repository.commit({b"a.html/c.html": html()}, 2, first)
    history = read_git(repository.name("links", second))
    assert paths_of(history) == ["/a.html", "/a.html/c.html"]
    assert history.died_s.tolist() == [2, np.inf]


def test_addresses_mean_what_a_server_would_show(repository: Repository) -> None:
    """An index file is its folder, endings may be left out, and the world's own host is found."""
    own = "https://www.example.org/docs"
    home = html("docs", "docs/index.html#x", "docs/a?b", "mailto:x", "https://other.org/docs/a.html", "#top")
    files = {
        b"index.html": home,
        b"docs/index.html": html("../", "a.html", "./b", "/docs/../docs/b.html", f"{own}/c.html"),
        b"docs/a.html": html(f"{own}/b.html", f"{own}/a.html"),
        b"docs/b.html": html("http://example.org/docs/"),
        b"docs/c.html": html(f"{own}/gone.html"),
    }
    history = read_git(repository.branch("addresses", (1, files)))
    assert history.urls[1] == "https://www.example.org/docs/"
    assert links(history, "/") == ["/docs/", "/docs/a.html"]
    assert links(history, "/docs/") == ["/", "/docs/a.html", "/docs/b.html", "/docs/c.html"]
    assert links(history, "/docs/a.html") == ["/docs/b.html"]
    assert links(history, "/docs/b.html") == ["/docs/"]
    assert history.site_names == ["/", "/docs/"]


def test_folders_called_like_hosts_are_hosts(repository: Repository) -> None:
    """Every such folder is a site with its own root, and full URLs lead from one to the other."""
    files = {
        b"www.one.org/index.html": html("/a.html", "http://two.org/"),
        b"www.one.org/a.html": html("http://www.one.org/"),
        b"two.org/index.html": html("http://www.one.org/a.html"),
    }
    history = read_git(repository.branch("hosts", (1, files)))
    assert history.urls == ["https://two.org/", "https://www.one.org/", "https://www.one.org/a.html"]
    assert [history.links_of(version).tolist() for version in range(3)] == [[2], [2, 0], [1]]
    assert history.site_names == ["two.org", "www.one.org"]


def test_feeds_and_sitemaps_are_read_and_other_xml_is_not(repository: Repository) -> None:
    """Feeds and sitemaps lead to the pages that they announce."""
    rss = b"<rss version='2.0'><channel><item><title>News</title><link>/a.html</link></item></channel></rss>"
    sitemap = b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>/b.html</loc></url></urlset>"
    files = {b"a.html": html(), b"b.html": html(), b"f.rss": rss, b"pom.xml": b"<project/>", b"sitemap.xml": sitemap}
    history = read_git(repository.branch("feeds", (1, files)))
    assert dict(zip(paths_of(history), history.kind.tolist(), strict=True)) == {
        "/a.html": PAGE,
        "/b.html": PAGE,
        "/f.rss": FEED,
        "/sitemap.xml": SITEMAP,
    }
    assert (links(history, "/f.rss"), links(history, "/sitemap.xml")) == (["/a.html"], ["/b.html"])
    assert history.texts.text(2) == "News"


def test_sources_are_pages_where_they_outnumber_html(repository: Repository) -> None:
    """Markdown and reStructuredText are parsed, and links to sources and to their builds are the same."""
    files = {
        b"docs/index.md": b"# Home\n\n[a](a.md), [b](b.html) and [c](/docs/c/).\n\n[d]: d 'Title'\n",
        b"docs/a.md": b"---\ntitle: no\n---\nText of *a*.\n\n```\n[code](b.rst)\n```\n",
        b"docs/b.rst": b"B\n=\n\nSee :doc:`a` and `c <c.rst>`_.\n\n.. toctree::\n   :maxdepth: 1\n\n   d\n",
        b"docs/c.rst": b"C\n=\n\n.. _x: a.html\n",
        b"docs/d.txt": b"Plain.\n",
        b"docs/requirements.txt": b"sphinx\n",
        b"layouts/frame.html": html(),
    }
    history = read_git(repository.branch("sources", (1, files)))
    assert paths_of(history) == ["/docs/", "/docs/a.md", "/docs/b.rst", "/docs/c.rst", "/docs/d.txt"]
    assert links(history, "/docs/") == ["/docs/a.md", "/docs/b.rst", "/docs/c.rst", "/docs/d.txt"]
    assert links(history, "/docs/a.md") == []
    assert links(history, "/docs/b.rst") == ["/docs/a.md", "/docs/c.rst", "/docs/d.txt"]
    assert links(history, "/docs/c.rst") == ["/docs/a.md"]
    assert [history.texts.text(number) for number in (1, 4)] == ["Text of a.\ncode", "Plain."]


HOSTILE = (
    "[",
    "[](",
    "[a](" + "b" * 50,
    "```\n",
    "`<",
    ":doc:`",
    "    .. toctree::\n",
    "\n ",
    "<a",
    "{{",
    "| *_",
    "---\n",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_markup_takes_long(piece: str) -> None:
    """A hundred thousand unclosed characters are read like anything else."""
    text = piece * (100_000 // len(piece))
    assert all(len(read(text).links) <= len(text) for read in (read_markdown, read_rst))


@given(st.text(alphabet="[]()<>`:._-*#\n a/\t|{%}", max_size=200))
def test_markup_is_never_an_error(text: str) -> None:
    """Any text can be parsed, and everything found was in it."""
    for found in (read_markdown(text), read_rst(text)):
        assert all(link in text for link in found.links)


def test_other_processes_read_the_same(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blobs distributed over processes are returned in order, like those read by one process."""
    states = [{b"a.html": html("b.html", words=f"Number {number}."), b"b.html": html("a.html")} for number in range(9)]
    world = repository.branch("shared", *enumerate(states, 1))
    alone = read_git(world)
    monkeypatch.setattr(blobs, "PARALLEL_FROM", 0)
    monkeypatch.setattr(blobs, "BATCH_SIZE", 3)
    same(read_git(world), alone)


def test_a_folder_is_a_world_of_its_own(repository: Repository) -> None:
    """Pages outside of the folder do not exist, and the folder is the root."""
    world = repository.branch(
        "folder", (1, {b"x.html": html()}), (2, {b"site/out/a.html": html("/"), b"x.html": html()})
    )
    history = read_git(f"{world}:site/out/")
    assert (paths_of(history), history.begin_s) == (["/a.html"], 2)


def test_an_import_is_what_was_read(repository: Repository, tmp_path: Path) -> None:
    """The file holds the same history, and the summary counts it."""
    states = [{b"a.html": html("b.html", words=f"Number {number}."), b"b.html": html("a.html")} for number in range(5)]
    world = repository.branch("import", *enumerate(states, 1))
    report: list[tuple[int, int]] = []
    summary = import_git(world, tmp_path / "x.history", lambda done, of: report.append((done, of)))
    assert (summary.pages, summary.versions, summary.contents, summary.links) == (2, 6, 6, 6)
    assert summary.size_bytes == (tmp_path / "x.history").stat().st_size
    assert report[-1] == (6, 6)
    same(load_history(tmp_path / "x.history"), read_git(world))


# Any sequence of edits, against a model that looks at whole states one after the other.

FILES = (b"index.html", b"a.html", b"b/index.html", b"b/index.htm", b"b/c.html")
PAGES = ("/", "/a.html", "/b/", "/b/c.html")
OF_FILE = dict(zip(FILES, ("/", "/a.html", "/b/", "/b/", "/b/c.html"), strict=True))
CONTENTS = {
    html(*targets, words=word): targets for word in "AB" for targets in ((), ("/a.html", "/b/"), ("/b/c.html", "/"))
}
State = Mapping[bytes, bytes]


@dataclass
class ModelLife:
    """One life of a page: what it showed when, and when it ended."""

    page: str
    shown: list[tuple[int, bytes]]
    died: float = float("inf")


def model(states: list[State]) -> list[ModelLife]:
    """Return the lives that follow from complete states; a page shows its first file."""
    lives: list[ModelLife] = []
    for at, state in enumerate(states, 1):
        for page in PAGES:
            now = next((state[file] for file in FILES if OF_FILE[file] == page and file in state), None)
            life = next((one for one in lives if one.page == page and one.died == float("inf")), None)
            if life and now is None:
                life.died = at
            elif life and now is not None and life.shown[-1][1] != now:
                life.shown.append((at, now))
            elif not life and now is not None:
                lives.append(ModelLife(page, [(at, now)]))
    return lives


def model_links(lives: list[ModelLife], life: ModelLife, row: int) -> Iterator[int]:
    """Return the lives that a version leads to."""
    at, content = life.shown[row]
    end = life.shown[row + 1][0] if row + 1 < len(life.shown) else life.died
    for target in CONTENTS[content]:
        mine = [number for number, one in enumerate(lives) if one.page == target and target != life.page]
        before = [number for number in mine if lives[number].shown[0][0] <= at][-1:]
        during = [number for number in mine if at < lives[number].shown[0][0] < end]
        yield from before + during or mine[:1]


states_of_a_site = st.lists(
    st.dictionaries(st.sampled_from(FILES), st.sampled_from(list(CONTENTS))), min_size=1, max_size=7
)


@given(states_of_a_site.filter(any))
def test_any_edits_become_the_history_that_a_model_says(repository: Repository, states: list[State]) -> None:
    """Lives, versions and links are those of a model that is independent of git."""
    lives = model(states)
    history = read_git(repository.branch("any", *enumerate(states, 1)))
    assert paths_of(history) == [life.page for life in lives]
    assert history.born_s.tolist() == [life.shown[0][0] for life in lives]
    assert history.died_s.tolist() == [life.died for life in lives]
    shown = [(number, *version) for number, life in enumerate(lives) for version in life.shown]
    assert list(zip(history.version_page, history.version_at_s, strict=True)) == [row[:2] for row in shown]
    assert [hex(number) for number in history.digest.tolist()] == [hex(first_bytes(content)) for *_, content in shown]
    found = [history.links_of(version).tolist() for version in range(len(shown))]
    assert found == [list(model_links(lives, life, row)) for life in lives for row in range(len(life.shown))]


def first_bytes(content: bytes) -> int:
    """Return the first eight bytes of git's name for a content."""
    return int(str(pygit2.hash(content))[:16], 16)
