"""Index queries: every group is required except stop words, order is looked up separately, filters always apply."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.index.query.parser import ParsedQuery, parse_query
from vedette.index.query.planner import RetrievalPlan, build_plan
from vedette.index.query.retrieval import TEXT_FIELDS, And, AndNot, Node, Or, Phrase, Range, Term, TermSet

NOW_S = 1_750_000_000.0
FORMS = {"cars": (("car", 0.8),), "car": (("cars", 0.8),)}


def planned(query: str, access: Sequence[str] = ("public",)) -> RetrievalPlan:
    """Return the plan of a query as typed."""
    return build_plan(parse_query(query, NOW_S), lambda word: FORMS.get(word, ()), access)


def nodes(node: Node) -> Iterator[Node]:
    """Yield the nodes of a tree."""
    yield node
    match node:
        case Or(parts):
            inner: tuple[Node, ...] = parts
        case And(parts, wishes):
            inner = (*parts, *wishes)
        case AndNot(wanted, unwanted):
            inner = (wanted, *unwanted)
        case _:
            inner = ()
    for each in inner:
        yield from nodes(each)


def required(node: Node) -> tuple[Node, ...]:
    """Return the terms that a page must have."""
    if isinstance(node, AndNot):
        return required(node.wanted)
    assert isinstance(node, And)
    return node.parts


def words_in(node: Node) -> set[str]:
    """Return all words in a node."""
    found: set[str] = set()
    for each in nodes(node):
        if isinstance(each, Term):
            found.add(each.word)
        elif isinstance(each, Phrase):
            found.update(each.words)
    return found


def test_every_word_must_be_in_some_text_field() -> None:
    """Each word is a clause that any text field can satisfy."""
    groups = [part for part in required(planned("red kites").node) if isinstance(part, Or)]
    assert [words_in(group) for group in groups] == [{"red"}, {"kites"}]
    assert {term.field for term in nodes(groups[0]) if isinstance(term, Term)} == set(TEXT_FIELDS)


def test_other_forms_count_less() -> None:
    """A form of a word matches, with less weight than the word itself."""
    (group,) = (part for part in required(planned("cars").node) if isinstance(part, Or))
    boosts = {(term.field, term.word): term.boost for term in nodes(group) if isinstance(term, Term)}
    assert boosts["body", "car"] < boosts["body", "cars"]


def test_quoted_words_have_no_other_forms() -> None:
    """A quoted word matches only that word."""
    assert words_in(planned('"cars"').node) == {"cars"}


def test_small_words_are_not_required() -> None:
    """A page about kites matches "the kites"; the stop word counts only when pages are scored."""
    plan = planned("the kites")
    assert words_in(plan.node) == {"kites"}
    assert [slot.words[0][0] for slot in plan.wanted] == ["the", "kites"]


def test_small_words_alone_are_required() -> None:
    """A query of stop words alone finds pages with them."""
    assert set().union(*map(words_in, required(planned("to be or not").node))) >= {"to", "be"}


def test_order_is_looked_up_separately() -> None:
    """Pages with the whole query in order, in their text or elsewhere, are found besides those with its words."""
    plan = planned("wild sea birds -boat intitle:kites")
    assert plan.in_order is not None
    assert plan.named is not None
    for node, fields in ((plan.in_order, {"body"}), (plan.named, {"title", "headings", "anchors"})):
        assert {each.field for each in nodes(node) if isinstance(each, Phrase) and "sea" in each.words} == fields
        assert isinstance(node, AndNot)
        assert "kites" in set().union(*map(words_in, required(node)))
    assert planned("kites").in_order is None


def test_filters_are_required() -> None:
    """Site, kind, language, access and dates are filters, and exclusions are excluded."""
    plan = planned(
        "kites site:example.org type:pdf lang:de after:2024 before:2025 -boat -site:example.com", ("public", "x")
    )
    assert isinstance(plan.node, AndNot)
    parts = required(plan.node)
    assert TermSet("site", ("example.org",)) in parts
    assert TermSet("kind", ("pdf",)) in parts
    assert TermSet("language", ("de",)) in parts
    assert TermSet("access", ("public", "x")) in parts
    (dates,) = (part for part in parts if isinstance(part, Range))
    asked = parse_query("after:2024 before:2025", NOW_S)
    assert (dates.low, dates.high + 1) == (asked.after_s, asked.before_s)
    assert TermSet("site", ("example.com",)) in plan.node.unwanted
    assert "boat" in set().union(*map(words_in, plan.node.unwanted))


@pytest.mark.parametrize(
    ("query", "asked_for"),
    [
        ("one", []),
        ("red kites", [1]),
        ("red sea kites", [2, 1]),
        ("wild red sea kites fly", [1]),
        ("how do red kites fly", [1]),
    ],
)
def test_looser_plans_let_go_of_words(query: str, asked_for: list[int]) -> None:
    """Of a few words, first all but one are required, then half; of many words, any one."""
    found = [part.at_least for node in planned(query).looser for part in required(node) if isinstance(part, Or)]
    assert found == asked_for


def test_looser_plans_keep_what_was_quoted() -> None:
    """A quoted phrase is required by every plan."""
    plan = planned('"sea birds" red kites fly')
    assert plan.looser
    for node in plan.looser:
        assert any({"sea", "birds"} <= words_in(part) for part in required(node) if isinstance(part, Or))
        assert all(part.at_least < 3 for part in required(node) if isinstance(part, Or))


def test_wanted_words_are_slots_in_order() -> None:
    """Each word has a slot with its forms; neither stop words nor alternatives are needed."""
    wanted = planned("the cars | bikes red").wanted
    assert [[word for word, _ in slot.words] for slot in wanted] == [["the"], ["cars", "car"], ["bikes"], ["red"]]
    assert [slot.is_needed for slot in wanted] == [False, False, False, True]
    assert planned("cars").wanted[0].words == (("cars", 1.0), ("car", 0.8))


def test_a_pasted_title_is_found_in_order() -> None:
    """The bar before a site's name means OR, and all words in order are still preferred."""
    plan = planned("Getting help | Example")
    assert plan.named is not None
    assert Phrase("title", ("getting", "help", "example"), 2.0) in list(nodes(plan.named))


def test_several_words_may_stand_for_one() -> None:
    """A form with several words is searched as a phrase."""
    plan = build_plan(parse_query("k8s"), lambda _word: (("container ship", 0.8),), ("public",))
    assert Phrase("body", ("container", "ship"), 0.8) in list(nodes(plan.node))
    assert [word for word, _ in plan.wanted[0].words] == ["k8s", "container", "ship"]


def test_places_keep_to_their_field() -> None:
    """A word with intitle: or inurl: is only searched there."""
    (group,) = (part for part in required(planned("intitle:kites").node) if isinstance(part, Or))
    assert {term.field for term in nodes(group) if isinstance(term, Term)} == {"title"}


def test_only_filters() -> None:
    """A query without words finds everything that its filters allow."""
    plan = build_plan(ParsedQuery("", sites=("example.org",)), lambda _word: (), ("public",))
    assert required(plan.node) == (TermSet("access", ("public",)), TermSet("site", ("example.org",)))
    assert plan.wanted == ()
    assert plan.looser == ()


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(["a", "the", '"b c"', "-d", "OR", "site:x.org", "intitle:e"])).map(" ".join)
)
def test_access_is_always_required(query: str) -> None:
    """For any query, every plan is limited to what the user may see."""
    plan = planned(query, ("public", "secret"))
    for node in (plan.node, *plan.looser, plan.address, plan.in_order, plan.named):
        if node is None:
            continue
        assert TermSet("access", ("public", "secret")) in required(node)
