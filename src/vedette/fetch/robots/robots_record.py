"""Where an origin's robots.txt stands, what happened to it, and what that means for a page: the records.

``robots_state`` moves them, ``robots_words`` says them to people and to a store.
"""

from dataclasses import dataclass
from enum import StrEnum

from vedette.fetch.robots.rules import Rules
from vedette.model import Headers

__all__ = [
    "UNKNOWN",
    "Allowed",
    "Ask",
    "Disallowed",
    "RobotsAnswered",
    "RobotsCopy",
    "RobotsSilent",
    "RobotsState",
    "RobotsVerdict",
    "Standing",
    "Wait",
]


class Standing(StrEnum):
    """What is known of an origin's robots.txt."""

    UNKNOWN = "unknown"
    READ = "read"
    UNAVAILABLE = "unavailable"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class RobotsAnswered:
    """The last answer after ``redirects`` hops that the caller followed; ``body`` is decoded."""

    now_s: float
    status: int
    body: bytes
    redirects: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class RobotsSilent:
    """No answer came: name, connection, time."""

    now_s: float
    why: str


@dataclass(frozen=True, slots=True)
class RobotsCopy:
    """A robots.txt that was had: its first 500 KiB, what it says to us, and how to ask whether it changed."""

    body: bytes
    rules: Rules
    read_s: float
    lifetime_s: float
    etag: str
    last_modified: str


@dataclass(frozen=True, slots=True)
class RobotsState:
    """Where an origin stands; ``until_s`` ends a lifetime or a wait, ``failures`` counts those in a row."""

    standing: Standing
    until_s: float = 0.0
    why: str = ""
    failures: int = 0
    last_good: RobotsCopy | None = None

    def __post_init__(self) -> None:
        if self.standing is Standing.READ and self.last_good is None:
            raise ValueError("a robots.txt that was read has a copy")

    @property
    def rules(self) -> Rules:
        """What decides while the state is valid: the file's rules, or none where there is no file to obey."""
        if self.standing is Standing.READ and self.last_good is not None:
            return self.last_good.rules
        return Rules()

    @property
    def crawl_delay_s(self) -> float | None:
        """The delay that the valid copy asks for."""
        return self.rules.crawl_delay_s

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps that the valid copy names."""
        return self.rules.sitemaps


@dataclass(frozen=True, slots=True)
class Allowed:
    """The page may be asked for; ``rule`` is the line that says so, None where none speaks of it."""

    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Disallowed:
    """The page may not be asked for, by this line."""

    rule: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for robots.txt first; ``since_s`` is when that fell due, None where nothing was known before."""

    since_s: float | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing may be asked of this origin yet, robots.txt included."""

    until_s: float
    why: str


RobotsVerdict = Allowed | Disallowed | Ask | Wait

UNKNOWN = RobotsState(Standing.UNKNOWN)
