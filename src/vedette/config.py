"""``vedette.toml``: the machine's settings, read once into frozen dataclasses.

Durations and sizes are written with their unit, because a bare number is read differently by everybody. An unknown key
is an error that names the nearest known one, because a misspelt setting that is silently ignored costs days. Each
setting is declared once, at its field: key, kind, default and meaning. Reading, checking, ``override`` and
``describe`` (against which the documentation is tested) all follow from that.
"""

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from vedette.errors import ConfigError

__all__ = [
    "Config",
    "Crawl",
    "Rate",
    "Serve",
    "Store",
    "describe",
    "format_duration",
    "format_rate",
    "format_size",
    "load",
    "override",
    "parse",
    "parse_duration",
    "parse_rate",
    "parse_size",
]

Value = TypeVar("Value")

# Both from the largest unit to the smallest: a value is written in the first that takes it as a whole number.
_SECONDS = {"d": Decimal(86400), "h": Decimal(3600), "min": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}
_BYTES = {
    "GiB": Decimal(2**30),
    "GB": Decimal(10**9),
    "MiB": Decimal(2**20),
    "MB": Decimal(10**6),
    "KiB": Decimal(2**10),
    "kB": Decimal(10**3),
    "B": Decimal(1),
}
_AMOUNT = re.compile(r"(-?[0-9]{1,18}(?:\.[0-9]{1,30})?) ?([A-Za-z]{1,3})")
_BARE = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,30})?")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
# It is sent in a header of every request, so nothing that could end the header or its comment gets in.
_CONTACT = re.compile(r"(?=[!-~]+\Z)(?:[^@()]+@[^@()]+|https?://[^()/]+[^()]*)")
_PROXY = re.compile(r"(?:http|socks5h)://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[1-9][0-9]{0,4}")
_FILE = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
_LISTEN = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_ORIGIN = re.compile(r"\*|https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?")
_ADDRESS = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[1-9][0-9]{0,4})?/?")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_SHOWN = re.compile(r"(?=\S)[^\x00-\x1f\x7f-\x9f]{1,64}")
_RATE = re.compile(r"([0-9]{1,9})/(s|min|h|d)")
_TOML_PLACE = re.compile(r" \(at (?:line ([0-9]+), column [0-9]+|end of document)\)$")


class _Kind(Protocol[Value]):
    """How the values of a setting are read, checked and written; its ``ConfigError`` says what to write instead."""

    def read(self, value: object) -> Value: ...
    def write(self, value: Value) -> str: ...


@dataclass(frozen=True, slots=True)
class _Duration:
    at_least_s: float = 0
    at_most_s: float = 36500 * 86400.0

    def read(self, value: object) -> float:
        seconds = float(_amount(value, _SECONDS, "a duration", "s"))
        if not self.at_least_s <= seconds <= self.at_most_s:
            raise _out_of_range(format_duration(self.at_least_s), format_duration(self.at_most_s))
        return seconds

    def write(self, value: float) -> str:
        return _written(format_duration(value))


@dataclass(frozen=True, slots=True)
class _Size:
    at_least_bytes: int = 0
    at_most_bytes: int = 10**15

    def read(self, value: object) -> int:
        size = _amount(value, _BYTES, "a size", "B")
        if not self.at_least_bytes <= size <= self.at_most_bytes:
            raise _out_of_range(format_size(self.at_least_bytes), format_size(self.at_most_bytes))
        if size != int(size):
            raise ConfigError("write a whole number of bytes")
        return int(size)

    def write(self, value: int) -> str:
        return _written(format_size(value))


@dataclass(frozen=True, slots=True)
class _Count:
    at_least: int
    at_most: int

    def read(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(f"write a whole number from {self.at_least} to {self.at_most}")
        if not self.at_least <= value <= self.at_most:
            raise _out_of_range(str(self.at_least), str(self.at_most))
        return value

    def write(self, value: int) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of some shape; empty stands for none."""

    shape: re.Pattern[str]
    advice: str

    def read(self, value: object) -> str:
        if isinstance(value, str) and (not value or self.shape.fullmatch(value)):
            return value
        raise ConfigError(self.advice)

    def write(self, value: str) -> str:
        return _written(value)


@dataclass(frozen=True, slots=True)
class _OneOf:
    words: tuple[str, ...]

    def read(self, value: object) -> str:
        if isinstance(value, str) and value in self.words:
            return value
        raise ConfigError(f"write one of {', '.join(_written(word) for word in self.words)}")

    def write(self, value: str) -> str:
        return _written(value)


@dataclass(frozen=True, slots=True)
class _Folder:
    def read(self, value: object) -> Path:
        if isinstance(value, str) and value and value.isprintable():
            return Path(value)
        raise ConfigError('write the path of a folder, such as "vedette-data"')

    def write(self, value: Path) -> str:
        return _written(str(value))


@dataclass(frozen=True, slots=True)
class _Texts:
    """A list of texts, each of some shape."""

    shape: re.Pattern[str]
    advice: str

    def read(self, value: object) -> tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(each, str) and self.shape.fullmatch(each) for each in value):
            return tuple(value)
        raise ConfigError(self.advice)

    def write(self, value: tuple[str, ...]) -> str:
        return f"[{', '.join(map(_written, value))}]"


@dataclass(frozen=True, slots=True)
class _Networks(_Texts):
    """A list of IP addresses or networks."""

    def read(self, value: object) -> tuple[str, ...]:
        texts = _Texts.read(self, value)
        try:
            for each in texts:
                ipaddress.ip_network(each)
        except ValueError:
            raise ConfigError(self.advice) from None
        return texts


class Rate(NamedTuple):
    """So many requests in so many seconds; none at all stands for no limit."""

    requests: int
    per_s: float


@dataclass(frozen=True, slots=True)
class _RateKind:
    def read(self, value: object) -> Rate:
        if value in (0, "0") and not isinstance(value, bool):
            return Rate(0, 1.0)
        rate = _RATE.fullmatch(value) if isinstance(value, str) else None
        if rate is None:
            raise ConfigError('write a number of requests and a unit of time, such as "120/min" (s, min, h, d), or "0"')
        return Rate(int(rate[1]), float(_SECONDS[rate[2]])) if int(rate[1]) else Rate(0, 1.0)

    def write(self, value: Rate) -> str:
        return _written(format_rate(value))


def _says(key: str, kind: _Kind[Any], meaning: str) -> dict[str, object]:
    return {"key": key, "kind": kind, "meaning": meaning}


@dataclass(frozen=True, slots=True)
class Crawl:
    """How pages are fetched, unless a site says otherwise."""

    contact: str = field(
        default="",
        metadata=_says(
            "contact",
            _Text(_CONTACT, 'write an e-mail address or an http(s) URL, such as "crawler@example.org"'),
            "where the operator can be reached: an e-mail address or an http(s) URL",
        ),
    )
    delay_s: float = field(
        default=1.0,
        metadata=_says("delay", _Duration(), "pause between an answer of a host and the next request to it"),
    )
    address_delay_s: float = field(
        default=0.25,
        metadata=_says("address_delay", _Duration(), "the same for all hosts that share one IP address"),
    )
    latency_factor: int = field(
        default=2,
        metadata=_says(
            "latency_factor", _Count(0, 100), "the pause is at least this many times the host's last latency"
        ),
    )
    max_page_bytes: int = field(
        default=10 * 2**20,
        metadata=_says("max_page_size", _Size(1, 2**30), "a page larger than this, decoded, is given up"),
    )
    timeout_s: float = field(
        default=30.0, metadata=_says("timeout", _Duration(0.001, 3600), "a request that takes longer is given up")
    )
    connect_timeout_s: float = field(
        default=10.0,
        metadata=_says("connect_timeout", _Duration(0.001, 3600), "the same for opening the connection"),
    )
    max_redirects: int = field(
        default=5, metadata=_says("max_redirects", _Count(0, 20), "redirects followed in a row; 0 follows none")
    )
    robots_max_age_s: float = field(
        default=86400.0,
        metadata=_says(
            "robots_max_age", _Duration(60, 86400), "how long a copy of robots.txt is trusted; at most a day"
        ),
    )
    order: Literal["breadth", "inlinks"] = field(
        default="breadth",
        metadata=_says(
            "order",
            _OneOf(("breadth", "inlinks")),
            "which unseen URL first: few links from a start, or many links to it",
        ),
    )
    source_interval_s: float = field(
        default=600.0,
        metadata=_says(
            "source_interval", _Duration(10), "how often feeds, sitemaps and home pages are fetched again by `up`"
        ),
    )
    workers: int = field(
        default=1,
        metadata=_says("workers", _Count(1, 64), "processes that fetch and parse; hosts are divided among them"),
    )
    concurrency: int = field(
        default=256, metadata=_says("concurrency", _Count(1, 10_000), "requests under way at once in each worker")
    )
    proxy: str = field(
        default="",
        metadata=_says(
            "proxy",
            _Text(_PROXY, 'write http://HOST:PORT or socks5h://HOST:PORT, such as "http://proxy.example.org:3128"'),
            "by which proxy every request goes, `http://HOST:PORT` or `socks5h://HOST:PORT`; empty for none",
        ),
    )
    ca_file: str = field(
        default="",
        metadata=_says(
            "ca_file",
            _Text(_FILE, 'write the path of a PEM file, such as "/etc/ssl/intranet.pem"'),
            "a PEM file of roots that are trusted besides the system's, such as an intranet's",
        ),
    )


@dataclass(frozen=True, slots=True)
class Store:
    """Where things are kept."""

    data: Path = field(
        default=Path("vedette-data"),
        metadata=_says("data", _Folder(), "the data folder; a relative path starts where Vedette is started"),
    )
    keep_days: int = field(
        default=30,
        metadata=_says(
            "keep_days", _Count(0, 36_500), "for how many days older versions of a page are kept; the latest always is"
        ),
    )
    max_bytes: int = field(
        default=0,
        metadata=_says(
            "max_size", _Size(), "how large the archive may grow before versions are given up; 0B sets no limit"
        ),
    )
    min_free_bytes: int = field(
        default=2**30,
        metadata=_says("min_free", _Size(), "with less room than this on the disk, fetching pauses"),
    )


@dataclass(frozen=True, slots=True)
class Serve:
    """Where pages and API are served, to whom, and how much of them."""

    listen: str = field(
        default="127.0.0.1:8080",
        metadata=_says(
            "listen",
            _Text(_LISTEN, 'write HOST:PORT, such as "127.0.0.1:8080", or "" to serve nothing'),
            "where pages and API are served, `HOST:PORT`; empty serves nothing",
        ),
    )
    access: Literal["open", "token", "proxy"] = field(
        default="open",
        metadata=_says(
            "access",
            _OneOf(("open", "token", "proxy")),
            "who may search: everybody, holders of a key, or whom a proxy names",
        ),
    )
    proxy_header: str = field(
        default="X-Forwarded-User",
        metadata=_says(
            "proxy_header",
            _Text(_HEADER, 'write the name of a header, such as "X-Forwarded-User"'),
            'with `access = "proxy"`, the header in which the proxy names the reader',
        ),
    )
    trusted_proxies: tuple[str, ...] = field(
        default=("127.0.0.1",),
        metadata=_says(
            "trusted_proxies",
            _Networks(_FILE, 'write a list of IP addresses or networks, such as ["127.0.0.1", "10.0.0.0/8"]'),
            "from which addresses or networks a proxy is believed what it says of readers",
        ),
    )
    embed_origins: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            "embed_origins",
            _Texts(_ORIGIN, 'write a list of origins, such as ["https://docs.example.org"], or ["*"] for all'),
            "from which origins scripts of other sites may search and suggest; `*` stands for all",
        ),
    )
    name: str = field(
        default="vedette",
        metadata=_says(
            "name", _Text(_SHOWN, 'write a short name, such as "Our documents"'), "the name that the pages show"
        ),
    )
    processes: int = field(
        default=1,
        metadata=_says(
            "processes", _Count(1, 64), "processes that answer searches; each counts for itself what a reader asks"
        ),
    )
    rate: Rate = field(
        default=Rate(120, 60.0),
        metadata=_says("rate", _RateKind(), 'how much each reader may ask, such as `"10/s"`; `"0"` sets no limit'),
    )
    address: str = field(
        default="",
        metadata=_says(
            "address",
            _Text(_ADDRESS, 'write an http(s) address without a path, such as "https://search.example.org"'),
            "the address by which people reach it, for links to itself; empty for where it listens",
        ),
    )


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of the machine, by section."""

    crawl: Crawl = field(default_factory=Crawl)
    store: Store = field(default_factory=Store)
    serve: Serve = field(default_factory=Serve)


@dataclass(frozen=True, slots=True)
class _Setting:
    section: str
    field: str
    kind: _Kind[Any]
    default: object
    meaning: str


_SECTIONS = {"crawl": Crawl, "store": Store, "serve": Serve}
_SETTINGS = {
    f"{section}.{each.metadata['key']}": _Setting(
        section, each.name, each.metadata["kind"], each.default, each.metadata["meaning"]
    )
    for section, settings in _SECTIONS.items()
    for each in fields(settings)
}


def load(path: Path | None) -> Config:
    """The settings of a file, or the defaults without one."""
    if path is None:
        return Config()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; create it, or name none to use the defaults") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); name a file that can") from None
    except ValueError:
        raise ConfigError(f"{path}: is not UTF-8 text; save it as such") from None
    return parse(text, str(path))


def parse(text: str, source: str) -> Config:
    r"""The settings of a TOML text; what is not set keeps its default. ``source`` names the text in messages.

    >>> parse('[crawl]\ndelay = "1.5min"', "vedette.toml").crawl.delay_s
    90.0
    """
    try:
        return _changed(Config(), dict(_flat(_toml(text))))
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def override(config: Config, settings: Mapping[str, str]) -> Config:
    """The configuration with some settings changed, as typed on a command line: numbers come as text too.

    >>> override(Config(), {"crawl.delay": "2s", "crawl.concurrency": "8"}).crawl.concurrency
    8
    """
    return _changed(config, {name: _typed(name, text) for name, text in settings.items()})


def describe() -> list[tuple[str, str, str]]:
    """Every key with its section, its default as TOML writes it, and its meaning."""
    return [(name, each.kind.write(each.default), each.meaning) for name, each in _SETTINGS.items()]


def parse_duration(text: str) -> float:
    """Seconds.

    >>> parse_duration("1.5h"), parse_duration("250ms")
    (5400.0, 0.25)
    """
    return _read(_written(text), _Duration(), text)


def parse_size(text: str) -> int:
    """Bytes.

    >>> parse_size("10MiB"), parse_size("10MB")
    (10485760, 10000000)
    """
    return _read(_written(text), _Size(), text)


def parse_rate(text: str) -> Rate:
    """Requests in so many seconds.

    >>> parse_rate("120/min"), parse_rate("0").requests
    (Rate(requests=120, per_s=60.0), 0)
    """
    return _read(_written(text), _RateKind(), text)


def format_duration(seconds: float) -> str:
    """The shortest way to write it that ``parse_duration`` reads back exactly.

    >>> format_duration(5400), format_duration(0.25), format_duration(0)
    ('90min', '250ms', '0s')
    """
    exact = Decimal(repr(float(seconds))).normalize()
    return _format(exact, _SECONDS) or f"{exact:f}s"


def format_size(size_bytes: int) -> str:
    """The same for ``parse_size``.

    >>> format_size(10485760), format_size(1500)
    ('10MiB', '1500B')
    """
    return _format(Decimal(size_bytes), _BYTES) or f"{size_bytes}B"


def format_rate(rate: Rate) -> str:
    """The same for ``parse_rate``.

    >>> format_rate(Rate(10, 1.0)), format_rate(Rate(0, 1.0))
    ('10/s', '0')
    """
    units = {float(seconds): unit for unit, seconds in _SECONDS.items()}
    return f"{rate.requests}/{units[rate.per_s]}" if rate.requests else "0"


def _format(exact: Decimal, scales: Mapping[str, Decimal]) -> str | None:
    for unit, scale in scales.items():
        count = int(exact / scale)
        if count and count * scale == exact:
            return f"{count}{unit}"
    return None


def _toml(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError("is not TOML: nested too deeply; only sections with keys are known") from None
    except tomllib.TOMLDecodeError as error:
        reason = " ".join(str(error).split())
        place = _TOML_PLACE.search(reason)
        line = place[1] if place and place[1] else text.count("\n") + 1
        raise ConfigError(f"line {line} is not TOML: {_TOML_PLACE.sub('', reason)}") from None
    except ValueError:
        raise ConfigError("is not TOML: it holds a number or a date that does not exist") from None


def _flat(table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for section, values in table.items():
        if section not in _SECTIONS:
            raise _unknown_section(section) if isinstance(values, dict) else _unknown_key(section)
        if not isinstance(values, dict):
            raise ConfigError(f"{section} = {_written(values)}: write a section, [{section}], with its keys below")
        for key, value in values.items():
            yield f"{section}.{key}", value


def _changed(config: Config, settings: Mapping[str, object]) -> Config:
    for name, value in settings.items():
        if name not in _SETTINGS:
            raise _unknown_key(name)
        setting = _SETTINGS[name]
        read = _read(f"{name} = {_written(value)}", setting.kind, value)
        section = replace(getattr(config, setting.section), **{setting.field: read})
        config = replace(config, **{setting.section: section})
    return config


def _read(label: str, kind: _Kind[Value], value: object) -> Value:
    try:
        return kind.read(value)
    except ConfigError as error:
        raise ConfigError(f"{label}: {error}") from None


def _typed(name: str, text: str) -> object:
    kind = _SETTINGS[name].kind if name in _SETTINGS else None
    if isinstance(kind, _Texts):
        return [each.strip() for each in text.split(",")] if text.strip() else []
    return int(text) if isinstance(kind, _Count) and _INTEGER.fullmatch(text) else text


def _amount(value: object, scales: Mapping[str, Decimal], what: str, unit: str) -> Decimal:
    amount = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if amount is None or amount[2] not in scales:
        number = _written(value).strip('"')
        example = f"{number if _BARE.fullmatch(number) else 30}{unit}"
        raise ConfigError(f'write {what} with its unit, such as "{example}" ({", ".join(reversed(list(scales)))})')
    return Decimal(amount[1]) * scales[amount[2]]


def _out_of_range(at_least: str, at_most: str) -> ConfigError:
    return ConfigError(f"write a value from {at_least} to {at_most}")


def _unknown_section(name: str) -> ConfigError:
    near = difflib.get_close_matches(name[:100], _SECTIONS, 1)
    advice = f"did you mean [{near[0]}]?" if near else f"known are {', '.join(f'[{each}]' for each in _SECTIONS)}"
    return ConfigError(f"unknown section [{_line(name)}]; {advice}")


def _unknown_key(name: str) -> ConfigError:
    """The nearest key of the same section, or else of any: the section may be missing or wrong."""
    here = [known for known in _SETTINGS if known.startswith(f"{name.partition('.')[0]}.")]
    near = _nearest(name, here) or _nearest(name, list(_SETTINGS))
    advice = f"did you mean {near}?" if near else f"known are {', '.join(here or _SETTINGS)}"
    return ConfigError(f"unknown key {_line(name)}; {advice}")


def _nearest(name: str, known: list[str]) -> str | None:
    keys = {each.partition(".")[2]: each for each in known}
    near = difflib.get_close_matches(name[:100].rpartition(".")[2], keys, 1)
    return keys[near[0]] if near else None


def _written(value: object) -> str:
    """A value about as it stands in the file, on one line."""
    if isinstance(value, str):
        return f'"{_line(value)}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list) or (isinstance(value, int) and abs(value) >= 10**18):
        return "…"
    return str(value)


def _line(text: str) -> str:
    return f"{text[:100]!r}"[1:-1] + ("…" if len(text) > 100 else "")
