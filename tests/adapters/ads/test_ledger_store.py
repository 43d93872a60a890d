"""The ledger in a file: older versions, damaged or lost files, and killed processes."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from tests.adapters.ads.ledgers import ASKED, DAY, NOW_S, balance, offered, person
from tests.tree_runs import PATIENCE_S

from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.ads.ledger_store import LEDGER_FILE, LEDGER_NAME, LedgerStore
from vedette.errors import StoreCorrupt, StoreNewer
from vedette.serve.ads.catalog import AdCounts
from vedette.serve.ads.ledger import Balance

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def book(tmp_path: Path) -> Iterator[LedgerStore]:
    """An empty ledger."""
    with closing(LedgerStore(tmp_path)) as book:
        yield book


def test_a_kept_ledger_is_brought_up_to_date(tmp_path: Path) -> None:
    """A ledger of version 1, which held full prices, balances for readers and writers."""
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
    """A ledger of version 2, without refunds, balances, and clicks are charged as before."""
    shutil.copy(GOLDEN / "ledger-2" / LEDGER_NAME, tmp_path)
    assert balance(tmp_path) == Balance(Decimal("0.80"), Decimal("0.08"))
    with closing(LedgerStore(tmp_path)) as book:
        assert book.record_click("d", person(9, "ef")).charged == Decimal("0.20")
    assert balance(tmp_path) == Balance(Decimal("1.00"), Decimal("0.04"))


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_lost_ledger_is_not_replaced_by_an_empty_one(tmp_path: Path, is_missing: bool) -> None:  # noqa: FBT001 - both kinds
    """Writers and readers refuse to open it; the operator may decide to start a new one."""
    LedgerStore(tmp_path).close()
    (tmp_path / LEDGER_NAME).unlink() if is_missing else (tmp_path / LEDGER_NAME).write_bytes(b"")
    for _ in range(2):
        with pytest.raises(StoreCorrupt, match="missing or empty: restore a backup"):
            LedgerStore(tmp_path)
        with pytest.raises(StoreCorrupt, match="restore a backup"):
            LedgerReader(tmp_path).read_latest(1)
    (tmp_path / f"{LEDGER_NAME}-created").unlink()
    LedgerStore(tmp_path).close()


def test_a_newer_or_damaged_file_is_left_alone(book: LedgerStore, tmp_path: Path) -> None:
    """A newer file is left untouched, and an unreadable one is reported."""
    book.record_impressions([offered("a")], ASKED)
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
    """A kill at any statement charges a click at most once, and repeating the click charges it exactly once."""
    seen = []
    for left in range(0, 20, 2):
        folder = tmp_path / str(left)
        folder.mkdir()
        with closing(LedgerStore(folder)) as book:
            book.record_impressions([offered("a"), offered("b")], ASKED)
        command = [sys.executable, "-c", CLICK, str(folder), str(left), str(NOW_S + 5)]
        assert subprocess.run(command, timeout=PATIENCE_S, check=False).returncode == -9
        seen.append(balance(folder).charged)
        with closing(LedgerStore(folder)) as book:
            for _ in range(2):
                book.record_click("a", person(9))
        assert balance(folder) == Balance(Decimal("0.40"), Decimal("0.04"))
    assert set(seen) == {Decimal("0.00"), Decimal("0.40")}


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
    """Four processes with four clickers each are killed one after another.

    The ledger balances, and ends at the budget.
    """
    with closing(LedgerStore(tmp_path)) as book:
        wished = [offered(str(number), "0.07") for number in range(64)]
        for one in wished:
            book.record_impressions([one._replace(rate=0.01)], ASKED)
    commands = [
        [sys.executable, "-c", CLICKERS, str(tmp_path), str(4 * number), str(3 + 5 * number), str(NOW_S + 5)]
        for number in range(4)
    ]
    running = [subprocess.Popen(command) for command in commands]
    assert [process.wait(timeout=PATIENCE_S) for process in running] == [-9] * 4
    assert balance(tmp_path).charged <= Decimal("1.00")
    with closing(LedgerStore(tmp_path)) as book:
        for number in range(64):
            book.record_click(str(number), person(9, f"late {number}"))
    # 14 clicks at 0.07 and one at 0.02, from any sender.
    assert balance(tmp_path) == Balance(Decimal("1.00"), Decimal(0))
