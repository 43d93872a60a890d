"""How copies are learned from pairs of URLs, and how an outdated rule is dropped."""

import random

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from vedette.discover.urls.duplicate_evidence import (
    CopyEvidence,
    FetchedUrl,
    ReferenceUrls,
    observe_check,
    observe_pair,
)
from vedette.discover.urls.duplicate_rules import EVERYWHERE, CopyRules, RuleSubject
from vedette.lab.worlds.synthetic import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.world import WorldRequest

HOST = "http://a.example"
ANYTHING = st.text(st.characters(codec=None, categories=None))


def kinds(url: str, leader: str, *, same: bool = True, said: bool = False) -> set[tuple[str, str]]:
    """Return the rules that a pair is evidence for."""
    return {(seen.subject.kind, seen.subject.what) for seen in observe_pair(url, leader, same=same, is_declared=said)}


@pytest.mark.parametrize(
    ("url", "leader", "expected"),
    [
        (f"{HOST}/x?p=1", f"{HOST}/x", {("parameter", "p"), ("query", "")}),
        (f"{HOST}/x", f"{HOST}/x?p=1", {("parameter", "p"), ("query", "")}),
        (f"{HOST}/x?p=1&q", f"{HOST}/x?p=2&q", {("parameter", "p")}),
        (f"{HOST}/x?p=1&p=2", f"{HOST}/x?p=2&p=1", {("parameter", "p")}),
        (f"{HOST}/x?p=1&q=2", f"{HOST}/x", {("parameter", "p"), ("parameter", "q"), ("query", "")}),
        (f"{HOST}/x?p=1&q=2", f"{HOST}/x?q=3", {("parameter", "p"), ("parameter", "q")}),
        (f"{HOST}/x?a&b&c&d&e", f"{HOST}/x", set()),
        (f"{HOST}/x?p=1&q=2", f"{HOST}/x?q=2&p=1", set()),
        (f"{HOST}/x/index.html", f"{HOST}/x/", {("index", "index.html")}),
        (f"{HOST}/x/", f"{HOST}/x", {("slash", "drop")}),
        (f"{HOST}/x", f"{HOST}/x/", {("slash", "add")}),
        (f"{HOST}/x", f"{HOST}/x.html", {("ending", ".html")}),
        (f"{HOST}/x.htm?p", f"{HOST}/x?p", {("ending", ".htm")}),
        (f"{HOST}/", f"{HOST}/.html", set()),
        (f"{HOST}/x.html", f"{HOST}/x/", set()),
        (f"{HOST}//x", f"{HOST}/x", {("slashes", "")}),
        (f"{HOST}/x/y", f"{HOST}/x///y", {("slashes", "")}),
        (f"{HOST}/x", f"{HOST}/y", set()),
        (f"{HOST}/x/?p=1", f"{HOST}/x", set()),
        (f"{HOST}/x", "http://www.a.example/x", {("origin", "http://www.a.example")}),
        (f"{HOST}/x", "https://a.example/x", {("origin", "https://a.example")}),
        ("https://a.example/x", f"{HOST}/x", {("origin", "https://a.example")}),
        (f"{HOST}/x", "http://www.a.example/y", set()),
        (f"{HOST}/x", f"{HOST}/x", set()),
    ],
)
def test_a_pair_speaks_of_the_one_respect_in_which_it_differs(url: str, leader: str, expected: set[object]) -> None:
    """It is evidence for nothing if it differs in more."""
    assert kinds(url, leader) == expected


def test_several_parameters_that_make_a_difference_blame_none() -> None:
    """This only shows that not all queries can be dropped."""
    assert kinds(f"{HOST}/x?p=1&q=2", f"{HOST}/x", same=False) == {("query", "")}
    assert kinds(f"{HOST}/x?p=1", f"{HOST}/x", same=False) == {("query", ""), ("parameter", "p")}


def test_a_stranger_cannot_take_a_hosts_place() -> None:
    """Equal pages on another site are not a mirror, unless the host itself links there."""
    assert kinds(f"{HOST}/x", "http://b.example/x") == set()
    assert kinds("https://a.example/x", "http://b.example/x", said=True) == set()
    assert kinds(f"{HOST}/x", "http://b.example/x", said=True) == {("origin", "http://b.example")}


def test_a_redirect_to_a_folder_says_nothing_about_other_names() -> None:
    """A server that redirects folders to a trailing slash may also have pages such as ``/security``."""
    assert kinds(f"{HOST}/docs", f"{HOST}/docs/", said=True) == set()


def lessons(*pairs: tuple[str, str], same: bool = True, start: CopyEvidence | None = None) -> CopyEvidence:
    """Return the evidence from pairs."""
    seen = [observation for url, leader in pairs for observation in observe_pair(url, leader, same=same)]
    return (start or CopyEvidence()).observe(seen)


def tracked(count: int, *, paths: int = 1000, folder: str = "/shop/") -> list[tuple[str, str]]:
    """Return pairs in which one URL has an extra parameter."""
    return [(f"{HOST}{folder}{n % paths}?ref={n}", f"{HOST}{folder}{n % paths}") for n in range(count)]


def subjects(learned: CopyRules) -> set[tuple[str, str, str]]:
    """Return the subjects of the rules."""
    return {(rule.subject.kind, rule.subject.where, rule.subject.what) for rule in learned.rules}


def test_a_rule_needs_enough_distinct_pairs_and_paths() -> None:
    """A few pairs, pairs of few paths, or the same pair repeatedly are not enough."""
    assert not lessons(*tracked(4)).build_rules().rules
    assert not lessons(*tracked(40, paths=2)).build_rules().rules
    assert not lessons(*tracked(3) * 9).build_rules().rules
    assert subjects(lessons(*tracked(9)).build_rules()) == {("parameter", "*", "ref")}


def test_two_pages_show_that_https_is_the_same_site() -> None:
    """A small site would otherwise be fetched twice before anything is learned."""
    pairs = [(f"{HOST}/{n}", f"https://a.example/{n}") for n in range(2)]
    assert not lessons(pairs[0]).build_rules().rules
    assert subjects(lessons(*pairs).build_rules()) == {("origin", "http", "https://a.example")}


def test_all_queries_are_dropped_only_after_several_makes_of_query() -> None:
    """Many pages with one kind of query determine its parameters.

    A single parameter that matters protects all queries.
    """
    one_make = [(f"{HOST}/shop/{n}?utm_source=a&utm_medium=b", f"{HOST}/shop/{n}") for n in range(30)]
    assert ("query", "*", "") not in subjects(lessons(*one_make).build_rules())
    more = one_make + [(f"{HOST}/shop/{n}?{'abc'[n % 3]}=1", f"{HOST}/shop/{n}") for n in range(9)]
    assert ("query", "*", "") in subjects(lessons(*more).build_rules())
    refuted = lessons((f"{HOST}/shop/1?lang=de", f"{HOST}/shop/1?lang=en"), same=False, start=lessons(*more))
    assert ("query", "*", "") not in subjects(refuted.build_rules())


def test_pairs_that_disagree_prevent_a_rule() -> None:
    """A parameter that matters only sometimes is kept."""
    mixed = lessons(*tracked(1, folder="/shop/x"), same=False)
    assert not lessons(*tracked(20), start=mixed).build_rules().rules


def test_a_folder_that_disagrees_leaves_the_rules_of_other_folders() -> None:
    """The rule for the whole host is dropped, and the one for the folder where all pairs agree stays."""
    both = lessons(*tracked(9, folder="/list/"), same=False, start=lessons(*tracked(60)))
    assert subjects(both.build_rules()) == {("parameter", "/shop/", "ref")}


def test_a_believed_rule_falls_by_its_checks_and_stays_fallen() -> None:
    """If covered URLs turn out to be separate pages, the rule is dropped, and a few matching pairs don't restore it."""
    state = lessons(*tracked(200))
    learned = state.build_rules()
    assert learned.rules
    checks = 0
    while state.build_rules().rules:
        checks += 1
        state = state.observe(observe_check(learned, f"{HOST}/shop/{checks}?ref=new", same=False))
        assert checks < 10
    assert not lessons(*tracked(20), start=state).build_rules().rules


def test_a_single_odd_check_does_not_fell_a_long_held_rule() -> None:
    """The page may have changed between two fetches."""
    state = lessons(*tracked(60))
    state = state.observe(observe_check(state.build_rules(), f"{HOST}/shop/1?ref=new", same=False))
    assert state.build_rules().rules


def test_two_directions_are_one_mirror() -> None:
    """The host with most of the evidence becomes the target, and no cycle results."""
    pages = [(f"{HOST}/{n}", f"http://mirror.a.example/{n}") for n in range(30)]
    turned = [(b, a) if n % 3 else (a, b) for n, (a, b) in enumerate(pages)]
    (rule,) = lessons(*turned).build_rules().rules
    learned = lessons(*turned).build_rules()
    assert {learned.find_covering(url)[0] for url in pages[7]} == {f"{rule.subject.what}/7"}


def test_a_circle_of_three_hosts_is_cut() -> None:
    """Each page on the three hosts still has one canonical URL."""
    names = [f"http://{name}.a.example" for name in ("x", "y", "z")]
    pairs = [(f"{names[n % 3]}/{n}", f"{names[(n + 1) % 3]}/{n}") for n in range(60)]
    learned = lessons(*pairs).build_rules()
    assert len({learned.find_covering(f"{name}/9")[0] for name in names}) == 1


def test_memory_is_bounded_and_keeps_what_is_believed() -> None:
    """A host that invents endless parameters can't displace a rule."""
    noise = [(f"{HOST}/shop/{n}?{n}=1", f"{HOST}/shop/{n}") for n in range(3000)]
    state = lessons(*noise, start=lessons(*tracked(9)))
    assert max(map(len, state.hosts.values())) <= 256
    assert ("parameter", "*", "ref") in subjects(state.build_rules())


def test_state_survives_being_written() -> None:
    """Counts, estimates and observed pairs are stored."""
    state = lessons(*tracked(9), (f"{HOST}/x", "https://a.example/x"))
    assert CopyEvidence.from_json(state.to_json()) == state


@given(ANYTHING, ANYTHING, st.booleans(), st.booleans())
def test_any_pair_is_heard(one: str, other: str, same: bool, said: bool) -> None:  # noqa: FBT001 - drawn, not passed
    """Hostile text raises no error and teaches nothing harmful."""
    for url, leader in ((one, other), (f"{HOST}/{one}", f"{HOST}/{other}"), (f"http://{one}/", f"http://{other}/")):
        state = CopyEvidence().observe(observe_pair(url, leader, same=same, is_declared=said))
        assert not state.build_rules().rules


def test_pairs_in_another_order_teach_the_same() -> None:
    """Conclusions from plain evidence do not depend on the order of the crawl."""
    pairs = tracked(30) + [(f"{HOST}/{n}/", f"{HOST}/{n}") for n in range(30)]
    expected = subjects(lessons(*pairs).build_rules())
    random.Random(5).shuffle(pairs)  # noqa: S311 - a shuffle, no secret
    assert subjects(lessons(*pairs).build_rules()) == expected


def report_pages(*fetched: FetchedUrl, start: CopyEvidence) -> CopyEvidence:
    """Give the reports of witnesses to the learner."""
    return start.observe(ReferenceUrls().compare(fetched, start)[0])


def test_witnesses_speak_against_a_parameter_that_matters() -> None:
    """List pages that differ in one parameter and in content disprove the rule that a few equal pages suggested."""
    pairs = [(f"{HOST}/list/{n}?page=2", f"{HOST}/list/{n}?page=1") for n in range(6)]
    suspected = lessons(*pairs)
    assert suspected.build_rules().rules
    urls = [FetchedUrl(f"{HOST}/list/{n}?page={page}", n * 10 + page, 0.0) for n in range(9) for page in range(3)]
    assert not report_pages(*urls, start=suspected).build_rules().rules


def test_witnesses_find_copies_by_themselves() -> None:
    """Spellings of a URL with the same content support a rule."""
    start = lessons((f"{HOST}/a", f"{HOST}/a?sort=up"))
    urls = [FetchedUrl(f"{HOST}/b/{n}{tail}", n, 0.0) for n in range(9) for tail in ("", "?sort=up", "?sort=down")]
    assert ("parameter", "*", "sort") in subjects(report_pages(*urls, start=start).build_rules())


def test_fetches_that_lie_far_apart_do_not_speak_against() -> None:
    """The page may have changed in between."""
    start = lessons(*tracked(9))
    urls = [
        FetchedUrl(f"{HOST}/shop/{n}{tail}", n + at, 1e6 * at)
        for n in range(50)
        for at, tail in enumerate(("", "?ref=1"))
    ]
    assert report_pages(*urls, start=start).build_rules() == start.build_rules()


def test_witnesses_are_few_and_only_where_copies_were_seen() -> None:
    """Memory grows with domains that have copies, not with pages."""
    urls = [FetchedUrl(f"{HOST}/{n}?a={n % 7}", n, 0.0) for n in range(2000)]
    assert not ReferenceUrls().compare(urls, CopyEvidence())[1].domains
    _, kept = ReferenceUrls().compare(urls, lessons(*tracked(1)))
    assert 10 < sum(len(slot) for slots in kept.domains.values() for slot in slots.values()) < 200


@given(st.lists(ANYTHING))
def test_any_url_may_be_a_witness(texts: list[str]) -> None:
    """Hostile text raises nothing and affects only its own host."""
    start = lessons(*tracked(1))
    urls = [FetchedUrl(url, place, 0.0) for place, text in enumerate(texts) for url in (text, f"{HOST}/{text}")]
    seen, _ = ReferenceUrls().compare(urls, start)
    assert {observation.subject.host for observation in seen} <= {"a.example"}


def test_a_whole_host_is_named_so() -> None:
    """A rule for every folder of a host is distinguished from one for its top-level pages."""
    everywhere, top = observe_pair(f"{HOST}/x?p=1", f"{HOST}/x?p=2")
    assert everywhere.subject == RuleSubject("parameter", "a.example", EVERYWHERE, "p")
    assert top.subject.where == "/"


def crawled(world: SyntheticWorld, host: str, tails: tuple[str, ...]) -> list[FetchedUrl]:
    """Return every live page of a host in several spellings, with its article as the content."""
    found = []
    for url in world.live_pages(host, world.start_s):
        for tail in tails:
            body = world.reply(WorldRequest(host, url.partition(host)[2] + tail), world.start_s).body
            article = body.partition(b"<article>")[2].partition(b"</article>")[0]
            found.append(FetchedUrl(url + tail, xxhash.xxh64_intdigest(article), world.start_s))
    return found


def learn_groups(fetched: list[FetchedUrl]) -> CopyEvidence:
    """Give groups of equal articles to the learner, each with its first page as the leader."""
    leaders: dict[int, str] = {}
    return lessons(*((one.url, leaders.setdefault(one.content_group, one.url)) for one in fetched))


def test_the_made_webs_copies_are_learned() -> None:
    """Once its mirror and parameters are learned, a crawl would request each page once, apart from checks."""
    world = open_synthetic_world("tiny", calm=True)
    host = next(
        name for name in world.sites if f"mirror.{name.removeprefix('www.')}" in {h.name for h in world.hosts()}
    )
    mirror = f"mirror.{host.removeprefix('www.')}"
    learned = learn_groups(
        crawled(world, host, ("", "?ref=a", "?sort=newest")) + crawled(world, mirror, ("",))
    ).build_rules()
    expected = {("origin", "http", f"http://{host}"), ("parameter", "*", "ref"), ("parameter", "*", "sort")}
    assert subjects(learned) >= expected
    for url in world.live_pages(host, world.start_s):
        other = url.replace(host, mirror) + "?sort=oldest&ref=b"
        assert learned.find_covering(other)[0] == url
