"""Observers in servers: pass on reports to the observer hub, and list observers and their hosts."""

from pathlib import Path

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.net.ipc import ChannelClosed, Request
from vedette.adapters.observers.hub_store import ContactRow, read_contacts
from vedette.adapters.observers.registry import ObserverRegistry, ObserverRow
from vedette.runtime.observers.facts import ObserverFacts, parse_facts
from vedette.runtime.processes.supervisor import ask_coordinator
from vedette.web.observers.ports import ObservedHostView, ObserverReply, ObserverView

HUB_SOCKET = "observers.sock"
_UNAVAILABLE = ObserverReply(503, words="The observer hub is not responding. Try again in a moment.\n")


class FolderObserverService:
    """A ``web.observers.ports.ObserverService`` over one data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def exchange(self, name: str, signature: str, body: bytes) -> ObserverReply:
        """Pass on a report to the observer hub, and return its orders."""
        call = Request("exchange", {"name": name, "signature": signature, "body": body})
        try:
            reply = ask_coordinator(self._folder, call, name=HUB_SOCKET)
        except (OSError, ChannelClosed):
            return _UNAVAILABLE
        status, orders = reply.get("status"), reply.get("body")
        if not isinstance(status, int) or not isinstance(orders, bytes):
            return _UNAVAILABLE
        return ObserverReply(status, orders, str(reply.get("signature", "")), str(reply.get("words", "")))

    def has_any(self) -> bool:
        """Whether any observer was ever added."""
        with read_state(self._folder) as db:
            return bool(ObserverRegistry(db).list_observers())

    def list_observers(self) -> tuple[ObserverView, ...]:
        """List all observers by name, with their measurements."""
        with read_state(self._folder) as db:
            rows = ObserverRegistry(db).list_observers()
        contacts = read_contacts(self._folder)
        return tuple(_view_observer(row, contacts.get(row.name)) for row in rows)

    def list_hosts(self) -> tuple[ObservedHostView, ...]:
        """List the hosts of observers, with their measurements."""
        with read_state(self._folder) as db:
            rows = ObserverRegistry(db).list_hosts()
        facts = {name: parse_facts(row.facts) for name, row in read_contacts(self._folder).items()}
        empty = ObserverFacts()
        views = []
        for row in rows:
            known = facts.get(row.observer, empty)
            changes = known.changes.get(row.host)
            costs = known.find_costs(row.host)
            views.append(
                ObservedHostView(
                    *(row.host, row.observer, row.since_s, row.why, row.by_hand, row.next),
                    looks=round(changes.looks) if changes else 0,
                    change_share=changes.change_share if changes else None,
                    compression=changes.compression if changes and changes.changes else None,
                    sent_per_look=changes.sent_per_look if changes else None,
                    page_bytes=changes.mean_bytes if changes else None,
                    direct_s=costs.direct_s if costs else None,
                    remote_s=costs.remote_s if costs else None,
                )
            )
        return tuple(views)

    def list_kept(self) -> tuple[str, ...]:
        """List the hosts that an operator assigned to home."""
        with read_state(self._folder) as db:
            return tuple(row.host for row in ObserverRegistry(db).list_kept())


def _view_observer(row: ObserverRow, contact: ContactRow | None) -> ObserverView:
    facts = parse_facts(contact.facts) if contact else ObserverFacts()
    link = facts.home.fit()
    return ObserverView(
        *(row.name, row.added_s, contact.heard_s if contact and contact.heard_s >= row.added_s else None),
        lease_until_s=contact.lease_until_s if contact else 0.0,
        held=facts.held,
        revoked_s=row.revoked_s,
        trouble=row.why,
        secret_sites=row.secret_sites,
        latency_s=link.latency_s if link else None,
        per_byte_s=link.per_byte_s if link else None,
        checks=facts.checks,
        mismatches=facts.mismatches,
        refused=facts.refused,
        is_auto=row.is_auto,
    )
