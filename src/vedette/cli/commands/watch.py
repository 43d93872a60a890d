"""``vedette watch …``: manage alerts on new pages, with feeds and webhooks; each change is logged."""

import argparse
import json
import time

from vedette.adapters.clock import start_clock
from vedette.cli.data_folder import crawled_folder, execute, execute_and_print, format_command, format_done, load_config
from vedette.cli.options import add_folder_subcommand, add_subcommands, require_subcommand
from vedette.cli.output import format_count, format_relative_time, sanitize
from vedette.errors import UsageError
from vedette.fetch.request import build_user_agent
from vedette.runtime.alerts.service import FolderAlertService
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.version import __version__
from vedette.web.commands.alert_text import parse_alert
from vedette.web.commands.commands import AddAlert, RemoveAlert
from vedette.web.console.ports.alerts import AlertLine, SentMessage

DESCRIPTION = """\
Manage watches, which report new pages. Each watch has a feed
(/new.atom?watch=NAME) and can have a webhook, which receives a signed message
for every new page that matches. "vedette new --watch NAME" lists the same
pages.

  vedette watch add harbor --site news.example.org/local --query "harbor OR port"
  vedette watch add all --site "*" --webhook https://example.org/hooks/new-pages
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette watch`` and their options."""
    inner = add_subcommands(parser)
    more = add_folder_subcommand(inner, "add", "watch a site, a path on it, or a query", _add)
    more.add_argument("name", metavar="NAME", help="the name of the watch, which becomes part of its feed's URL")
    more.add_argument("--site", metavar="PLACE", default="", help="a host, or a path on it; * for all sites")
    more.add_argument("--query", metavar="QUERY", default="", help="a search query that new pages must match")
    more.add_argument(
        "--webhook", metavar="URL", default="", help="a URL that receives a signed message for each new page"
    )
    more.add_argument(
        "--reader", metavar="NAME", default="", help="also send private pages that this key or user can see"
    )
    add_folder_subcommand(inner, "list", "list all watches and whether their last messages were delivered", _list)
    for name, purpose, act in (
        ("remove", "remove a watch", _remove),
        ("test", "send a test message to the webhook and print the result", _test),
    ):
        one = add_folder_subcommand(inner, name, purpose, act)
        one.add_argument("name", metavar="NAME", help="the name of the watch")


run = require_subcommand


MAX_MESSAGES = 100


def _add(options: argparse.Namespace) -> int:
    watch = parse_alert(options.name, options.site, options.query, options.webhook, options.reader)
    if watch.webhook and (why := _open_alert_service(options).check_webhook(watch.webhook)):
        raise UsageError(why)
    done = execute(options, AddAlert(watch))
    alert = next(alert for alert in _open_alert_service(options).list_alerts() if alert.watch.name == watch.name)
    if options.json:
        print(json.dumps({**done, "watch": _alert_to_dict(alert), "secret": alert.secret if watch.webhook else None}))
        return 0
    print(format_done(done, options))
    print(f"Feed: /new.atom?watch={watch.name}")
    if watch.webhook:
        print(f"Messages are signed with {alert.secret}")
        print(f"Try it: {format_command(f'watch test {watch.name}', options)}")
    return 0


def _list(options: argparse.Namespace) -> int:
    desk = _open_alert_service(options)
    watches, messages, held_up = desk.list_alerts(), desk.list_messages(MAX_MESSAGES), desk.list_stuck()
    # Messages after one that its receiver rejects were not tried, and say nothing.
    last = {sent.name: sent for sent in reversed(messages)} | {name: sent for name, (sent, _) in held_up.items()}
    behind = {name: count for name, (_, count) in held_up.items()}
    if options.json:
        rows = [(alert, last.get(alert.watch.name), behind.get(alert.watch.name, 0)) for alert in watches]
        print(json.dumps({"watches": [_alert_to_dict(*row) for row in rows]}))
        return 0
    for alert in watches:
        watch = alert.watch
        where = "" if not watch.place else "on all sites" if watch.place == "*" else f"on {sanitize(watch.place)}"
        what = f'"{sanitize(watch.query)}"' if watch.query else "all pages"
        print(f"{watch.name}: {what} {where}".rstrip() + f"; {format_count(alert.items, 'new page')}")
        if watch.webhook:
            print(f"  {sanitize(watch.webhook)}: {_describe_delivery(last.get(watch.name), behind.get(watch.name, 0))}")
    if not watches:
        print(f"No watches yet. To add one: {format_command('watch add NAME --site PLACE', options)}")
    return 0


def _remove(options: argparse.Namespace) -> int:
    return execute_and_print(options, RemoveAlert(options.name), when=False)


def _test(options: argparse.Namespace) -> int:
    sent = _open_alert_service(options).send_test(options.name)
    is_good = not sent.delivery.error
    if options.json:
        print(json.dumps({"delivered": is_good, "status": sent.delivery.status, "error": sent.delivery.error}))
    else:
        print(f"{_describe_delivery(sent)[0].upper()}{_describe_delivery(sent)[1:]}.")
    return 0 if is_good else 1


def _open_alert_service(options: argparse.Namespace) -> FolderAlertService:
    folder, config = crawled_folder(options), load_config(options)
    agent = build_user_agent(__version__, config.crawl.contact)
    return FolderAlertService(RuntimeSettings(config, start_clock(time.time(), 1.0), folder, agent))


def _describe_delivery(sent: SentMessage | None, behind: int = 0) -> str:
    """Describe the delivery of an alert's last webhook message, or of one that blocks later ones."""
    if sent is None:
        return "nothing sent yet"
    message = sent.delivery
    if message.next_s is not None and message.tries:
        why = f"tried {format_count(message.tries, 'time')}: {sanitize(message.error, 300)}"
        waiting = f"; {format_count(behind, 'message')} queued behind it" if behind else ""
        when = format_relative_time(message.next_s, time.time())
        return f"a message could not be delivered ({why}); next try {when}{waiting}"
    if message.error:
        return f"the last message was not delivered ({sanitize(message.error, 300)})"
    return "the last message was delivered" if message.tries else "a message is waiting to be sent"


def _alert_to_dict(alert: AlertLine, sent: SentMessage | None = None, behind: int = 0) -> dict[str, object]:
    watch = alert.watch
    last = None if sent is None else {"error": sent.delivery.error, "tries": sent.delivery.tries, "behind": behind}
    return {
        "name": watch.name,
        "site": watch.place,
        "query": watch.query,
        "webhook": watch.webhook,
        "reader": watch.reader,
        "items": alert.items,
        "last_message": last,
    }
