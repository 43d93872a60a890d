"""``resolve`` agrees with every case of the web-platform-tests for the URL standard."""

import json
import os
from pathlib import Path
from typing import TypedDict, cast

import pytest
from ada_url import URL

from vedette.discover.urls.normalize import resolve


class Case(TypedDict, total=False):
    """A case of the suite: ``href`` is the result, and ``failure`` is set if there is none."""

    input: str
    base: str | None
    href: str
    failure: bool


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Return the cases, without comments."""
    data = os.environ.get("VEDETTE_DATA")
    if not data:
        pytest.skip("VEDETTE_DATA is not set: it names the folder with conformance/urls/wpt-urltestdata.json")
    text = (Path(data) / "conformance" / "urls" / "wpt-urltestdata.json").read_text(encoding="utf-8")
    return [cast("Case", case) for case in json.loads(text) if isinstance(case, dict)]


def of_the_web(href: str | None) -> str | None:
    """Return what ``resolve`` should return for a result of the standard."""
    web = href is not None and href.startswith(("http:", "https:"))
    return href.partition("#")[0] if href is not None and web else None


def test_every_case_agrees(cases: list[Case]) -> None:
    """Web pages get their href without the fragment; failures and other schemes get None."""
    wrong = [case for case in cases if resolve(case["input"], case["base"]) != of_the_web(case.get("href"))]
    assert len(cases) > 800
    assert wrong == []


def parsed(link: str, base: str | None) -> str | None:
    """Return the parser's own result, for text without lone surrogates."""
    try:
        return URL(link, base).href
    except ValueError:
        return None


def test_every_input_against_every_base_agrees_with_the_parser(cases: list[Case]) -> None:
    """Links that are resolved without the parser get the same result as with it, whatever the base."""
    links = list(dict.fromkeys(case["input"] for case in cases if case["input"].isprintable()))
    bases = list(dict.fromkeys(case["base"] for case in cases))
    wrong = [(a, b) for a in links for b in bases if resolve(a, b) != of_the_web(parsed(a, b))]
    assert wrong == []
