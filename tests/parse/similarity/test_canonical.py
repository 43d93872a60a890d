"""Which URL of a group of copies is shown: with a reason, in any order, and safe from strangers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.parse.similarity.canonical import Member, choose_canonical

SITE = "http://a.example"
URLS = st.sampled_from(
    [
        *(
            f"{scheme}://{host}{tail}"
            for scheme in ("http", "https")
            for host in ("a.example", "www.a.example", "b.example")
            for tail in ("/x", "/x/", "/x/index.html", "/x?a=1", "/x?utm_source=b")
        ),
    ]
)
MEMBERS = st.lists(
    st.builds(Member, URLS, st.one_of(st.just(""), URLS), st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)),
    min_size=1,
    max_size=8,
    unique_by=lambda member: member.url,
)


@pytest.mark.parametrize(
    ("winner", "loser", "word"),
    [
        (
            Member(f"{SITE}/x?long=1", f"{SITE}/x?long=1"),
            Member(f"{SITE}/x", f"{SITE}/x?long=1"),
            "name it as canonical",
        ),
        (Member("https://a.example/x?a=1"), Member(f"{SITE}/x", in_links=9), "https"),
        (Member(f"{SITE}/x?a=1", redirects=1), Member(f"{SITE}/x", in_links=9), "redirects"),
        (Member(f"{SITE}/long/path/x"), Member(f"{SITE}/x?a=1", in_links=9), "query"),
        (Member(f"{SITE}/x?a=1"), Member(f"{SITE}/x?PHPSESSID=1", in_links=9), "query"),
        (Member(f"{SITE}/long/path", in_links=2), Member(f"{SITE}/x", in_links=1), "links"),
        (Member(f"{SITE}/x/y"), Member(f"{SITE}/index.html"), "simpler"),
        (Member(f"{SITE}/abcdef"), Member(f"{SITE}/a/b"), "simpler"),
        (Member(f"{SITE}/y", found=1), Member(f"{SITE}/x", found=2), "first"),
        (Member(f"{SITE}/x"), Member(f"{SITE}/y"), "alphabet"),
    ],
    ids=["declared", "https", "redirects", "no query", "no session", "links", "index", "segments", "found", "alphabet"],
)
def test_the_first_step_that_differs_decides(winner: Member, loser: Member, word: str) -> None:
    """Steps are in the order of the rule, and the reason gives the step and the runner-up."""
    for members in ([winner, loser], [loser, winner]):
        place, reason = choose_canonical(members)
        assert members[place] == winner
        assert word in reason
        assert loser.url in reason


@given(MEMBERS, st.data())
def test_the_order_of_members_is_no_matter(members: list[Member], data: st.DataObject) -> None:
    """The order of pages doesn't change the choice or its reason."""
    others = data.draw(st.permutations(members))
    present = data.draw(URLS)
    (one, why), (other, likewise) = choose_canonical(members, present), choose_canonical(others, present)
    assert (members[one], why) == (others[other], likewise)


@given(MEMBERS)
def test_what_was_chosen_stays(members: list[Member]) -> None:
    """Choosing again among the same members changes nothing."""
    chosen = members[choose_canonical(members)[0]].url
    assert members[choose_canonical(members, chosen)[0]].url == chosen


def test_the_present_one_stays_unless_something_weighty_speaks_against_it() -> None:
    """More links or a shorter URL do not replace it; https does."""
    present = f"{SITE}/long/path"
    members = [Member(present), Member(f"{SITE}/x", in_links=1000)]
    assert choose_canonical(members, present)[0] == 0
    assert choose_canonical(members)[0] == 1
    assert choose_canonical([*members, Member("https://a.example/y")], present)[0] == 2


def test_a_stranger_cannot_take_a_pages_place() -> None:
    """Copies on another site, however many and however well presented, don't displace the page."""
    original = Member(f"{SITE}/x?a=1", in_links=3)
    thief = "https://b.example/x"
    copies = [Member(thief, thief, redirects=9), *(Member(f"{thief}/{n}", thief) for n in range(20))]
    assert choose_canonical([original, *copies])[0] == 0


def test_a_page_may_yield_to_another_site() -> None:
    """A reprint that names the original as canonical gives way, even with more links to it."""
    reprint = Member("https://b.example/reprint", f"{SITE}/x", in_links=99)
    place, reason = choose_canonical([reprint, Member(f"{SITE}/x")])
    assert place == 1
    assert "yields" in reason


@given(st.lists(st.text(st.characters(codec=None, categories=None)), min_size=1))
def test_any_text_is_chosen_from(texts: list[str]) -> None:
    """Hostile URLs raise no error, and one of them is chosen."""
    members = [Member(f"http://{text}", text) for text in texts] + [Member(text, text) for text in texts]
    assert 0 <= choose_canonical(members)[0] < len(members)


def test_an_empty_group_is_a_mistake() -> None:
    """There is nothing to choose."""
    with pytest.raises(ValueError, match="at least one"):
        choose_canonical([])
