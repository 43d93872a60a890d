"""The ledger: never above a budget, each click charged once or not at all, whatever process is killed."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.ads.ledger_store import LEDGER_FILE, LEDGER_NAME, LedgerStore, load_entries
from vedette.errors import StoreCorrupt, StoreNewer
from vedette.serve.ads.catalog import AdCounts
from vedette.serve.ads.click_validity import ClickRejection, ClickRules
from vedette.serve.ads.ledger import (
    AdImpression,
    AdQuery,
    Balance,
    ClickContext,
    ClickOutcome,
    ImpressionOffer,
    LostImpression,
    PayerBudget,
    sum_balances,
)

NOW_S = 1_800_000_000.0
DAY = date(2027, 1, 15)
ASKED = AdQuery(NOW_S, DAY, 8, "", ("red shoes",))
CENTS = Decimal("0.01")
ONE = PayerBudget(Decimal("1.00"), "ann")
GOLDEN = Path(__file__).parents[2] / "golden"


def offered(
    token: str, price: str = "0.40", budget: str = "1.00", at_s: float = NOW_S, payer: str = "spring"
) -> ImpressionOffer:
    """A showing that is wished for, and expected to be clicked every tenth time."""
    reason = "believed: because"
    showing = AdImpression(token, at_s, DAY, payer, 1, "red shoes", 0, 2.5, 1.0, Decimal(price), reason)
    return ImpressionOffer(showing, PayerBudget(Decimal(budget), "ann"), 1.0, 0.1)


def person(after_s: float = 5.0, mark: str = "ab", budget: PayerBudget = ONE) -> ClickContext:
    """Someone clicks."""
    return ClickContext(NOW_S + after_s, mark, is_bot=False, on_target=True, budget=budget)


def balance(folder: Path, payer: str = "spring") -> Balance:
    """By the entries alone, which a new ledger agrees with."""
    LedgerStore(folder).close()
    with LEDGER_FILE.read(folder) as db:
        assert db is not None
        entries = list(load_entries(db))
    return sum_balances(entries).get((payer, DAY), Balance())


@pytest.fixture
def book(tmp_path: Path) -> Iterator[LedgerStore]:
    """An empty one."""
    with closing(LedgerStore(tmp_path)) as book:
        yield book


def test_a_click_turns_what_was_held_into_a_charge(book: LedgerStore, tmp_path: Path) -> None:
    """And a second one costs nothing, with the reason."""
    assert [one.token for one in book.record_impressions([offered("a")], ASKED)] == ["a"]
    assert balance(tmp_path) == Balance(Decimal(0), Decimal("0.04"))
    assert book.record_click("a", person())[1:] == (None, Decimal("0.40"))
    assert book.record_click("a", person(9))[1:] == (ClickRejection.DUPLICATE, Decimal(0))
    assert balance(tmp_path) == Balance(Decimal("0.40"), Decimal(0))


def test_a_showing_that_cannot_be_paid_is_not_made(book: LedgerStore, tmp_path: Path) -> None:
    """Expected costs of open impressions are held until released; any search releases expired ones."""
    wished = [offered(token, budget="0.10") for token in "abc"]
    assert [one.token for one in book.record_impressions(wished, ASKED)] == ["a", "b"]
    assert book.record_impressions([offered("d", budget="0.10")], ASKED) == []
    book.record_impressions([], ASKED._replace(at_s=NOW_S + 601))
    assert balance(tmp_path) == Balance()
    assert book.record_click("a", person(602)).objection is ClickRejection.LATE


def test_a_click_is_capped_at_what_is_left(book: LedgerStore, tmp_path: Path) -> None:
    """Of three showings at 0.40 with a budget of 1.00, the last click costs 0.20, and one more nothing."""
    book.record_impressions([offered(token) for token in "abcd"], ASKED)
    charged = [book.record_click(token, person(mark=token)).charged for token in "abcd"]
    assert charged == [Decimal("0.40"), Decimal("0.40"), Decimal("0.20"), Decimal(0)]
    assert balance(tmp_path) == Balance(Decimal("1.00"), Decimal(0))
    found = book.find_impression("d")
    assert found is not None
    assert found.said == ClickRejection.SPENT
    assert sum(amount for _, _, amount in LedgerReader(tmp_path).read_charges(DAY, 0.0)) == Decimal("1.00")


def test_an_advertiser_pays_no_more_than_its_budget(book: LedgerStore) -> None:
    """Over all campaigns, also those that are gone by now; others' charges do not count."""
    limited = PayerBudget(Decimal("5.00"), "ann", Decimal("0.60"))
    for token, payer, whose in (("a", "gone", "ann"), ("b", "spring", "ann"), ("x", "bobs", "bob")):
        wish = offered(token, payer=payer)
        book.record_impressions([wish._replace(budget=limited._replace(advertiser=whose))], ASKED)
    assert book.record_click("x", person(mark="x", budget=PayerBudget(Decimal(5), "bob"))).charged == Decimal("0.40")
    assert book.record_click("a", person(mark="a", budget=limited)).charged == Decimal("0.40")
    assert book.record_click("b", person(mark="b", budget=limited)).charged == Decimal("0.20")


def test_one_address_counts_for_a_few_showings_a_day(book: LedgerStore, tmp_path: Path) -> None:
    """More are shown, and neither hold money nor are learned from; the searches are counted as far, too."""
    asked = ASKED._replace(visitor="ab")
    for number in range(30):
        assert len(book.record_impressions([offered(str(number), "0.10")], asked)) == 1
    few = ClickRules().max_showings
    assert few < 30
    assert balance(tmp_path).held == few * CENTS
    reader = LedgerReader(tmp_path)
    assert reader.read_counts() == {(1, "red shoes"): AdCounts(few, float(few), 0)}
    assert reader.count_queries() == {"red shoes": few}
    assert [tally.shown for tally in reader.read_tallies(DAY)] == [30]
    book.record_impressions([offered("other", "0.10")], ASKED._replace(visitor="cd"))
    assert reader.count_queries() == {"red shoes": few + 1}


def test_a_kept_ledger_is_brought_up_to_date(tmp_path: Path) -> None:
    """One of version 1, which held whole prices: by a reader as by a writer, its books balance and nothing is lost."""
    shutil.copy(GOLDEN / "ledger-1" / LEDGER_NAME, tmp_path)
    reader = LedgerReader(tmp_path)
    assert reader.read_counts() == {
        (1, "red shoes"): AdCounts(4, 4.0, 1),
        (2, "red shoes"): AdCounts(1, 0.55, 0),
        (3, "red shoes"): AdCounts(0, 0.0, 0),
    }
    assert reader.count_queries() == {"red shoes": 3}
    assert balance(tmp_path) == Balance(Decimal("0.40"), Decimal("0.40"))
    assert reader.read_charges(DAY, 0.0) == [(NOW_S, "spring", Decimal("0.40"))]
    with closing(LedgerStore(tmp_path)) as book:
        # What is open holds its whole price, and lets it go with the click.
        assert book.record_click("d", person(9, "cd")).charged == Decimal("0.40")
        assert balance(tmp_path) == Balance(Decimal("0.80"), Decimal(0))
        book.record_impressions([], ASKED._replace(at_s=NOW_S + 601))
    assert balance(tmp_path, "fall") == Balance()


def test_a_ledger_without_refunds_is_brought_up_to_date(tmp_path: Path) -> None:
    """One of version 2, which knew no refunds: its books balance, and clicks are charged as before."""
    shutil.copy(GOLDEN / "ledger-2" / LEDGER_NAME, tmp_path)
    assert balance(tmp_path) == Balance(Decimal("0.80"), Decimal("0.08"))
    with closing(LedgerStore(tmp_path)) as book:
        assert book.record_click("d", person(9, "ef")).charged == Decimal("0.20")
    assert balance(tmp_path) == Balance(Decimal("1.00"), Decimal("0.04"))


def test_the_same_token_is_held_once(book: LedgerStore, tmp_path: Path) -> None:
    """A second click finds it held."""
    for _ in range(3):
        assert len(book.record_impressions([offered("a")], ASKED)) == 1
    assert balance(tmp_path).held == Decimal("0.04")


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
def test_a_bad_click_costs_nothing(
    book: LedgerStore, tmp_path: Path, clicking: ClickContext, why: ClickRejection
) -> None:
    """What was held for it is free again, and the reason is kept."""
    book.record_impressions([offered("a")], ASKED)
    assert book.record_click("a", clicking)[1:] == (why, Decimal(0))
    assert balance(tmp_path) == Balance()
    found = book.find_impression("a")
    assert found is not None
    assert (found.closed, found.said) == ("refused", why)


def test_an_address_that_clicks_too_often_gets_refunds(book: LedgerStore, tmp_path: Path) -> None:
    """Two clicks are charged, and refunded with the third; others go on."""
    tokens = [f"t{number}" for number in range(5)]
    book.record_impressions([offered(token, "0.01", "9.00") for token in tokens], ASKED)
    came = [book.record_click(token, person()).objection for token in tokens[:4]]
    assert came == [None] * 2 + [ClickRejection.SAME_ADDRESS] * 2
    assert balance(tmp_path).charged == Decimal(0)
    assert [one.times for one in LedgerReader(tmp_path).read_refused_clicks(DAY)] == [4]
    assert book.record_click(tokens[4], person(mark="cd")).objection is None
    assert balance(tmp_path).charged == Decimal("0.01")


def test_one_address_cannot_use_up_a_budget(book: LedgerStore) -> None:
    """After its first click it is charged for a fifth of the budget at most."""
    book.record_impressions([offered(token, "0.15") for token in "abc"], ASKED)
    came = [book.record_click(token, person()).objection for token in "ab"]
    assert came == [None, ClickRejection.SAME_ADDRESS]
    assert book.record_click("c", person(mark="cd")).objection is None


def test_an_unknown_token_is_none_of_ours(book: LedgerStore) -> None:
    """Whatever it says."""
    assert book.record_click("x' OR 1", person()) == ClickOutcome(None, ClickRejection.FORGED)
    book.count_refused_click(DAY, ClickRejection.FORGED)


def test_losses_are_counted(book: LedgerStore, tmp_path: Path) -> None:
    """By what an ad lost to."""
    lost = [LostImpression(7, "red shoes", "fall", to) for to in ("budget", "rank", "rank", "reserve")]
    book.record_impressions([offered("a", "20.00")], ASKED._replace(lost=lost))
    with LEDGER_FILE.read(tmp_path) as db:
        assert db is not None
        sql = "SELECT ad, shown, lost_budget, lost_rank, lost_reserve FROM tally ORDER BY ad"
        assert db.execute(sql).fetchall() == [(1, 0, 1, 0, 0), (7, 0, 1, 2, 1)]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE entry SET amount = '0.01'",
        "DELETE FROM entry",
        "INSERT INTO entry SELECT 9, kind, token, payer, day, amount, at_s, reason FROM entry",
    ],
)
def test_entries_are_only_added(book: LedgerStore, tmp_path: Path, sql: str) -> None:
    """The file itself refuses anything else."""
    book.record_impressions([offered("a")], ASKED)
    with closing(LEDGER_FILE.open(tmp_path)) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(sql)


def test_books_that_do_not_balance_are_not_opened(book: LedgerStore, tmp_path: Path) -> None:
    """It names payer and day; a newer file is refused untouched, and an unreadable one is reported."""
    book.record_impressions([offered("a")], ASKED)
    with closing(LEDGER_FILE.open(tmp_path)) as db:
        db.execute("UPDATE balance SET charged = '0.39'")
    with pytest.raises(StoreCorrupt, match="spring on 2027-01-15"):
        LedgerStore(tmp_path)
    with closing(LEDGER_FILE.open(tmp_path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreNewer):
        LedgerStore(tmp_path)
    book.close()
    (tmp_path / LEDGER_NAME).write_bytes(b"no ledger" * 1000)
    for end in ("-wal", "-shm"):
        (tmp_path / f"{LEDGER_NAME}{end}").unlink(missing_ok=True)
    with pytest.raises(StoreCorrupt):
        LedgerStore(tmp_path)


_STEP = st.tuples(
    st.sampled_from(["show", "show", "click", "wait"]), st.integers(0, 12), st.integers(1, 60), st.sampled_from("ab")
)


@settings(max_examples=20)
@given(steps=st.lists(_STEP, max_size=30), budget=st.integers(1, 100))
def test_the_books_balance_at_every_moment(steps: list[tuple[str, int, int, str]], budget: int) -> None:
    """Whatever is shown, clicked, repeated and let go: no charge exceeds a budget, and entries add up."""
    with TemporaryDirectory() as name:
        folder, now_s = Path(name), NOW_S
        with closing(LedgerStore(folder)) as book:
            for what, number, size, payer in steps:
                if what == "show":
                    wished = offered(f"{payer}{number}", str(size * CENTS), str(budget * CENTS), now_s, payer)
                    book.record_impressions([wished], ASKED._replace(at_s=now_s, visitor=str(size % 3)))
                elif what == "click":
                    after_s, limit = now_s + size / 10, PayerBudget(budget * CENTS, "ann", (budget + 3) * CENTS)
                    clicking = ClickContext(after_s, str(size), is_bot=False, on_target=True, budget=limit)
                    book.record_click(f"{payer}{number}", clicking)
                else:
                    now_s += 120.0 * size
                    book.record_impressions([], ASKED._replace(at_s=now_s))
                with LEDGER_FILE.read(folder) as db:
                    assert db is not None
                    added = sum_balances(load_entries(db))
                for found in added.values():
                    assert found.charged >= 0
                    assert found.held >= 0
                    assert found.charged <= budget * CENTS
                assert sum(found.charged for found in added.values()) <= (budget + 3) * CENTS
        LedgerStore(folder).close()


CLICK = """
import os, signal, sys
from pathlib import Path
from decimal import Decimal
from vedette.adapters.ads.ledger_store import LedgerStore
from vedette.serve.ads.ledger import ClickContext, PayerBudget

store, left = LedgerStore(Path(sys.argv[1])), int(sys.argv[2])

def stop(statement):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

store._db.set_trace_callback(stop)
budget = PayerBudget(Decimal("1.00"))
store.record_click("a", ClickContext(float(sys.argv[3]), "ab", is_bot=False, on_target=True, budget=budget))
store._db.set_trace_callback(None)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kill_9_between_click_and_charge(tmp_path: Path) -> None:
    """At every statement: charged once or not at all; and once in the end, however often the click comes again."""
    seen = []
    for left in range(0, 20, 2):
        folder = tmp_path / str(left)
        folder.mkdir()
        with closing(LedgerStore(folder)) as book:
            book.record_impressions([offered("a"), offered("b")], ASKED)
        command = [sys.executable, "-c", CLICK, str(folder), str(left), str(NOW_S + 5)]
        assert subprocess.run(command, timeout=300, check=False).returncode == -9
        seen.append(balance(folder).charged)
        with closing(LedgerStore(folder)) as book:
            for _ in range(2):
                book.record_click("a", person(9))
        assert balance(folder) == Balance(Decimal("0.40"), Decimal("0.04"))
    assert set(seen) == {Decimal("0.00"), Decimal("0.40")}


def test_sixteen_on_the_last_cent(tmp_path: Path) -> None:
    """Each with its own connection, all at once: charges add up to exactly the budget."""
    LedgerStore(tmp_path).close()
    gate = Barrier(16)
    charged: list[Decimal] = []

    def client(number: int) -> None:
        with closing(LedgerStore(tmp_path)) as book:
            gate.wait()
            for turn in range(3):
                token = f"{number}-{turn}"
                shown = book.record_impressions([offered(token, "0.01", "0.05")], ASKED)
                clicking = person(mark=token, budget=PayerBudget(Decimal("0.05")))
                charged.extend(book.record_click(one.token, clicking).charged for one in shown)

    threads = [Thread(target=client, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(charged) == Decimal("0.05")
    assert balance(tmp_path) == Balance(Decimal("0.05"), Decimal(0))


def test_days_are_apart(book: LedgerStore, tmp_path: Path) -> None:
    """A click after midnight is charged to the day on which its ad was shown."""
    before = offered("a")
    after = offered("b")._replace(impression=before.impression._replace(token="b", day=DAY + timedelta(days=1)))  # noqa: S106 - no secret
    assert len(book.record_impressions([before, after], ASKED)) == 2
    book.record_click("a", person())
    assert balance(tmp_path) == Balance(Decimal("0.40"), Decimal(0))


CLICKERS = """
import os, signal, sys
from decimal import Decimal
from pathlib import Path
from threading import Lock, Thread
from vedette.adapters.ads.ledger_store import LedgerStore
from vedette.serve.ads.ledger import ClickContext, PayerBudget

folder, first, left, at_s = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
budget, lock = PayerBudget(Decimal("1.00")), Lock()

def click(number):
    global left
    store = LedgerStore(folder)
    for token in range(64):
        mark = f"{number} {token}"
        store.record_click(str((token + number * 4) % 64), ClickContext(at_s, mark, False, True, budget))
        with lock:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

threads = [Thread(target=click, args=(first + number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_sixteen_clickers_are_killed_and_no_budget_is_exceeded(tmp_path: Path) -> None:
    """Four processes of four clickers each, killed one after the other: the books balance, and end at the budget."""
    with closing(LedgerStore(tmp_path)) as book:
        wished = [offered(str(number), "0.07") for number in range(64)]
        for one in wished:
            book.record_impressions([one._replace(rate=0.01)], ASKED)
    commands = [
        [sys.executable, "-c", CLICKERS, str(tmp_path), str(4 * number), str(3 + 5 * number), str(NOW_S + 5)]
        for number in range(4)
    ]
    running = [subprocess.Popen(command) for command in commands]
    assert [process.wait(timeout=300) for process in running] == [-9] * 4
    assert balance(tmp_path).charged <= Decimal("1.00")
    with closing(LedgerStore(tmp_path)) as book:
        for number in range(64):
            book.record_click(str(number), person(9, f"late {number}"))
    # 14 clicks at 0.07 and one at 0.02, from any sender.
    assert balance(tmp_path) == Balance(Decimal("1.00"), Decimal(0))
