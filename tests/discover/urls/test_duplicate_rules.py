"""Copy rules: their targets, that they terminate, and that they change nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from vedette.discover.urls.duplicate_rules import CHECK_EVERY, CopyRule, CopyRules, RuleSubject, split_url

A, B = "a.example", "www.a.example"
EVERY = (
    RuleSubject("origin", A, "http", f"http://{B}"),
    RuleSubject("origin", B, "http", f"https://{B}"),
    RuleSubject("parameter", B, "*", "ref"),
    RuleSubject("parameter", B, "/list/", "page"),
    RuleSubject("query", B, "/print/", ""),
    RuleSubject("index", B, "*", "index.html"),
    RuleSubject("slash", B, "*", "drop"),
    RuleSubject("slashes", B, "*", ""),
    RuleSubject("ending", B, "*", ".html"),
)
SIGNS = ("/", "/", "/", "?", "&", "=", ".", "..", "%2F", "é", "\ud800", "#", "@", ":81")
PIECES = st.lists(st.sampled_from([*SIGNS, "list", "print", "ref", "page", "index.html", "x"]), max_size=12)
URLS = st.builds(
    lambda scheme, host, rest: f"{scheme}://{host}/{''.join(rest)}",
    st.sampled_from(["http", "https"]),
    st.sampled_from([A, B, "other.example"]),
    PIECES,
)
SUBJECTS = st.lists(st.sampled_from([*EVERY, RuleSubject("slash", B, "*", "add")]), unique=True)


def learned(*subjects: RuleSubject) -> CopyRules:
    """Return rules about these subjects."""
    return CopyRules(tuple(CopyRule(subject, 7, 7) for subject in subjects))


def test_each_kind_of_rule_rewrites_its_respect() -> None:
    """Each kind rewrites one URL, and so do all kinds at once."""
    rules = learned(*EVERY)
    for url, target in {
        f"https://{B}/x?b=1&ref=2&a=3": f"https://{B}/x?b=1&a=3",
        f"https://{B}/list/hats?page=2": f"https://{B}/list/hats",
        f"https://{B}/shop/hats?page=2": f"https://{B}/shop/hats?page=2",
        f"https://{B}/print/9?a&b": f"https://{B}/print/9",
        f"https://{B}/x/index.html": f"https://{B}/x",
        f"https://{B}/x/": f"https://{B}/x",
        f"http://{A}/list/index.html?page=7&size=9&ref=b": f"https://{B}/list?size=9",
        f"https://{B}/": f"https://{B}/",
    }.items():
        assert rules.find_covering(url)[0] == target


@given(SUBJECTS, URLS)
def test_an_ending_is_no_reason_to_rewrite(subjects: list[RuleSubject], url: str) -> None:
    """A rule about endings does not change a URL, but names another one that represents it."""
    rules = learned(*(subject for subject in subjects if subject.kind == "ending"))
    assert rules.apply(url) == (url, None)
    bare = rules.find_bare(url)
    assert bare is None or (bare[0] != url and url in rules.list_ended(bare[0]))


def test_the_reason_is_told() -> None:
    """The description says what is rewritten, where, and on what evidence."""
    rule = CopyRule(RuleSubject("parameter", A, "/list/", "page"), 13, 14)
    assert str(rule) == "page= is dropped below /list/ on a.example: 13 of 14 pairs were copies"


@given(SUBJECTS, URLS)
def test_applying_twice_is_applying_once(subjects: list[RuleSubject], url: str) -> None:
    """For any combination of rules, applying them again changes nothing."""
    rules = learned(*subjects)
    once = rules.apply(url)[0]
    assert rules.apply(once)[0] == once


@given(SUBJECTS, URLS)
def test_only_covered_urls_change_and_stay_among_known_hosts(subjects: list[RuleSubject], url: str) -> None:
    """A URL without a rule is unchanged, and no rule leads to a host that it does not name."""
    rules = learned(*subjects)
    target, rule = rules.apply(url)
    if rule is None:
        assert target == url
    else:
        parts = split_url(target)
        assert parts is not None
        assert parts.host in {A, B}
    assert learned().apply(url) == (url, None)
    assert learned(RuleSubject("parameter", "c.example", "*", "ref")).apply(url) == (url, None)


@given(st.text(st.characters(codec=None, categories=None)))
def test_any_text_is_answered(text: str) -> None:
    """This includes no host, invalid bytes, and text that isn't a URL."""
    rules = learned(*EVERY)
    for url in (text, f"http://{B}/{text}", f"http://{text}/", f"https://{B}{text}"):
        target, rule = rules.apply(url)
        assert rule is not None or target == url


def test_a_very_long_url_is_left_alone() -> None:
    """A megabyte of text is not a URL."""
    rules = learned(*EVERY)
    for tail in ("x" * 1_000_000, "?" + "ref=1&" * 200_000, "index.html/" * 90_000):
        url = f"https://{B}/{tail}"
        assert rules.apply(url) == (url, None)


def test_some_covered_urls_are_fetched_as_a_check() -> None:
    """About one in this many is returned unchanged, with the rule it checks, and always the same ones."""
    rules = learned(*EVERY)
    urls = [f"https://{B}/x/{number}?ref=home" for number in range(100 * CHECK_EVERY)]
    checks = [url for url in urls if rules.apply(url)[0] == url]
    assert 60 < len(checks) < 150
    assert all(rules.apply(url)[1] for url in urls)
    assert checks == [url for url in urls if rules.apply(url)[0] == url]


@given(SUBJECTS)
def test_rules_survive_being_written(subjects: list[RuleSubject]) -> None:
    """A fetcher reads the rules that the coordinator has written."""
    rules = learned(*subjects)
    assert CopyRules.from_json(rules.to_json()) == rules
