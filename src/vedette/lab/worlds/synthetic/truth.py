"""What is true of the made web and never served: for judges, tests and policies that may know everything.

The facts of many pages come as arrays from ``traits.lifetimes``; these are for one page at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vedette.lab.worlds.synthetic import addresses
from vedette.lab.worlds.synthetic import page_traits as traits
from vedette.lab.worlds.synthetic.change_times import ChangeLaw, edit_state, edit_times
from vedette.lab.worlds.synthetic.sites import Site


@dataclass(frozen=True, slots=True)
class PageTruth:
    """What is settled about a page; infinity stands for never.

    ``url`` is where it is born, ``moved_url`` where it answers from ``moved_s`` on.
    """

    url: str
    moved_url: str
    number: int
    born_s: float
    moved_s: float
    died_s: float
    indexable: bool
    law: ChangeLaw
    changes_per_s: float


def page_truth(site: Site, number: int) -> PageTruth:
    """The truth about the page of this number."""
    first = traits.page_hash(site, number)
    second, born_s = traits.life_hash(first), site.births.birth_s(number)
    process = traits.change_process(site, second)
    origin = f"http://{site.name}"
    return PageTruth(
        url=origin + addresses.page_path(site, number, first).decode(),
        moved_url=origin + addresses.moved_path(site, number, first).decode(),
        number=number,
        born_s=born_s,
        moved_s=traits.move_s(site, second, born_s),
        died_s=traits.death_s(site, second, born_s),
        indexable=traits.is_indexable(traits.status_hash(second)) and site.robots != "closed",
        law=process.law,
        changes_per_s=process.per_s,
    )


def last_text_change_s(site: Site, number: int, now_s: float) -> float:
    """When the text of a page last changed, its birth included; boxes and rebuilds do not count."""
    process = traits.change_process(site, traits.life_hash(traits.page_hash(site, number)))
    return edit_state(process, site.births.birth_s(number), now_s).last_s


def change_times(site: Site, number: int, until_s: float) -> Iterator[float]:
    """Every change of a page's text after its birth, up to a time, in order."""
    process = traits.change_process(site, traits.life_hash(traits.page_hash(site, number)))
    yield from edit_times(process, site.births.birth_s(number), until_s)
