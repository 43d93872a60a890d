"""Carrying out what an operator orders: the same whether a running keeper does it or the command line.

An order is checked as a whole before anything is written. What was done is written into the state's log of actions,
together with the orders that take it back, where it can be taken back; taking it back is an action like any other.
"""

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.operator_store import Action
from vedette.errors import UsageError
from vedette.runtime.commands.ads_commands import execute_ad_command
from vedette.runtime.commands.alert_commands import AlertCommand, execute_alert_command
from vedette.runtime.commands.search_commands import SearchCommand, execute_search_command
from vedette.runtime.commands.setting_commands import execute_setting_command
from vedette.runtime.commands.site_commands import SiteCommand, execute_site_command
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import (
    CloseSession,
    Command,
    CommandResult,
    Dismiss,
    FetchNow,
    Offer,
    OpenSession,
    ReplaceToken,
    SetMachine,
    Undo,
    command_from_json,
    command_to_json,
)


def execute_command(order: Command | AdCommand, state: State, now_s: float, who: str) -> CommandResult:
    """Write it into the state, as one change that the caller commits."""
    if not state.db.in_transaction:
        state.db.execute("BEGIN IMMEDIATE")
    if isinstance(order, OpenSession | CloseSession):
        return _apply_session(order, state, now_s, who)
    if isinstance(order, Undo):
        words, inverse = _undo_action(order.action, state, now_s)
    else:
        words, inverse = _apply(order, state, now_s)
    undo = tuple(command_to_json(one) for one in inverse)
    return CommandResult(words, state.store.log_action(Action(now_s, words, who, undo)))


def changes_sites(order: Command | AdCommand, state: State) -> bool:
    """Whether keeper and workers go by other rules once it was carried out."""
    if isinstance(order, Undo):
        row = state.store.find_action(order.action)
        return row is not None and any(changes_sites(command_from_json(one), state) for one in row.action.undo)
    return isinstance(order, SiteCommand | SetMachine) or bool(getattr(order, "rules", ()))


def _apply(order: Command | AdCommand, state: State, now_s: float) -> tuple[str, tuple[Command | AdCommand, ...]]:
    """What was done, and the orders that take it back."""
    if isinstance(order, AdCommand):
        return execute_ad_command(order, state, now_s)
    return _apply_general(order, state, now_s)


def _apply_general(order: Command, state: State, now_s: float) -> tuple[str, tuple[Command, ...]]:
    """The same of what is no matter of the market."""
    if isinstance(order, SiteCommand):
        return execute_site_command(order, state, now_s)
    if isinstance(order, SearchCommand):
        return execute_search_command(order, state, now_s)
    if isinstance(order, SetMachine):
        return execute_setting_command(order, state)
    if isinstance(order, AlertCommand):
        return execute_alert_command(order, state, now_s)
    if isinstance(order, Dismiss | Offer):
        return _apply_offer(order, state)
    return _apply_permanent(order, state)


def _apply_permanent(order: Command, state: State) -> tuple[str, tuple[Command, ...]]:
    """What cannot be taken back."""
    if isinstance(order, ReplaceToken):
        first = "made the operator's first token"
        words = (
            "made a new operator's token; everybody is signed out of the console"
            if state.store.read_token_digest()
            else first
        )
        state.store.set_token(order.digest)
        return words, ()
    if isinstance(order, FetchNow):
        more = f" and {len(order.urls) - 1} more" if len(order.urls) > 1 else ""
        return f"asked for {order.urls[0]}{more} to be fetched now", ()
    raise UsageError("this order is not known here: restart vedette, which is older than whoever orders")


def _apply_offer(order: Dismiss | Offer, state: State) -> tuple[str, tuple[Command, ...]]:
    if isinstance(order, Dismiss):
        state.store.dismiss_unlisted_host(order.host)
        return f"not offered as a site any more: {order.host}", (Offer(order.host),)
    state.store.offer_unlisted_host(order.host)
    return f"offered as a site again: {order.host}", (Dismiss(order.host),)


def _apply_session(order: OpenSession | CloseSession, state: State, now_s: float, who: str) -> CommandResult:
    if isinstance(order, CloseSession):
        state.store.close_session(order.digest)
        return CommandResult("signed out", 0)
    state.store.open_session(order.digest, order.wall_s)
    return CommandResult("signed in", state.store.log_action(Action(now_s, "signed in to the console", who)))


def _undo_action(number: int, state: State, now_s: float) -> tuple[str, tuple[Command | AdCommand, ...]]:
    row = state.store.find_action(number)
    if row is None:
        raise UsageError(f"there is no action {number} in the log")
    if row.undone_s is not None:
        raise UsageError(f'"{row.action.what}" is undone already')
    if not row.action.undo:
        raise UsageError(f'"{row.action.what}" cannot be undone')
    redo: list[Command | AdCommand] = []
    refused: list[UsageError] = []
    for one in row.action.undo:
        try:
            _, inverse = _apply(command_from_json(one), state, now_s)
            redo = [*inverse, *redo]
        except UsageError as error:  # somebody did it by hand meanwhile; the rest can still be taken back
            refused.append(error)
    if len(refused) == len(row.action.undo):
        raise refused[0]
    state.store.mark_undone(number, now_s)
    left = f", but for what was changed since: {refused[0]}" if refused else ""
    return f"undone: {row.action.what}{left}", tuple(redo)
