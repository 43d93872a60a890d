"""Every ledger, in a file and in PostgreSQL: never above a budget, and each click is charged at most once."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from threading import Barrier, Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.adapters.ads.ledgers import (
    ASKED,
    CENTS,
    DAY,
    NOW_S,
    Books,
    FileBooks,
    PostgresBooks,
    offered,
    person,
)
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres

from vedette.errors import StoreCorrupt
from vedette.serve.ads.catalog import AdCounts
from vedette.serve.ads.click_validity import ClickRejection, ClickRules
from vedette.serve.ads.ledger import (
    Balance,
    ClickContext,
    ClickOutcome,
    LostImpression,
    PayerBudget,
    sum_balances,
)

NO_POSTGRES = pytest.mark.skipif(find_programs() is None, reason=MISSING)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the tests of this module."""
    with run_postgres() as server:
        yield server


@pytest.fixture(params=["file", pytest.param("postgres", marks=NO_POSTGRES)])
def create_books(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Books]:
    """Return a function that creates empty ledgers of one kind."""
    if request.param == "file":
        return lambda: FileBooks(tmp_path_factory.mktemp("ledger"))
    server: Postgres = request.getfixturevalue("postgres")
    return lambda: PostgresBooks(server.create_database())


@pytest.fixture
def books(create_books: Callable[[], Books]) -> Iterator[Books]:
    """An empty ledger."""
    books = create_books()
    yield books
    books.close()


def test_a_click_turns_what_was_held_into_a_charge(books: Books) -> None:
    """A second click is free, with the reason."""
    assert [one.token for one in books.ledger.record_impressions([offered("a")], ASKED)] == ["a"]
    assert books.balance() == Balance(Decimal(0), Decimal("0.04"))
    assert books.ledger.record_click("a", person())[1:] == (None, Decimal("0.40"))
    assert books.ledger.record_click("a", person(9))[1:] == (ClickRejection.DUPLICATE, Decimal(0))
    assert books.balance() == Balance(Decimal("0.40"), Decimal(0))


def test_a_showing_that_cannot_be_paid_is_not_made(books: Books) -> None:
    """Expected costs of open impressions are on hold until released; any search releases expired ones."""
    wished = [offered(token, budget="0.10") for token in "abc"]
    assert [one.token for one in books.ledger.record_impressions(wished, ASKED)] == ["a", "b"]
    assert books.ledger.record_impressions([offered("d", budget="0.10")], ASKED) == []
    books.ledger.record_impressions([], ASKED._replace(at_s=NOW_S + 601))
    assert books.balance() == Balance()
    assert books.ledger.record_click("a", person(602)).objection is ClickRejection.LATE


def test_a_click_is_capped_at_what_is_left(books: Books) -> None:
    """Of three impressions at 0.40 with a budget of 1.00, the last click costs 0.20, and another one nothing."""
    books.ledger.record_impressions([offered(token) for token in "abcd"], ASKED)
    charged = [books.ledger.record_click(token, person(mark=token)).charged for token in "abcd"]
    assert charged == [Decimal("0.40"), Decimal("0.40"), Decimal("0.20"), Decimal(0)]
    assert books.balance() == Balance(Decimal("1.00"), Decimal(0))
    found = books.ledger.find_impression("d")
    assert found is not None
    assert found.said == ClickRejection.SPENT
    assert sum(amount for _, _, amount in books.reader.read_charges(DAY, 0.0)) == Decimal("1.00")


def test_an_advertiser_pays_no_more_than_its_budget(books: Books) -> None:
    """Over all campaigns, including deleted ones; charges of others don't count."""
    limited = PayerBudget(Decimal("5.00"), "ann", Decimal("0.60"))
    for token, payer, whose in (("a", "gone", "ann"), ("b", "spring", "ann"), ("x", "bobs", "bob")):
        wish = offered(token, payer=payer)
        books.ledger.record_impressions([wish._replace(budget=limited._replace(advertiser=whose))], ASKED)
    assert books.ledger.record_click("x", person(mark="x", budget=PayerBudget(Decimal(5), "bob"))).charged == Decimal(
        "0.40"
    )
    assert books.ledger.record_click("a", person(mark="a", budget=limited)).charged == Decimal("0.40")
    assert books.ledger.record_click("b", person(mark="b", budget=limited)).charged == Decimal("0.20")


def test_one_address_counts_for_a_few_showings_a_day(books: Books) -> None:
    """Further impressions are shown, but neither hold money nor are learned from; searches have the same limit."""
    asked = ASKED._replace(visitor="ab")
    for number in range(30):
        assert len(books.ledger.record_impressions([offered(str(number), "0.10")], asked)) == 1
    few = ClickRules().max_showings
    assert few < 30
    assert books.balance().held == few * CENTS
    reader = books.reader
    assert reader.read_counts() == {(1, "red shoes"): AdCounts(few, float(few), 0)}
    assert reader.count_queries() == {"red shoes": few}
    assert [tally.shown for tally in reader.read_tallies(DAY)] == [30]
    books.ledger.record_impressions([offered("other", "0.10")], ASKED._replace(visitor="cd"))
    assert reader.count_queries() == {"red shoes": few + 1}


def test_the_same_token_is_held_once(books: Books) -> None:
    """A second click finds it held."""
    for _ in range(3):
        assert len(books.ledger.record_impressions([offered("a")], ASKED)) == 1
    assert books.balance().held == Decimal("0.04")


@pytest.mark.parametrize(
    ("clicking", "why"),
    [
        (person(0.1), ClickRejection.TOO_FAST),
        (person(-5.0), ClickRejection.TOO_FAST),
        (person(4000.0), ClickRejection.LATE),
        (person()._replace(is_bot=True), ClickRejection.BOT),
        (person()._replace(on_target=False), ClickRejection.OFF_TARGET),
    ],
)
def test_a_bad_click_costs_nothing(books: Books, clicking: ClickContext, why: ClickRejection) -> None:
    """Its hold is released, and the reason is stored."""
    books.ledger.record_impressions([offered("a")], ASKED)
    assert books.ledger.record_click("a", clicking)[1:] == (why, Decimal(0))
    assert books.balance() == Balance()
    found = books.ledger.find_impression("a")
    assert found is not None
    assert (found.closed, found.said) == ("refused", why)


def test_an_address_that_clicks_too_often_gets_refunds(books: Books) -> None:
    """Two clicks are charged, and refunded with the third; others are not affected."""
    tokens = [f"t{number}" for number in range(5)]
    books.ledger.record_impressions([offered(token, "0.01", "9.00") for token in tokens], ASKED)
    received = [books.ledger.record_click(token, person()).objection for token in tokens[:4]]
    assert received == [None] * 2 + [ClickRejection.SAME_ADDRESS] * 2
    assert books.balance().charged == Decimal(0)
    assert [one.times for one in books.reader.read_refused_clicks(DAY)] == [4]
    assert books.ledger.record_click(tokens[4], person(mark="cd")).objection is None
    assert books.balance().charged == Decimal("0.01")


def test_one_network_cannot_use_up_a_budget(books: Books) -> None:
    """After its first click, it is charged at most a fifth of the budget, from any of its addresses."""
    books.ledger.record_impressions([offered(token, "0.15") for token in "abc"], ASKED)
    received = [books.ledger.record_click(token, person(mark=f"12345678{token}")).objection for token in "ab"]
    assert received == [None, ClickRejection.SAME_NETWORK]
    assert books.ledger.record_click("c", person(mark="cd")).objection is None


def test_an_unknown_token_is_none_of_ours(books: Books) -> None:
    """This is true whatever its content."""
    assert books.ledger.record_click("x' OR 1", person()) == ClickOutcome(None, ClickRejection.FORGED)
    books.ledger.count_refused_click(DAY, ClickRejection.FORGED)


def test_losses_are_counted(books: Books) -> None:
    """They are counted by the reason for which an ad lost."""
    lost = [LostImpression(7, "red shoes", "fall", to) for to in ("budget", "rank", "rank", "reserve")]
    books.ledger.record_impressions([offered("a", "20.00")], ASKED._replace(lost=lost))
    tallies = books.reader.read_tallies(DAY)
    assert [(one.ad, one.shown, one.lost_budget, one.lost_rank, one.lost_reserve) for one in tallies] == [
        (1, 0, 1, 0, 0),
        (7, 0, 1, 2, 1),
    ]


_STEP = st.tuples(
    st.sampled_from(["show", "show", "click", "wait"]), st.integers(0, 12), st.integers(1, 60), st.sampled_from("ab")
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(_STEP, max_size=30), budget=st.integers(1, 100))
def test_the_books_balance_at_every_moment(
    create_books: Callable[[], Books], steps: list[tuple[str, int, int, str]], budget: int
) -> None:
    """Whatever is shown, clicked, repeated and released, no charge exceeds a budget, and entries add up."""
    books, now_s = create_books(), NOW_S
    for what, number, size, payer in steps:
        if what == "show":
            wished = offered(f"{payer}{number}", str(size * CENTS), str(budget * CENTS), now_s, payer)
            books.ledger.record_impressions([wished], ASKED._replace(at_s=now_s, visitor=str(size % 3)))
        elif what == "click":
            after_s, limit = now_s + size / 10, PayerBudget(budget * CENTS, "ann", (budget + 3) * CENTS)
            clicking = ClickContext(after_s, str(size), is_bot=False, on_target=True, budget=limit)
            books.ledger.record_click(f"{payer}{number}", clicking)
        else:
            now_s += 120.0 * size
            books.ledger.record_impressions([], ASKED._replace(at_s=now_s))
        added = sum_balances(books.load_entries())
        for found in added.values():
            assert found.charged >= 0
            assert found.held >= 0
            assert found.charged <= budget * CENTS
        assert sum(found.charged for found in added.values()) <= (budget + 3) * CENTS
    books.close()


def test_sixteen_on_the_last_cent(books: Books) -> None:
    """With concurrent connections, charges add up to exactly the budget."""
    gate = Barrier(16)
    charged: list[Decimal] = []

    def click(number: int) -> None:
        with books.open_another() as ledger:
            gate.wait()
            for turn in range(3):
                token = f"{number}-{turn}"
                shown = ledger.record_impressions([offered(token, "0.01", "0.05")], ASKED)
                clicking = person(mark=token, budget=PayerBudget(Decimal("0.05")))
                charged.extend(ledger.record_click(one.token, clicking).charged for one in shown)

    threads = [Thread(target=click, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(charged) == Decimal("0.05")
    assert books.balance() == Balance(Decimal("0.05"), Decimal(0))


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE entry SET amount = '0.01'",
        "DELETE FROM entry",
        "INSERT INTO entry SELECT 9, kind, token, payer, day, amount, at_s, reason FROM entry",
    ],
)
def test_entries_are_only_added(books: Books, sql: str) -> None:
    """The database itself refuses anything else."""
    books.ledger.record_impressions([offered("a")], ASKED)
    with pytest.raises(books.refusals):
        books.execute(sql)


def test_books_that_do_not_balance_are_not_opened(books: Books) -> None:
    """The error names payer and day."""
    books.ledger.record_impressions([offered("a")], ASKED)
    books.execute("UPDATE balance SET charged = '0.39'")
    with pytest.raises(StoreCorrupt, match="spring on 2027-01-15"), books.open_another():
        pass


def test_days_are_apart(books: Books) -> None:
    """A click after midnight is charged to the day of its impression."""
    before = offered("a")
    after = offered("b")._replace(impression=before.impression._replace(token="b", day=DAY + timedelta(days=1)))  # noqa: S106 - no secret
    assert len(books.ledger.record_impressions([before, after], ASKED)) == 2
    books.ledger.record_click("a", person())
    assert books.balance() == Balance(Decimal("0.40"), Decimal(0))
