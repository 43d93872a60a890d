"""The synthetic web as arrays agrees with the served one on every page."""

import numpy as np
import pytest
from tests.lab.synthetic_pages import change_times

from vedette.errors import UsageError
from vedette.lab.worlds.history import History
from vedette.lab.worlds.synthetic import open_synthetic_world
from vedette.lab.worlds.synthetic.change_times import START_S
from vedette.lab.worlds.synthetic.history import ARRAY_SIZES, build_synthetic_history
from vedette.lab.worlds.synthetic.page_arrays import expand_ranges
from vedette.lab.worlds.world import WorldRequest
from vedette.timeutil import DAY_S

END_S = START_S + 100 * DAY_S


@pytest.fixture(scope="module")
def tiny() -> History:
    """Return the smallest world."""
    return build_synthetic_history("tiny", 1)


def test_changes_are_those_of_the_served_web(tiny: History) -> None:
    """Every page's changes are exactly the truth's, while it is at this URL."""
    served = open_synthetic_world("tiny", 1, calm=True)
    seen = 0
    for page, url in enumerate(tiny.urls):
        truth = served.truth(url)
        if truth is None:
            continue
        moved_here = url == truth.moved_url
        assert tiny.born_s[page] == (truth.moved_s if moved_here else truth.born_s)
        leaves_s = truth.moved_s if not moved_here and truth.moved_s < min(truth.died_s, END_S) else truth.died_s
        assert tiny.died_s[page] == leaves_s
        site = served.sites[url.split("/")[2]]
        begin_s, end_s = max(tiny.born_s[page], START_S), min(leaves_s, END_S)
        expected = [at_s for at_s in change_times(site, truth.number, end_s) if at_s > begin_s]
        versions = tiny.version_at_s[tiny.version_page == page]
        assert versions.tolist() == [tiny.born_s[page], *expected]
        seen += len(expected)
    assert seen > 1000


def test_live_pages_are_those_of_the_served_web(tiny: History) -> None:
    """The live pages are always the URLs that respond."""
    served = open_synthetic_world("tiny", 1, calm=True)
    for now_s in (START_S + 3600.0, START_S + 40.3 * DAY_S, END_S - 1.0):
        report = {tiny.urls[page] for page in tiny.live_pages_at(now_s)}
        expected = {url for host in served.sites for url in served.live_pages(host, now_s)}
        articles = {url for url in report if served.classify_url(url) == "page"}
        assert articles == expected
        for url in sorted(report - articles):
            host, _, path = url.removeprefix("http://").partition("/")
            assert served.reply(WorldRequest(host, "/" + path), now_s).status == 200


def test_a_move_brings_the_text_along() -> None:
    """When a page moves, its new URL is born, with the last content of the old one."""
    history = build_synthetic_history("small", 1)
    moved = np.flatnonzero(history.moved_to >= 0)
    assert len(moved)
    for old in moved.tolist():
        new = int(history.moved_to[old])
        assert history.born_s[new] == history.died_s[old]
        assert history.urls[new] != history.urls[old]
        last = np.flatnonzero(history.version_page == old)[-1]
        assert history.digest[history.first_version[new]] == history.digest[last]


def test_listings_show_the_newest(tiny: History) -> None:
    """Home pages link to the newest live pages, as served, and to none that does not exist yet."""
    served = open_synthetic_world("tiny", 1, calm=True)
    homes = [page for page, url in enumerate(tiny.urls) if url.endswith("/") and url.count("/") == 3]
    assert len(homes) == len(served.sites)
    for now_s in (START_S, START_S + 17.0 * DAY_S, END_S - 1.0):
        for home, version in zip(homes, tiny.version_at(np.array(homes), now_s).tolist(), strict=True):
            links = tiny.links_of(version)
            assert (tiny.born_s[links] <= now_s).all()
            host = tiny.site_names[tiny.site[home]]
            text = served.reply(WorldRequest(host, "/"), now_s).body.decode()
            alive = links[tiny.died_s[links] > now_s]
            paths = [tiny.urls[page].removeprefix(f"http://{host}") for page in alive]
            assert [path for path in paths if f'href="{path}' not in text] == []
            assert len(alive) > len(links) // 2 > 0


@pytest.mark.parametrize("name", ["tiny", "small+waves+bursts"])
def test_a_history_is_in_order(name: str) -> None:
    """Pages are sorted by birth, versions by page and time, starting at birth, within a life; links are valid."""
    history = build_synthetic_history(name, 1)
    assert (np.diff(history.born_s) >= 0).all()
    assert (np.diff(history.version_page) >= 0).all()
    same = np.diff(history.version_page) == 0
    assert (np.diff(history.version_at_s)[same] >= 0).all()
    assert (history.version_at_s[history.first_version] == history.born_s).all()
    assert (history.version_at_s <= history.died_s[history.version_page]).all()
    assert history.link_start[-1] == len(history.link_to)
    assert len(history.link_start) == len(history.version_page) + 1
    assert len(history.urls) == history.pages == len({*history.urls})


def test_rates_agree_with_a_larger_web() -> None:
    """In a sample of the small web, arrays and truth have the same number of changes per page and day."""
    history, served = build_synthetic_history("small", 1), open_synthetic_world("small", 1, calm=True)
    report = expected = 0
    for page in range(0, history.pages, 40):
        truth = served.truth(history.urls[page])
        if truth is None:
            continue
        begin_s, end_s = max(history.born_s[page], START_S), min(history.died_s[page], END_S)
        site = served.sites[history.urls[page].split("/")[2]]
        expected += sum(at_s > begin_s for at_s in change_times(site, truth.number, end_s))
        report += int((history.version_page == page).sum()) - 1
    assert report == expected > 200


def test_waves_go_over_sections() -> None:
    """A wave changes many pages of one site at the same time; without the option, there are none."""
    plain, waved = build_synthetic_history("small", 1), build_synthetic_history("small+waves", 1)
    assert not plain.wave.any()
    at_s, counts = np.unique(waved.version_at_s[waved.wave], return_counts=True)
    assert counts.max() > 50
    sites = waved.site[waved.version_page[waved.version_at_s == at_s[counts.argmax()]]]
    assert len(np.unique(sites)) == 1


def test_bursts_add_changes_soon_after() -> None:
    """With bursts, there are about twice as many changes, and most of the added ones follow within an hour."""
    plain, burst = build_synthetic_history("small", 1), build_synthetic_history("small+bursts", 1)

    def gaps(history: History) -> list[float]:
        same = np.diff(history.version_page) == 0
        found: list[float] = np.diff(history.version_at_s)[same].tolist()
        return found

    before, after = gaps(plain), gaps(burst)
    added = len(after) - len(before)
    assert 0.5 < added / len(before) < 1.1
    soon = sum(gap < 3600.0 for gap in after) - sum(gap < 3600.0 for gap in before)
    assert soon > 0.8 * added


def test_a_seed_makes_a_world() -> None:
    """The same seed gives the same arrays, another seed others."""
    one, same, other = (
        build_synthetic_history("tiny", 1),
        build_synthetic_history("made:tiny", 1),
        build_synthetic_history("tiny", 2),
    )
    assert np.array_equal(one.digest, same.digest)
    assert not np.array_equal(one.digest, other.digest)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    """The error for a wrong name lists the known ones."""
    for name in ("huge", "tiny+rain"):
        with pytest.raises(UsageError, match="1m"):
            build_synthetic_history(name, 1)
    assert ARRAY_SIZES["1m"].size.pages == 1_000_000


def test_empty_ranges_spread_out_to_nothing() -> None:
    """Ranges that end before they begin contain no numbers."""
    ranges, numbers = expand_ranges(np.array([5, 1]), np.array([4, 0]))
    assert (len(ranges), len(numbers)) == (0, 0)
