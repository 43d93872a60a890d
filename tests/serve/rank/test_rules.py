"""The operator's rules are found by the words of a query, however it is written."""

from vedette.serve.rank.rules import NO_RULES, SearchRules, parse_rules


def test_rules_are_found_by_folded_words() -> None:
    """Case, accents and punctuation make no difference."""
    rules = parse_rules([], [("Café hours", "http://example.org/open")], [])
    assert rules.get_pinned(["cafe", "hours"]) == ("http://example.org/open",)
    assert rules.get_pinned(["cafe"]) == ()


def test_synonyms_go_both_ways() -> None:
    """Searching for one finds the other."""
    rules = parse_rules([("k8s", "Kubernetes"), ("k8s", "container ship")], [], [])
    assert rules.get_synonyms(["k8s"]) == ("kubernetes", "container ship")
    assert rules.get_synonyms(["kubernetes"]) == ("k8s",)
    assert rules.get_synonyms(["container", "ship"]) == ("k8s",)


def test_hidden_goes_before_pinned() -> None:
    """A page hidden for a query is not pinned for it either."""
    rules = parse_rules([], [("a", "http://x/"), ("a", "http://y/")], [("A", "http://x/")])
    assert rules.get_pinned(["a"]) == ("http://y/",)
    assert rules.get_hidden(["a"]) == {"http://x/"}


def test_rules_without_words_are_none() -> None:
    """A rule for nothing, or a word that is its own synonym, has no effect."""
    assert parse_rules([("--", "x"), ("same", "Same")], [("…", "http://x/")], []) == NO_RULES == SearchRules()
