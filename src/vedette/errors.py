"""Errors: the exceptions of Vedette, grouped by what you can do about them.

    VedetteError
    ├── UsageError            the command line or a setting is wrong; exit code 2
    │   ├── ConfigError       vedette.toml: unknown key, wrong value, wrong unit
    │   ├── SiteError         a SITE that is no URL, or whose name does not exist
    │   ├── ContactMissing    a public host, but no contact address
    │   └── AddressRefused    a private address without permission
    ├── ClusterError          the cluster's PostgreSQL, or a node that does not fit; exit code 1
    └── StoreError            the data folder; exit code 1
        ├── StoreBusy         another process holds the folder
        ├── CommandPending    the coordinator received a command but was too busy to run it yet
        ├── StoreNewer        written by a newer Vedette; left untouched
        └── StoreCorrupt      cannot be read; the message says what to restore

Responses from the web are never exceptions: they are values (see ``model.FetchOutcome``). Each message is one line that
says what happened and what to type.
"""


class VedetteError(Exception):
    """Base class of all errors that Vedette reports; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(VedetteError):
    """Usage error: fix it by typing something else."""

    exit_code = 2


class ConfigError(UsageError):
    """Configuration error: a key or value is wrong; the message names the nearest right one."""


class SiteError(UsageError):
    """Site error: a SITE argument is no crawlable URL, or its name does not exist."""


class ContactMissing(UsageError):
    """Contact error: public hosts are crawled only with a contact address."""


class AddressRefused(UsageError):
    """Address error: a private or loopback address was named without ``--allow-private``."""


class ClusterError(VedetteError):
    """Cluster error: its PostgreSQL cannot be used, or this node does not fit the cluster."""


class StoreError(VedetteError):
    """Store error: the data folder cannot be used as it is."""


class StoreBusy(StoreError):
    """Store error: another Vedette process holds this data folder."""


class CommandPending(StoreError):
    """Store error: a command waits for a busy coordinator, which will run it later."""


class StoreNewer(StoreError):
    """Store error: the folder has a newer format than this Vedette supports; nothing was changed."""


class StoreCorrupt(StoreError):
    """Store error: the folder's content contradicts itself."""
