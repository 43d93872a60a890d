"""What can go wrong, sorted by what the person can do about it.

    VedetteError
    ├── UsageError            the command line or a setting is wrong; exit code 2
    │   ├── ConfigError       vedette.toml: unknown key, wrong value, wrong unit
    │   ├── SiteError         a SITE that is no URL, or whose name does not exist
    │   ├── ContactMissing    a public host, and nobody to write to
    │   └── AddressRefused    a private address without leave to ask it
    └── StoreError            the data folder; exit code 1
        ├── StoreBusy         another process holds the folder
        ├── StoreNewer        written by a newer Vedette; left untouched
        └── StoreCorrupt      cannot be read; the message says what to restore

Answers of the web are never exceptions: they are values (see ``facts.Outcome``).
Each message is one line that says what happened and what to type.
"""


class VedetteError(Exception):
    """Anything that Vedette itself reports; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(VedetteError):
    """The person can mend it by typing something else."""

    exit_code = 2


class ConfigError(UsageError):
    """A key or value of the configuration is wrong; the message names the nearest right one."""


class SiteError(UsageError):
    """A SITE argument is no crawlable URL, or its name does not exist."""


class ContactMissing(UsageError):
    """Public hosts are crawled only by somebody who can be written to."""


class AddressRefused(UsageError):
    """A private or loopback address was named without ``--allow-private``."""


class StoreError(VedetteError):
    """The data folder cannot be used as it is."""


class StoreBusy(StoreError):
    """Another Vedette holds this data folder."""


class StoreNewer(StoreError):
    """The folder has a newer format than this Vedette knows; nothing was touched."""


class StoreCorrupt(StoreError):
    """The folder's content contradicts itself."""
