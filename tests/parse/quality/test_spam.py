"""Spam is distinguished from similar honest pages, and every verdict has a reason."""

from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.lab.worlds.synthetic.sites import LINK_FARM
from vedette.lab.worlds.synthetic.world import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.world import WorldRequest
from vedette.parse.html.page import parse_page
from vedette.parse.quality.spam import RULES, SpamFeatures, SpamRule, extract_features, score_spam

HOST = "example.org"
Links = list[tuple[str, str]]
OWN: Links = [(f"/page-{number}", f"Page {number}") for number in range(30)]

PROSE = (
    "The harbour was quiet at dawn. Nobody asked about the cargo that had come in with the tide, and the clerk who "
    "should have counted it slept behind his ledger. By noon the first carts rolled up the hill, loaded with cloth, "
    "salt and three crates that no paper mentioned. A boy saw them, told his mother, and was told in turn to hold his "
    "tongue until the ship had sailed again. It sailed on Thursday, a day late, with a new flag and half its crew. "
)
POEM = (
    "Row the boat and row the boat,\nthe river runs to sea,\nthe heron stands, the lilies float,\nrow the boat with me."
    "\nRow the boat and row the boat,\nthe evening turns to blue,\nthe miller hums a single note,\nrow the boat with "
    "you.\nRow the boat and row the boat,\nthe lamps are lit in town,\nthe ferryman puts on his coat,\nrow the boat "
    "and down.\n"
)
NUMBERS = "\n".join(
    f"{year} {year * 7 % 97}.{year % 10} {year * 13 % 89},5 {year * 3 % 11}" for year in range(1900, 1990)
)
GLOSSARY = "\n".join(
    f"{word}: what {use}, as a rule" for word, use in zip(PROSE.split(), PROSE.split()[3:], strict=False)
)
CODE = "\n".join(
    f"    def read_{name}(self, path):\n        value = self.{name}.get(path)\n        return value or {len(name)}"
    for name in dict.fromkeys(word.strip(".,").lower() for word in PROSE.split()[:40])
)
COOKIES = (
    "We use cookies to remember your choices. Cookies are small files that your browser keeps. Some cookies are needed "
    "for the site to work; other cookies help us to see how it is used. You may refuse cookies in your browser, and "
    "delete those that were kept before. If you refuse all cookies, parts of the site may not work as they should. "
    "This notice tells which cookies we set, for how long, and who can read them. "
)
HAM = {
    "article": extract_features(HOST, "The harbour at dawn", PROSE * 3, 250, 20, OWN),
    "poem": extract_features(HOST, "Row the boat", POEM, 80, 0, OWN),
    "numbers": extract_features(HOST, "Rainfall by year, 1900 to 1989", NUMBERS, 360, 0, OWN),
    "glossary": extract_features(HOST, "Glossary", GLOSSARY, 500, 0, OWN),
    "code": extract_features(HOST, "reader.py", CODE, 300, 0, OWN),
    "cookies": extract_features(HOST, "Cookie policy", COOKIES, 90, 60, OWN),
    "clubs": extract_features(
        HOST, "Clubs", "Clubs in town.", 3, 0, [(f"https://club{n}.test/", f"Club {n}") for n in range(40)]
    ),
    "one partner": extract_features(HOST, "Our shop", PROSE, 90, 0, OWN + [("https://shop.test/item", "Buy")] * 15),
    "chinese": extract_features(HOST, "港口", "港口的早晨很安静没有人问起随潮水而来的货物" * 40, 40, 0, OWN),
    "empty": extract_features(HOST, "", "", 0, 0, []),
}
STUFFED = "cheap watches buy cheap watches online best cheap watches store cheap watches sale "
KEYWORDS = ", ".join(f"{kind}, loan, {kind} loan, credit" for kind in ("car", "home", "fast", "easy", "cash") * 12)
FARM_LINKS: Links = [
    (f"http://best-{word.strip('.,').lower()}-{n}.farm.test/{n}", word) for n, word in enumerate(PROSE.split())
]
SPAM = {
    "stuffed": extract_features(HOST, "Cheap cheap cheap watches", STUFFED * 30, 390, 0, OWN),
    "hidden": extract_features(HOST, "Watches watches watches watches watches", PROSE + STUFFED * 9, 200, 4000, OWN),
    "keywords": extract_features(HOST, "Loan loan loan loan", KEYWORDS, 300, 0, OWN),
    "farm": extract_features("a.farm.test", "Best of all", PROSE[:300], 50, 0, FARM_LINKS),
}


@pytest.mark.parametrize("name", sorted(HAM))
def test_an_honest_page_is_let_through(name: str) -> None:
    """Refrains, tables, lists, code and legal notices have good reasons to be repetitive."""
    assert score_spam(HAM[name]).score < 0.5, score_spam(HAM[name])


@pytest.mark.parametrize("name", sorted(SPAM))
def test_spam_is_seen_and_named(name: str) -> None:
    """Each kind of spam gets a high score and at least one reason."""
    found = score_spam(SPAM[name])
    assert found.score >= 0.5, (found, SPAM[name])
    assert found.reasons


def test_every_spam_page_scores_above_every_honest_one() -> None:
    """Every spam page scores above every honest one."""
    honest = max(score_spam(signs).score for signs in HAM.values())
    assert honest < min(score_spam(signs).score for signs in SPAM.values())


def test_links_from_elsewhere_speak_for_a_page() -> None:
    """A portal with links to many hosts is recognized by the links to it."""
    alone = extract_features("a.farm.test", "Best", PROSE[:300], 50, 0, FARM_LINKS, foreign_inlinks=0)
    known = extract_features("a.farm.test", "Best", PROSE[:300], 50, 0, FARM_LINKS, foreign_inlinks=100)
    assert score_spam(known).score < score_spam(SPAM["farm"]).score < score_spam(alone).score


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.feature)
def test_more_of_a_sign_is_never_less_spam(rule: SpamRule) -> None:
    """Every rule uses an existing sign, and more of a sign never lowers the score."""
    assert isinstance(getattr(SpamFeatures(), rule.feature), int | float)
    logits = [rule.compute_logits(value / 4) for value in range(80)]
    assert logits == sorted(logits)
    assert logits[0] < logits[-1]


@pytest.mark.parametrize("before", [0, 40, 100, 130])
def test_what_begins_honestly_may_be_stuffed(before: int) -> None:
    """One or two honest sentences don't hide a keyword-stuffed text."""
    signs = extract_features(HOST, "Watches", PROSE[:before] + STUFFED * 30, 390, 0, OWN)
    assert signs.top_share > 0.2
    assert signs.pair_share > 0.5


@pytest.mark.parametrize("scheme", ["http://", "https://", "HTTPS://", "//", "hTTp://someone:secret@"])
def test_a_host_is_seen_however_it_is_written(scheme: str) -> None:
    """Scheme, user, port and case make no difference to the farm that links lead to."""
    links = [(f"{scheme}Best-{n}.Farm.test:8080?page={n}", f"Page {n}") for n in range(30)]
    assert extract_features("a.farm.test", "Best", PROSE, 90, 0, links).fan_share == 1


def test_slashes_in_a_path_name_no_host() -> None:
    """Two slashes later in a URL, as in a redirector, are part of its path."""
    links = [(f"{path}//other{n}.test/", "") for path in ("a", "/go", "/go?to=http:", "ftp:") for n in range(10)]
    assert extract_features(HOST, "Links", PROSE, 90, 0, links).foreign_share == 0


def test_links_to_the_own_host_do_not_leave_it() -> None:
    """A page that writes its host in every link is no different from one with relative links."""
    links = [(f"https://{HOST}{href}", text) for href, text in OWN]
    assert extract_features(HOST, "Home", PROSE, 90, 0, links) == extract_features(HOST, "Home", PROSE, 90, 0, OWN)


SHARES = [rule.feature for rule in RULES if rule.feature.endswith("_share") and rule.feature != "comma_share"]
PAIRS = st.lists(st.tuples(st.text(max_size=40) | st.from_regex(r"(https?:)?//[^/]{1,20}/.*"), st.text()), max_size=60)


@given(st.text(), st.text(), st.text(), st.integers(0, 10**6), st.integers(0, 10**6), PAIRS)
def test_no_page_makes_it_fail(host: str, title: str, main: str, words: int, hidden: int, links: Links) -> None:
    """For any page, the score and all shares are between 0 and 1."""
    signs = extract_features(host, title, main, words, hidden, links)
    assert 0 <= score_spam(signs).score <= 1
    assert isfinite(signs.word_letters)
    assert all(0 <= getattr(signs, name) <= 1 for name in SHARES)


def made_score(world: SyntheticWorld, url: str) -> float:
    """Return the score of a page of the synthetic web."""
    host, _, path = url.removeprefix("http://").partition("/")
    page = parse_page(world.reply(WorldRequest(host, f"/{path}"), world.start_s).body.decode())
    links = [(link.href, link.text) for link in page.links]
    return score_spam(extract_features(host, page.title, page.main, page.words, page.hidden_words, links)).score


def test_the_farm_of_the_made_web_is_apart_from_its_pages() -> None:
    """Every page of the farm is spam, and no ordinary page or start page is."""
    world = open_synthetic_world("tiny")
    pages = [url for host in world.sites for url in (f"http://{host}/", *world.live_pages(host, world.start_s))]
    honest = [made_score(world, url) for url in pages]
    farm = [made_score(world, f"http://best-{number}.{LINK_FARM}/{number}") for number in range(100)]
    assert max(honest) < 0.5 < min(farm), (max(honest), min(farm))
