"""Execute operator commands on the state, for a running coordinator and for the offline command line.

Reads top to bottom: ``execute_command`` logs what ``_apply`` did, ``_EXECUTORS`` maps commands to functions. A command
is checked as a whole before anything is written. Each action is written to the state's log of actions, together with
the commands that undo it, if it can be undone; undoing is an action like any other.
"""

from collections.abc import Callable
from typing import Any, Final

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.operator_store import Action
from vedette.config.sections import Crawl
from vedette.errors import UsageError
from vedette.runtime.commands.ads_commands import execute_ad_command
from vedette.runtime.commands.recheck import retry_failed
from vedette.runtime.commands.search_commands import SearchCommand, execute_search_command
from vedette.runtime.commands.setting_commands import execute_setting_command
from vedette.runtime.commands.site_commands import SiteCommand, execute_site_command
from vedette.runtime.observers.commands import ObserverCommand, execute_observer_command
from vedette.runtime.push.promises import check_promises
from vedette.suggest import did_you_mean
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import (
    AddAlert,
    Command,
    CommandResult,
    Dismiss,
    FetchNow,
    LogSignIn,
    Offer,
    RemoveAlert,
    ReplaceToken,
    RetryFailed,
    SetMachine,
    Undo,
    command_from_json,
    command_to_json,
)

AnyCommand = Command | AdCommand
Applied = tuple[str, tuple[AnyCommand, ...]]  # what was done, in one line, and the commands that undo it
DEFAULT_DELAY_S: Final = Crawl().delay_s
# Each is evaluated for every batch of new pages.
MAX_ALERTS = 500

AlertCommand = AddAlert | RemoveAlert


def execute_command(
    command: AnyCommand, state: State, now_s: float, who: str, delay_s: float = DEFAULT_DELAY_S
) -> CommandResult:
    """Execute an operator's command on the state and log the action, in a transaction that the caller commits.

    ``delay_s`` is the configured delay between requests to a host, which limits a site's promises.
    """
    if not state.db.in_transaction:
        state.db.execute("BEGIN IMMEDIATE")
    if isinstance(command, Undo):
        words, inverse = _undo_action(command.action, state, now_s, delay_s)
    else:
        words, inverse = _apply(command, state, now_s, delay_s)
    undo = tuple(command_to_json(one) for one in inverse)
    return CommandResult(words, state.store.log_action(Action(now_s, words, who, undo)))


def changes_sites(command: AnyCommand, state: State) -> bool:
    """Check whether executing a command changes the rules of coordinator and fetchers."""
    if isinstance(command, Undo):
        row = state.store.find_action(command.action)
        return row is not None and any(changes_sites(command_from_json(one), state) for one in row.action.undo)
    return isinstance(command, SiteCommand | SetMachine) or bool(getattr(command, "rules", ()))


def _apply(command: AnyCommand, state: State, now_s: float, delay_s: float) -> Applied:
    if isinstance(command, SiteCommand):
        check_promises(command, state, delay_s)
    for kinds, execute in _EXECUTORS:
        if isinstance(command, kinds):
            return execute(command, state, now_s)
    raise UsageError("unknown command: the running vedette is older than this one; restart it")


def _replace_token(command: ReplaceToken, state: State, _now_s: float) -> Applied:
    is_first = not state.store.read_token_digest()
    state.store.set_token(command.digest)
    if is_first:
        return "created the operator's first token", ()
    return "created a new token for the operator; everyone is signed out of the console", ()


def _log_sign_in(_command: LogSignIn, _state: State, _now_s: float) -> Applied:
    return "signed in to the console", ()


def _log_fetch(command: FetchNow, _state: State, _now_s: float) -> Applied:
    more = f" and {len(command.urls) - 1} more" if len(command.urls) > 1 else ""
    return f"requested a fetch of {command.urls[0]}{more}", ()


def _apply_offer(command: Dismiss | Offer, state: State, _now_s: float) -> Applied:
    if isinstance(command, Dismiss):
        state.store.dismiss_unlisted_host(command.host)
        return f"no longer offered as a site: {command.host}", (Offer(command.host),)
    state.store.offer_unlisted_host(command.host)
    return f"offered as a site again: {command.host}", (Dismiss(command.host),)


def _execute_alert_command(order: AlertCommand, state: State, now_s: float) -> Applied:
    """Execute a command on alerts in the state; return what was done, and the commands that undo it."""
    rows = {row.name: row for row in state.store.list_alerts()}
    if isinstance(order, AddAlert):
        watch = order.watch._replace(added_s=now_s)
        if watch.name in rows:
            raise UsageError(f'there is already a watch "{watch.name}": remove it first, or choose another name')
        if len(rows) >= MAX_ALERTS:
            raise UsageError(f"there are already {MAX_ALERTS} watches, the maximum: remove one first")
        state.store.add_alert(watch)
        return f'added the watch "{watch.name}"', (RemoveAlert(watch.name),)
    if order.name not in rows:
        advice = did_you_mean(order.name, rows, 'for a list, run "vedette watch list"', show='"{}"', cutoff=0.75)
        raise UsageError(f'there is no watch "{order.name}"; {advice}')
    state.store.delete_alert(order.name)
    return f'removed the watch "{order.name}"', (AddAlert(rows[order.name]),)


_EXECUTORS: Final[tuple[tuple[Any, Callable[[Any, State, float], Applied]], ...]] = (
    (SiteCommand, execute_site_command),
    (SearchCommand, execute_search_command),
    (AlertCommand, _execute_alert_command),
    (ObserverCommand, execute_observer_command),
    (AdCommand, execute_ad_command),
    (SetMachine, execute_setting_command),
    (Dismiss | Offer, _apply_offer),
    (ReplaceToken, _replace_token),
    (FetchNow, _log_fetch),
    (LogSignIn, _log_sign_in),
    (RetryFailed, retry_failed),
)


def _undo_action(number: int, state: State, now_s: float, delay_s: float) -> Applied:
    row = state.store.find_action(number)
    if row is None:
        raise UsageError(f"there is no action {number} in the log")
    if row.undone_s is not None:
        raise UsageError(f'"{row.action.what}" has already been undone')
    if not row.action.undo:
        raise UsageError(f'"{row.action.what}" cannot be undone')
    redo: list[AnyCommand] = []
    refused: list[UsageError] = []
    for one in row.action.undo:
        try:
            _, inverse = _apply(command_from_json(one), state, now_s, delay_s)
            redo = [*inverse, *redo]
        except UsageError as error:  # it was undone by hand meanwhile; the rest can still be undone
            refused.append(error)
    if len(refused) == len(row.action.undo):
        raise refused[0]
    state.store.mark_undone(number, now_s)
    left = f", except for what has changed since: {refused[0]}" if refused else ""
    return f"undone: {row.action.what}{left}", tuple(redo)
