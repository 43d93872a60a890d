"""Carrying out what an operator orders: the same whether a running keeper does it or the command line.

An order is checked as a whole before anything is written. What was done is written into the state's log of actions,
together with the orders that take it back, where it can be taken back; taking it back is an action like any other.
"""

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.operator_store import Action
from vedette.errors import UsageError
from vedette.runtime.commands.ads_commands import carry_out_market
from vedette.runtime.commands.alert_commands import WatchOrder, carry_out_watch
from vedette.runtime.commands.search_commands import SearchOrder, carry_out_search
from vedette.runtime.commands.setting_commands import carry_out_setting
from vedette.runtime.commands.site_commands import SiteOrder, carry_out_site
from vedette.web.commands.ads_commands import MarketOrder, is_of_market, market_order_as_json, market_order_of_json
from vedette.web.commands.commands import (
    CloseSession,
    Dismiss,
    Done,
    FetchNow,
    NewToken,
    Offer,
    OpenSession,
    Order,
    SetMachine,
    Undo,
    order_as_json,
    order_of_json,
)

__all__ = ["carry_out", "changes_sites"]


def carry_out(order: Order | MarketOrder, state: State, now_s: float, who: str) -> Done:
    """Write it into the state, as one change that the caller commits."""
    if not state.db.in_transaction:
        state.db.execute("BEGIN IMMEDIATE")
    if isinstance(order, OpenSession | CloseSession):
        return _session(order, state, now_s, who)
    if isinstance(order, Undo):
        words, inverse = _undo(order.action, state, now_s)
    else:
        words, inverse = _changed(order, state, now_s)
    undo = tuple(_as_json(one) for one in inverse)
    return Done(words, state.book.log_action(Action(now_s, words, who, undo)))


def changes_sites(order: Order | MarketOrder, state: State) -> bool:
    """Whether keeper and workers go by other rules once it was carried out."""
    if isinstance(order, Undo):
        row = state.book.action(order.action)
        return row is not None and any(changes_sites(_of_json(one), state) for one in row.action.undo)
    return isinstance(order, SiteOrder | SetMachine) or bool(getattr(order, "rules", ()))


def _as_json(order: Order | MarketOrder) -> dict[str, object]:
    return market_order_as_json(order) if isinstance(order, MarketOrder) else order_as_json(order)


def _of_json(told: object) -> Order | MarketOrder:
    return market_order_of_json(told) if is_of_market(told) else order_of_json(told)


def _changed(order: Order | MarketOrder, state: State, now_s: float) -> tuple[str, tuple[Order | MarketOrder, ...]]:
    """What was done, and the orders that take it back."""
    if isinstance(order, MarketOrder):
        return carry_out_market(order, state, now_s)
    return _ordered(order, state, now_s)


def _ordered(order: Order, state: State, now_s: float) -> tuple[str, tuple[Order, ...]]:
    """The same of what is no matter of the market."""
    if isinstance(order, SiteOrder):
        return carry_out_site(order, state, now_s)
    if isinstance(order, SearchOrder):
        return carry_out_search(order, state, now_s)
    if isinstance(order, SetMachine):
        return carry_out_setting(order, state)
    if isinstance(order, WatchOrder):
        return carry_out_watch(order, state, now_s)
    if isinstance(order, Dismiss | Offer):
        return _offered(order, state)
    return _for_good(order, state)


def _for_good(order: Order, state: State) -> tuple[str, tuple[Order, ...]]:
    """What cannot be taken back."""
    if isinstance(order, NewToken):
        first = "made the operator's first token"
        words = (
            "made a new operator's token; everybody is signed out of the console"
            if state.book.token_digest()
            else first
        )
        state.book.set_token(order.digest)
        return words, ()
    if isinstance(order, FetchNow):
        more = f" and {len(order.urls) - 1} more" if len(order.urls) > 1 else ""
        return f"asked for {order.urls[0]}{more} to be fetched now", ()
    raise UsageError("this order is not known here: restart vedette, which is older than whoever orders")


def _offered(order: Dismiss | Offer, state: State) -> tuple[str, tuple[Order, ...]]:
    if isinstance(order, Dismiss):
        state.book.dismiss_stranger(order.host)
        return f"not offered as a site any more: {order.host}", (Offer(order.host),)
    state.book.offer_stranger(order.host)
    return f"offered as a site again: {order.host}", (Dismiss(order.host),)


def _session(order: OpenSession | CloseSession, state: State, now_s: float, who: str) -> Done:
    if isinstance(order, CloseSession):
        state.book.close_session(order.digest)
        return Done("signed out", 0)
    state.book.open_session(order.digest, order.wall_s)
    return Done("signed in", state.book.log_action(Action(now_s, "signed in to the console", who)))


def _undo(number: int, state: State, now_s: float) -> tuple[str, tuple[Order | MarketOrder, ...]]:
    row = state.book.action(number)
    if row is None:
        raise UsageError(f"there is no action {number} in the log")
    if row.undone_s is not None:
        raise UsageError(f'"{row.action.what}" is undone already')
    if not row.action.undo:
        raise UsageError(f'"{row.action.what}" cannot be undone')
    redo: list[Order | MarketOrder] = []
    refused: list[UsageError] = []
    for one in row.action.undo:
        try:
            _, inverse = _changed(_of_json(one), state, now_s)
            redo = [*inverse, *redo]
        except UsageError as error:  # somebody did it by hand meanwhile; the rest can still be taken back
            refused.append(error)
    if len(refused) == len(row.action.undo):
        raise refused[0]
    state.book.action_undone(number, now_s)
    left = f", but for what was changed since: {refused[0]}" if refused else ""
    return f"undone: {row.action.what}{left}", tuple(redo)
