"""Which users get learned results, and how many unproven results each of them gets."""

from hypothesis import given
from hypothesis import strategies as st
from tests.web.small_search import HeldLog, recording_to

from vedette.serve.rank.reranking import POLICY, UNPROVEN
from vedette.serve.slate import SearchRequest, SearchResult, Slate, Snippet
from vedette.web.public.visits import MAX_TRIALS_PER_DAY, TrialQuota, Visitor

MARKS = st.binary(min_size=8, max_size=8).map(bytes.hex)
MARK = "00000000000000ff"


def slate(note: str = "", **about: object) -> Slate:
    """Return one result with a note."""
    result = SearchResult(7, "http://a.org/", "A", Snippet(), "a.org", "html", "en", 0.0, 0.0, None, 1.0, note=note)
    return Slate(SearchRequest("kites"), 1, (result._replace(**about),))  # type: ignore[arg-type]


@given(MARKS)
def test_a_visitor_stays_in_one_group(mark: str) -> None:
    """The same hash gives the same group and random choices, whatever was shown before."""
    trials = TrialQuota(max_per_page=2)
    first = trials.get_audience(mark)
    trials.count_shown(mark, slate(UNPROVEN))
    assert trials.get_audience(mark)[:1] == first[:1]
    assert trials.get_audience(mark).seed == first.seed


def test_the_control_group_is_about_a_tenth() -> None:
    """The control group without learning is small but not empty."""
    learned = [TrialQuota().get_audience(f"{number * 2654435761:016x}").is_learned for number in range(2000)]
    assert 0.85 < sum(learned) / len(learned) < 0.95


def test_about_a_tenth_gets_learned_results_without_trials() -> None:
    """So the cost and gain of trials can be measured; users with relevance alone get no trials either."""
    readers = [TrialQuota(max_per_page=2).get_audience(f"{number * 2654435761:016x}") for number in range(2000)]
    untried = [reader for reader in readers if reader.is_learned and not reader.unproven]
    assert 0.05 < len(untried) / len(readers) < 0.15
    assert not any(reader.unproven for reader in readers if not reader.is_learned)


def test_a_person_is_shown_so_many_and_no_more() -> None:
    """After the daily limit there are no trials for that person; others have their own limit."""
    trials = TrialQuota(max_per_page=2)
    for _ in range(MAX_TRIALS_PER_DAY - 1):
        trials.count_shown(MARK, slate(UNPROVEN))
    assert trials.get_audience(MARK).unproven == 1
    trials.count_shown(MARK, slate(UNPROVEN))
    assert trials.get_audience(MARK).unproven == 0
    assert trials.get_audience("00000000000000fe").unproven == 2


def test_the_first_place_is_the_operators() -> None:
    """It is not used unless the operator allows it."""
    assert TrialQuota(max_per_page=2).get_audience(MARK).first == 2
    assert TrialQuota(max_per_page=2, first_place=True).get_audience(MARK).first == 1


def test_programs_get_no_trials() -> None:
    """Possible bots are not learned from."""
    assert TrialQuota(max_per_page=2).get_audience(MARK, "says it is a program").unproven == 0


def test_the_record_names_the_ranking_policy() -> None:
    """If quality counted, the record names the policy; reasons and propensities are kept."""
    log = HeldLog()
    recording = recording_to(log)
    tried = slate(UNPROVEN, features=(("quality", 0.0),), propensity=0.25)
    for each in (slate(), tried):
        recording.record_slate(each, Visitor("192.0.2.1", "B"), "page", 1.0)
    plain, learned = log.slates
    assert plain.policy != learned.policy == POLICY
    assert (learned.results[0].propensity, learned.results[0].reason) == (0.25, UNPROVEN)


def test_browsers_of_one_address_share_half_a_mark() -> None:
    """So limits apply per address without storing it; named users have a hash of their name."""
    mark = recording_to(HeldLog()).hash_visitor
    one, two, far = (mark(Visitor(*who)) for who in (("192.0.2.1", "A"), ("192.0.2.1", "B"), ("198.51.100.9", "A")))
    assert one[:8] == two[:8] != far[:8]
    assert len({one, two, far}) == 3
    assert mark(Visitor("192.0.2.1", "A", "key:x"))[:8] != one[:8]
