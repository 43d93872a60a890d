"""Messages between a remote observer and home: a report is sent to home, and orders are the reply.

These are plain values, encoded as MessagePack. Both directions are signed with the observer's key (HMAC-SHA256). Each
report has a higher sequence number than the one before. Home processes each number once, and its reply repeats the
number. If a reply is lost, the next report contains the same observations, which home recognizes. It also lists the
observer's errands, so that home sends missing ones again.

An observation contains the number of its errand and the epoch of the host's assignment. So after a host was assigned to
another observer, the previous one can no longer report for it. Clocks of machines differ, so messages contain
durations: seconds from now, or seconds ago.
"""

from math import isfinite
from typing import NamedTuple

from vedette.fetch.observers.delta import Form
from vedette.model import Headers, Purpose

PROTOCOL = 1
EXCHANGE_PATH = "/observe/v1/exchange"
NAME_HEADER, SIGNATURE_HEADER = "x-vedette-observer", "x-vedette-signature"
CONTENT_TYPE = "application/vnd.msgpack"
# A report has one observation of the largest allowed size, or a batch of smaller ones.
MAX_REPORT_BYTES = 16 << 20
BATCH_BYTES = 4 << 20
MAX_OBSERVATIONS = 500
MAX_COUNT = 1 << 62


class Errand(NamedTuple):
    """Message to an observer: a request to send for home.

    If ``after_s`` is above 0, it is a plan, and only sent if home does not respond. ``digest`` names the body that home
    has; a difference from it is accepted if ``has_copy``. The request is not sent after ``valid_s``, when the
    robots.txt that allows it expires.
    """

    number: int
    epoch: int
    host: str
    url: str
    purpose: Purpose
    headers: Headers
    worth: float
    valid_s: float
    digest: str = ""
    has_copy: bool = False
    secret_headers: Headers = ()
    after_s: float = 0.0


class HostOrder(NamedTuple):
    """Message to an observer: how politely to request a host, as in ``engine.messages.HostSettings``."""

    name: str
    epoch: int
    delay_s: float
    crawl_delay_s: float | None
    wait_s: float
    failure_streak: int
    bytes_per_s: float | None


class RequestLimits(NamedTuple):
    """Message part: limits of all requests of an observer, as configured at home."""

    agent: str
    allow_public: bool
    address_delay_s: float
    latency_factor: float
    daily_limit: int
    body_bytes: int
    connect_timeout_s: float
    timeout_s: float


class Orders(NamedTuple):
    """Message to an observer: the reply to a report.

    Home has stored the observations of the ``taken`` errands. Unsent errands of ``recalled`` hosts are returned. The
    hosts may be requested for ``lease_s`` after the report was sent.
    """

    sequence: int
    lease_s: float
    limits: RequestLimits
    taken: tuple[int, ...] = ()
    errands: tuple[Errand, ...] = ()
    plans: tuple[Errand, ...] | None = None
    hosts: tuple[HostOrder, ...] = ()
    recalled: tuple[str, ...] = ()


class Observation(NamedTuple):
    """Message from an observer: the outcome of an errand, either a ``failure`` or a response.

    It ended ``at_s`` seconds before the report was sent; when stored, by the clock of the machine that stores it.
    ``data`` is the packed body (``fetch.observers.delta``), and ``site_bytes`` is the number of bytes that the site
    sent.
    """

    number: int
    epoch: int
    url: str
    at_s: float
    took_s: float
    failure: str = ""
    detail: str = ""
    status: int = 0
    headers: Headers = ()
    request_head: bytes = b""
    head: bytes = b""
    address: str = ""
    form: Form = "whole"
    data: bytes = b""
    size: int = 0
    digest: str = ""
    site_bytes: int = 0


class HostPace(NamedTuple):
    """Message from an observer: when the next request to a host is allowed, its failure streak, and why it waits."""

    name: str
    epoch: int
    wait_s: float
    failure_streak: int
    trouble: str


class Report(NamedTuple):
    """Message from an observer: everything since the last report that got a reply.

    ``room`` is how many more errands it takes. ``is_confidential`` means that only this observer can read the reply.
    ``returned`` errands were not sent, and ``held`` are the current ones. ``changed`` are URLs whose files changed at
    the source. The previous exchange transferred ``last_bytes`` in ``last_s``, or 0 if there was none.
    """

    sequence: int
    room: int
    is_confidential: bool
    observations: tuple[Observation, ...] = ()
    returned: tuple[int, ...] = ()
    paces: tuple[HostPace, ...] = ()
    held: tuple[int, ...] = ()
    changed: tuple[str, ...] = ()
    last_s: float = 0.0
    last_bytes: int = 0
    protocol: int = PROTOCOL


def check_report(report: Report) -> Report:
    """Check the numbers in a report, which may be anything; raise ``ValueError`` for impossible ones.

    >>> check_report(Report(1, 0, False, last_s=float("nan")))
    Traceback (most recent call last):
    ...
    ValueError: a number in the report is out of range
    """
    seen, paces = report.observations, report.paces
    counts = [report.sequence, report.room, report.last_bytes, *report.returned, *report.held]
    counts += [number for one in seen for number in (one.number, one.epoch, one.size, one.site_bytes, one.status)]
    counts += [number for pace in paces for number in (pace.epoch, pace.failure_streak)]
    seconds = [report.last_s, *(pace.wait_s for pace in paces), *(s for one in seen for s in (one.at_s, one.took_s))]
    if not all(0 <= count < MAX_COUNT for count in counts) or not all(map(isfinite, seconds)):
        raise ValueError("a number in the report is out of range")
    return report
