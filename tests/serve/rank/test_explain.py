"""One sentence explains the rank of a result."""

from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.rank.scoring import PLACES, explain_rank

WHOLE = dict.fromkeys(PLACES, 1.0)


def test_the_loudest_place_comes_first() -> None:
    """Places are named by their contribution; those that added little are left out."""
    message = explain_rank({"body_has": 3.0, "title_exact": 1.0, "url_bm25": 0.01}, "consumer lag", WHOLE)
    assert message == "High because its text and its title say “consumer lag”."


def test_grammar_of_one_place() -> None:
    """The verb agrees with one place or several."""
    assert explain_rank({"title_exact": 1.0}, "kites", WHOLE) == "High because its title says “kites”."
    assert explain_rank({"headings_phrase": 1.0}, "kites", WHOLE) == "High because its headings say “kites”."


def test_what_counts_besides() -> None:
    """A home page, a recent page and a page that resembles spam are mentioned."""
    message = explain_rank({"title_exact": 1.0, "home": 3.0, "spam": -1.0}, "kites", WHOLE)
    assert "home page" in message
    assert message.endswith("though it looks a little like spam.")


def test_nothing_speaks_for_it() -> None:
    """A page without contributions is explained, too."""
    assert explain_rank({}, "kites", WHOLE)
    assert explain_rank({"spam": -1.0}, "kites", WHOLE)


@given(
    st.dictionaries(st.sampled_from(["title_bm25", "body_has", "anywhere", "home", "spam"]), st.floats(-9, 9)),
    st.text(),
)
def test_always_one_sentence(contributions: dict[str, float], words: str) -> None:
    """Whatever counted, there is one complete sentence."""
    assert explain_rank(contributions, words, WHOLE).endswith(".")


def test_only_what_has_all_words_is_said_to_say_them() -> None:
    """A place with only some of the words, or other forms, is described as having words of the query."""
    message = explain_rank({"title_exact": 1.0, "body_bm25": 1.0}, "lamp harbour", {"title": 0.5, "body": 1.0})
    assert message == "High because its text says “lamp harbour” and its title has words of it."
    assert (
        explain_rank({"title_exact": 1.0}, "lamp harbour", {}) == "High because its title has words of “lamp harbour”."
    )
