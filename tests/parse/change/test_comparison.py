"""What counts as a change to a page, by each of the four rules, compared with the synthetic web's truth."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args
from urllib.parse import urljoin

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from vedette.lab.worlds.synthetic import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.synthetic.page_traits import last_text_change_s, page_truth
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.world import WorldRequest
from vedette.model import fingerprint as link_print
from vedette.parse.change.comparison import (
    Change,
    ChangeRule,
    NewVersion,
    PlacedText,
    StoredVersion,
    build_first_version,
    compare_versions,
)
from vedette.parse.similarity.minhash import build_sketch
from vedette.parse.similarity.shingles import fingerprint_text, shingle_text
from vedette.timeutil import DAY_S

RULES: tuple[ChangeRule, ...] = get_args(ChangeRule)
TEXT = " ".join(
    f"{a} {b} {c}" for a in ("red", "old", "far") for b in ("boat", "gate") for c in ("north", "east", "up")
)


def version(main: str, *, links: Sequence[int] = (), frame: str = "", blocks: Sequence[PlacedText] = ()) -> NewVersion:
    """Return a version of a page with this content."""
    sketch = build_sketch(shingle_text(main))
    mins = sketch.mins if sketch else b""
    body = xxhash.xxh3_128_digest(repr((main, list(links), frame, blocks)).encode())
    numbers = np.array([link_print(f"http://a.example/{link}") for link in links], dtype=np.int64)
    return NewVersion(body, fingerprint_text(f"{frame} {main}"), fingerprint_text(main), mins, numbers, blocks)


def verdicts(old: NewVersion, new: NewVersion) -> dict[str, bool]:
    """Return whether each rule sees a change."""
    return {rule: compare_versions(build_first_version(old), new, rule)[0].changed for rule in RULES}


@given(st.text(), st.lists(st.integers(0, 9)), st.lists(st.tuples(st.integers(), st.text()), max_size=5))
def test_an_equal_version_is_no_change(main: str, links: list[int], blocks: list[PlacedText]) -> None:
    """An equal version is unchanged by every rule, for any page."""
    seen = version(main, links=links, blocks=blocks)
    for rule in RULES:
        change, kept = compare_versions(build_first_version(seen), seen, rule)
        assert not change.changed
        assert (change.share, change.links_added, change.links_removed) == (0.0, 0, 0)
        assert kept.links_print == build_first_version(seen).links_print


@pytest.mark.parametrize(
    ("new", "changed"),
    [
        (version(TEXT + " 12 views", links=[1]), {"bytes"}),
        (version(TEXT.upper() + "!  17 Views", links=[1]), {"bytes"}),
        (version(TEXT + " 7 views", links=[1], frame="Build abc"), {"bytes", "text"}),
        (version(TEXT + " and more 7 views", links=[1]), {"bytes", "text", "main", "queries"}),
        (version(TEXT + " 7 views", links=[2]), {"bytes", "links"}),
        (version(TEXT + " 7 views", links=[1, 1]), {"bytes"}),
    ],
    ids=["digits", "case and signs", "frame", "words", "links", "a link twice"],
)
def test_each_rule_sees_its_own_kind_of_change(new: NewVersion, changed: set[str]) -> None:
    """Bytes: anything. Text: words anywhere. Main and, at first, queries: words of the main text. Links: links."""
    seen = verdicts(version(TEXT + " 7 views", links=[1]), new)
    assert {rule for rule, message in seen.items() if message} == changed


def test_the_share_follows_how_much_was_rewritten() -> None:
    """More new text is a larger share, and a text with nothing in common is entirely new."""
    old = version(TEXT)
    words = TEXT.split()
    shares = []
    for kept_words in (50, 40, 20, 0):
        text = " ".join(words[:kept_words]) + " " + " ".join("qwertyuiop"[: 1 + i % 9] for i in range(54 - kept_words))
        shares.append(compare_versions(build_first_version(old), version(text))[0].share)
    assert shares == sorted(shares)
    assert shares[0] < 0.5 < shares[-1]
    assert shares[-1] > 0.9


def with_box(fetch: int, edit: str = "") -> NewVersion:
    """Return a main text that contains a rotating box."""
    long = " ".join(f"{TEXT} {tail}" for tail in ("one", "two", "three", "four"))
    quote = " ".join("abcdefghij"[int(digit)] * 3 for digit in f"{fetch:06}")
    article = long.replace("two", edit or "two")
    return version(f"{article} {quote}", blocks=[(1, article), (2, quote)])


def watched(*versions: NewVersion) -> list[Change]:
    """Return the changes of successive versions."""
    changes, kept = [], build_first_version(versions[0])
    for seen in versions[1:]:
        change, kept = compare_versions(kept, seen)
        changes.append(change)
    return changes


def test_a_rotating_box_is_no_change_and_no_share() -> None:
    """A learned rotating box doesn't count as changed text, and the reason mentions it."""
    last = watched(*(with_box(fetch) for fetch in range(0, 80_000, 11_111)))[-1]
    assert not last.changed
    assert last.share == 0.0
    assert "rotating" in last.why


def test_an_edit_beside_a_rotating_box_is_a_change_of_its_own_share() -> None:
    """The share is closer to that of the edit alone than to the raw difference of the texts."""
    steps = [with_box(fetch) for fetch in range(0, 80_000, 11_111)]
    edit = " ".join(["another", "sentence", "stands", "here", "now"] * 2)
    edited = watched(*steps, with_box(99_999, edit))[-1]
    alone = compare_versions(build_first_version(steps[-1]), with_box(77_777, edit))[0].share
    raw = compare_versions(build_first_version(steps[-1]), with_box(99_999, edit), "bytes")[0].share
    assert edited.changed
    assert edited.share <= raw
    assert abs(edited.share - alone) <= 0.1


def test_links_are_counted() -> None:
    """Added and removed links count, in any order."""
    change, _ = compare_versions(
        build_first_version(version("a", links=range(100))), version("a", links=[*range(140, 4, -1)]), "links"
    )
    assert (change.links_added, change.links_removed) == (41, 5)


def test_many_links_are_estimated_from_a_bounded_sample() -> None:
    """Thousands of links need only a kilobyte, and the numbers are accurate to 20%."""
    old = build_first_version(version("a", links=range(6000)))
    change, kept = compare_versions(old, version("a", links=range(2000, 7000)), "links")
    assert len(kept.blob) < 1100
    assert change.links_added == pytest.approx(1000, abs=400)
    assert change.links_removed == pytest.approx(2000, abs=400)


@given(st.binary(max_size=100), st.integers(0, 60))
def test_a_torn_or_foreign_blob_is_no_blob(noise: bytes, cut: int) -> None:
    """The comparison continues as if nothing had been learned."""
    old, new = with_box(1), with_box(2)
    kept = build_first_version(old)
    bare = compare_versions(StoredVersion(*_but_blob(kept), b""), new)
    for blob in (noise, kept.blob[:cut], kept.blob[cut:] + noise, noise + kept.blob):
        if blob != kept.blob:
            assert compare_versions(StoredVersion(*_but_blob(kept), blob), new) == bare


def _but_blob(kept: StoredVersion) -> tuple[bytes, bytes, bytes, bytes, int]:
    return kept.body_digest, kept.text_print, kept.main_print, kept.sketch, kept.links_print


def test_a_sketch_of_another_length_is_no_ground_for_a_share() -> None:
    """A page that had no words before has changed, but the share is undefined."""
    change, _ = compare_versions(build_first_version(version("")), version(TEXT))
    assert change.changed
    assert change.share == 0.0


# The synthetic web knows when its texts changed; pages are cut into blocks here by the names and classes around them.


def place_of(node: LexborNode) -> int:
    """Return the location of an element, without its position."""
    path: list[str] = []
    at: LexborNode | None = node
    while at is not None and at.tag not in {"body", "html"}:
        path.append(f"{at.tag}.{at.attributes.get('class')}")
        at = at.parent
    return xxhash.xxh32_intdigest("/".join(path).encode())


def read(url: str, body: bytes, judged: str) -> NewVersion:
    """Return a page of the synthetic web, with the blocks of its main or whole text."""
    tree = LexborHTMLParser(body)
    whole, main = (tree.css(name)[0].text(separator=" ") for name in ("body", "main"))
    sketch = build_sketch(shingle_text(main))
    assert sketch is not None
    links = [link_print(urljoin(url, node.attributes["href"] or "")) for node in tree.css("a[href]")]
    blocks = [(place_of(node), node.text()) for node in tree.css(judged)[0].css("h1,h2,p,li,nav")]
    digest = xxhash.xxh3_128_digest(body)
    return NewVersion(digest, fingerprint_text(whole), fingerprint_text(main), sketch.mins, np.array(links), blocks)


def judge(world: SyntheticWorld, site: Site, number: int, rule: ChangeRule, days: int) -> Counter[tuple[bool, bool]]:
    """Return (truly changed, detected as changed) for daily fetches of a page; the first four days are for learning."""
    truth, table = page_truth(site, number), Counter[tuple[bool, bool]]()
    path = truth.url.partition(site.name)[2]
    bodies = [world.reply(WorldRequest(site.name, path), world.start_s + day * DAY_S + 1).body for day in range(days)]
    versions = [read(truth.url, body, "body" if rule == "text" else "main") for body in bodies]
    articles = [body.partition(b"</article>")[0] for body in bodies]
    kept = build_first_version(versions[0])
    for day in range(1, days):
        change, kept = compare_versions(kept, versions[day], rule)
        now_s = world.start_s + day * DAY_S + 1
        # Now and then an edit chooses the paragraph that stood there.
        edited = last_text_change_s(site, number, now_s) > now_s - DAY_S and articles[day] != articles[day - 1]
        if day > 3:
            table[edited, change.changed] += 1
    return table


@pytest.fixture(scope="module")
def steady_pages() -> tuple[SyntheticWorld, list[tuple[Site, int]]]:
    """Return pages of a calm world that neither move nor die."""
    world = open_synthetic_world("tiny", calm=True)
    pages = [(site, number) for site in world.sites.values() for number in range(min(12, site.births.stock))]
    truths = [page_truth(site, number) for site, number in pages]
    return world, [
        page for page, truth in zip(pages, truths, strict=True) if min(truth.died_s, truth.moved_s) == np.inf
    ]


@pytest.mark.parametrize(
    ("rule", "most_missed", "most_invented"),
    [("bytes", 0.0, 1.0), ("text", 0.0, 0.1), ("main", 0.0, 0.01), ("links", 1.0, 0.0)],
)
def test_the_made_webs_truth_is_found(
    steady_pages: tuple[SyntheticWorld, list[tuple[Site, int]]],
    rule: ChangeRule,
    most_missed: float,
    most_invented: float,
) -> None:
    """All rules detect edits, except links, which never change there; boxes and counters are ignored.

    The text rule also sees the build name in the footer, which is not an edit.
    """
    world, pages = steady_pages
    table = Counter[tuple[bool, bool]]()
    for site, number in pages:
        table += judge(world, site, number, rule, days=9)
    edits, calm = table[True, True] + table[True, False], table[False, True] + table[False, False]
    assert min(edits, calm) > 30
    assert table[True, False] <= most_missed * edits
    assert table[False, True] <= most_invented * calm
