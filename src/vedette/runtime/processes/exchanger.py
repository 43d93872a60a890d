"""Exchanger process of a shard: carry links and turns between the shard's coordinator and the cluster's mailbox.

A step asks the coordinator to apply what was received in the step before, and writes to PostgreSQL what the coordinator
replied, in fenced transactions. Whatever fails in between is repeated, and has no effect the second time. While
PostgreSQL is away, links wait in the outbox, and no turn changes hands.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from vedette.adapters.crawl_store.request_budget import Key
from vedette.adapters.crawl_store.status_file import read_status
from vedette.adapters.exchange.daily_limit import (
    SharedRequestBudget,
    drop_old_days,
    find_day,
    reserve_requests,
    return_requests,
)
from vedette.adapters.exchange.link_store import OutboxRow, read_outbox
from vedette.adapters.exchange.mailbox import (
    Batch,
    acknowledge_links,
    claim_addresses,
    drop_old_links,
    fetch_links,
    free_addresses,
    list_contested,
    reopen_links,
    send_links,
)
from vedette.adapters.net.ipc import ChannelClosed, Request
from vedette.adapters.registry.command_log import (
    REPEAT_S,
    CommandReply,
    LoggedCommand,
    find_reply,
    list_commands,
    log_reply,
)
from vedette.adapters.registry.database import LeaseLost, explain_database, fence, open_connection
from vedette.adapters.registry.fetch_budget import draw_pages, load_price, move_price, report_spending
from vedette.adapters.registry.registry import list_sites, load_shards, save_numbers
from vedette.engine.scheduling.cluster_budget import ShardSpending
from vedette.engine.scheduling.price_controller import CommonPrice
from vedette.errors import ClusterError
from vedette.runtime.cluster.lease import ShardSettings
from vedette.runtime.cluster.rank_carrier import RankCarrier
from vedette.runtime.processes.loop import StepLoop, print_error
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.processes.supervisor import ask_coordinator

if TYPE_CHECKING:
    import psycopg

EXCHANGE_EVERY_S = 0.25
RETRY_EVERY_S = 1.0
NUMBERS_EVERY_S = 1.0
MAX_ROWS = 200
ACTOR = "the cluster"
# For the status of the cluster, and the overview of all shards.
SHOWN_NUMBERS = (
    "pages",
    "pages_per_s",
    "urls_known",
    "urls_waiting",
    "urls_out",
    "hosts",
    "hosts_waiting",
    "hosts_in_trouble",
    "statuses",
    "failures",
    "refusals",
    "requests",
    "trouble",
)


class Exchanger:
    """The exchanger of one shard."""

    def __init__(self, settings: RuntimeSettings, shard: ShardSettings) -> None:
        self._settings, self._shard = settings, shard
        self._connection: psycopg.Connection[Any] | None = None
        self._db: sqlite3.Connection | None = None
        self._limit: SharedRequestBudget | None = None
        self._day = 0
        self._ranks = RankCarrier(settings, shard)
        self._sent = (0, 0)
        self._batches: list[Batch] = []
        self._granted: list[tuple[str, float]] = []
        self._contested: list[str] = []
        self._shards = shard.shards
        self._price: CommonPrice | None = None
        self._drawn, self._has_spare = 0.0, False
        self._is_lacking = self._is_urgent = True
        self._spending = ShardSpending()
        self._last_site = 0
        self._is_reopened = self._has_repeated = False
        self._is_waiting = True
        self._trouble = ""
        self._numbers_s = 0.0

    def step(self) -> bool:
        """Exchange once; return whether more links wait."""
        try:
            with explain_database(self._shard.dsn):
                return self._exchange()
        except (OSError, ChannelClosed):
            return False  # the coordinator is starting or stopping
        except LeaseLost:
            return False  # the node is about to stop this tree
        except ClusterError as error:
            self._disconnect()
            if self._trouble != str(error):
                print_error(f"shard {self._shard.number}: {error}")
            self._trouble = str(error)
            time.sleep(RETRY_EVERY_S)  # nothing signals that PostgreSQL is back
            return False

    def close(self) -> None:
        """Close the connections of the exchanger."""
        self._disconnect()
        for each in (self._db, self._limit):
            if each is not None:
                each.close()

    def _exchange(self) -> bool:
        # Only once, also if the coordinator does not reply: what is drawn and not used counts as spent.
        drawn, self._drawn = self._drawn, 0.0
        arguments = {
            "sent": self._sent,
            "batches": self._batches,
            "granted": self._granted,
            "contested": self._contested,
            "price": self._price,
            "drawn": (drawn, self._has_spare),
            "shards": None if self._shards == self._shard.shards else (self._shards.firsts, self._shards.numbers),
        }
        reply: dict[str, Any] = ask_coordinator(self._settings.folder, Request("exchange", arguments))
        # Granted once: after the coordinator has freed an address, it must not get the same grant again.
        self._granted = []
        self._spending += ShardSpending(*reply["spending"])
        if self._connection is None:
            self._connection = open_connection(self._shard.dsn)
        self._draw(reply["budget_per_s"])
        rows, limit = self._read_outbox(), self._open_limit()
        unused = limit.take_unused(reply["ended"])
        day = find_day(self._settings.clock.now())
        # Each of these locks rows of its own kind, in order: two shards never wait for each other.
        with self._fenced() as connection:
            self._batches = self._write(connection, rows, reply)
        if unused:
            with self._fenced() as connection:
                return_requests(connection, day, unused)
        with self._fenced() as connection:
            self._contested = list_contested(connection, self._shard.number, self._shard.epoch)
            granted = self._claim(connection, reply["wanted"])
        if keys := self._list_unreserved(limit, reply["domains"], granted):
            with self._fenced() as connection:
                reserved = reserve_requests(connection, day, keys, self._settings.config.crawl.daily_limit)
            limit.add_reserved(reserved, day)
        self._granted = granted
        if rows:
            self._sent = rows[-1].epoch, rows[-1].sequence
        self._trouble = ""
        if time.monotonic() - self._numbers_s >= NUMBERS_EVERY_S:
            self._numbers_s = time.monotonic()
            self._share_budget(day, reply)
        self._apply_sites(self._connection)
        self._apply_commands(self._connection)
        self._ranks.step(self._connection)
        # Turns and pages that hosts wait for reach the coordinator at once, but not in an endless loop.
        self._is_urgent = not self._is_urgent and bool(granted or self._drawn >= 1.0)
        return self._is_urgent or len(rows) == MAX_ROWS or len(self._batches) == MAX_ROWS

    @contextmanager
    def _fenced(self) -> "Iterator[psycopg.Connection[Any]]":
        """Begin a transaction in which only the owner of the shard can write."""
        assert self._connection is not None, "connected"
        with self._connection.transaction():
            fence(self._connection, self._shard.number, self._shard.epoch)
            yield self._connection

    def _write(
        self, connection: "psycopg.Connection[Any]", rows: list[OutboxRow], reply: dict[str, Any]
    ) -> list[Batch]:
        """Write a step's links to PostgreSQL, free addresses, and return links for the next step."""
        number, epoch = self._shard.number, self._shard.epoch
        if not self._is_reopened:
            reopen_links(connection, number, {int(source): (at[0], at[1]) for source, at in reply["positions"].items()})
        send_links(connection, number, rows)
        acknowledge_links(connection, number, self._batches)
        if self._batches and not self._shard.storage:
            drop_old_links(connection, number)
        if reply["ended"]:
            free_addresses(connection, number, epoch, reply["ended"], self._address_delay_s)
        batches = fetch_links(connection, number, MAX_ROWS)
        self._is_reopened = True
        return batches

    def _claim(self, connection: "psycopg.Connection[Any]", wanted: list[str]) -> list[tuple[str, float]]:
        """Claim the addresses that hosts of this shard wait for; return those that it got."""
        if not wanted and not self._is_waiting:
            return []
        self._is_waiting = bool(wanted)
        return claim_addresses(connection, self._shard.number, self._shard.epoch, wanted, self._address_delay_s)

    @property
    def _address_delay_s(self) -> float:
        return self._settings.clock.to_wall_s(self._settings.config.crawl.address_delay_s)

    def _list_unreserved(
        self, limit: SharedRequestBudget, domains: list[str], granted: list[tuple[str, float]]
    ) -> list[Key]:
        """List what the fetchers lack requests for, or will lack them for at these addresses."""
        keys = [*limit.list_wanted(), *limit.list_unknown([("domain", name) for name in domains])]
        return [*keys, *(("address", address) for address, _ in granted)]

    def _draw(self, budget_per_s: float) -> None:
        """Draw the pages that the shard lacks, and give back what it does not use."""
        lacking = self._spending.lacking
        if budget_per_s > 0 and (lacking or self._is_lacking):
            with self._fenced() as connection:
                self._drawn, self._has_spare = draw_pages(
                    connection, self._shard.number, lacking, budget_per_s, self._settings.clock.speed
                )
            self._is_lacking = lacking > 0
        self._spending = self._spending._replace(lacking=0.0)

    def _share_budget(self, day: int, reply: dict[str, Any]) -> None:
        """Report what was spent, and what the status of the cluster shows; follow the price and the shards."""
        number = self._shard.number
        numbers = read_status(self._settings.folder).numbers
        with self._fenced() as connection:
            report_spending(connection, number, self._spending)
            save_numbers(connection, number, {name: numbers[name] for name in SHOWN_NUMBERS if name in numbers})
        self._spending = ShardSpending()
        with self._fenced() as connection:
            move_price(connection, reply["policy"], reply["budget_per_s"], self._settings.clock.speed)
        with self._fenced() as connection:
            self._price, self._shards = load_price(connection), load_shards(connection)
            if day != self._day:
                drop_old_days(connection, day)
        self._day = day

    def _open_limit(self) -> SharedRequestBudget:
        if self._limit is None:
            self._limit = SharedRequestBudget(self._settings.folder, self._settings.config.crawl.daily_limit)
        return self._limit

    def _read_outbox(self) -> list[OutboxRow]:
        return read_outbox(self._open_state(), self._sent, MAX_ROWS)

    def _open_state(self) -> sqlite3.Connection:
        if self._db is None:
            uri = f"{(self._settings.folder / 'state.db').resolve().as_uri()}?mode=ro"
            self._db = sqlite3.connect(uri, uri=True, isolation_level=None)
        return self._db

    def _apply_sites(self, connection: "psycopg.Connection[Any]") -> None:
        """Add the sites that were added to the cluster; one that the shard has already is refused, and stays."""
        with connection.transaction():
            sites = list_sites(connection, self._last_site)
        for number, command in sites:
            order = Request("order", {"order": command, "who": ACTOR}, f"cluster site {number}")
            ask_coordinator(self._settings.folder, order)
            self._last_site = number

    def _apply_commands(self, connection: "psycopg.Connection[Any]") -> None:
        """Execute the commands that this shard has not replied to, and log what came of them."""
        with connection.transaction():
            commands = list_commands(connection, self._shard.number, 0.0 if self._has_repeated else REPEAT_S)
        for logged in commands:
            reply = self._execute(connection, logged)
            with connection.transaction():
                fence(connection, self._shard.number, self._shard.epoch)
                log_reply(connection, logged.number, reply)
        self._has_repeated = True

    def _execute(self, connection: "psycopg.Connection[Any]", logged: LoggedCommand) -> CommandReply:
        """Have the coordinator execute a command, once; one that undoes another undoes the action that it was here."""
        number, command = self._shard.number, logged.command
        if command.get("order") == "undo":
            with connection.transaction():
                before = find_reply(connection, logged.undoes, number)
            # A state that was restored may lack the action, and have another one by its number.
            if before is None or not before.action or self._find_action(before.action)[0] != before.words:
                return CommandReply(number, f"action {logged.undoes} cannot be undone here", is_error=True)
            command = {**command, "action": before.action}
        order = Request("order", {"order": command, "who": logged.actor}, f"cluster command {logged.number}")
        told = ask_coordinator(self._settings.folder, order)
        action = int(str(told.get("action", 0)))
        can_be_undone = action > 0 and self._find_action(action)[1]
        words = str(told.get("done", told.get("error", "")))
        return CommandReply(number, words, "error" in told, action if can_be_undone else 0)

    def _find_action(self, action: int) -> tuple[str, bool]:
        """Find an action in the shard's log: what it was, and whether there are commands that undo it."""
        row = self._open_state().execute("SELECT what, undo FROM action WHERE id = ?", (action,)).fetchone()
        return (str(row[0]), row[1] not in {None, "[]"}) if row else ("", False)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
        self._connection = None


def run_exchanger(settings: RuntimeSettings) -> int:
    """Run the exchanger process until SIGTERM."""
    assert settings.shard is not None, "only a shard exchanges"
    loop = StepLoop(EXCHANGE_EVERY_S)
    loop.wait_for_folder(settings.folder)
    with closing(Exchanger(settings, settings.shard)) as exchanger:
        loop.run(exchanger.step)
    return 0
