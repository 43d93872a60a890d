"""Pages of several releases: which of them belong together, and which one is the newest."""

import numpy as np
import pytest

from vedette.index.versions import match_releases, version_key_of

HOST = "https://docs.example.org"


@pytest.mark.parametrize(
    "paths",
    [
        ("/docs/2.8/setup.html", "/docs/3.0/setup.html", "/docs/10.1/setup.html", "/docs/latest/setup.html"),
        ("/docs/master/setup", "/docs/v2/setup", "/docs/v3/setup/", "/docs/setup/index.html"),
        ("/090/setup", "/10/setup.html", "/24/setup", "/setup.html"),
        ("/docs/release-1.9/setup", "/docs/release-1.18/setup"),
        ("/3.11.9/setup", "/3.11.x/setup"),
        ("/docs/2.8/", "/docs/3.0/index.html", "/docs/"),
    ],
)
def test_releases_of_one_page_belong_together_in_their_order(paths: tuple[str, ...]) -> None:
    """They are one family, oldest first.

    Numbers are compared as numbers, and a page without a release is the current one.
    """
    keys = [version_key_of(HOST + path, "Setup") for path in paths]
    assert len({key.family for key in keys}) == 1
    releases = [key.release for key in keys]
    assert releases == sorted(releases)
    assert releases[0] < releases[-1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/rooms/12/plan", "/rooms/13/plan"),
        ("/2017/03/30/news", "/2018/03/30/news"),
        ("/releases/2.8.html", "/releases/3.0.html"),
        ("/docs/2.8/setup", "/docs/2.8/upgrade"),
        ("/docs/2.8/setup?page=1", "/docs/3.0/setup?page=2"),
        ("/a/2.8/setup", "/b/2.8/setup"),
        ("/2/", "/3/"),
    ],
)
def test_numbers_that_are_no_releases_keep_pages_apart(one: str, other: str) -> None:
    """Rooms, days, release notes and different pages of a manual stay separate."""
    assert version_key_of(HOST + one, "Plan").family != version_key_of(HOST + other, "Plan").family


def test_pages_with_other_titles_are_other_pages() -> None:
    """If paths look like releases, the title decides."""
    assert version_key_of(f"{HOST}/12/a", "Room 12").family != version_key_of(f"{HOST}/13/a", "Room 13").family


def test_release_numbers_in_titles_do_not_keep_releases_apart() -> None:
    """Manuals repeat the release in every title, even on pages of the current release."""
    titled = [("2.8", "Setup — Tide 2.8"), ("3.0rc1", "Setup — Tide 3.0rc1"), ("latest", "Setup — Tide 3.1.4")]
    assert len({version_key_of(f"{HOST}/docs/{folder}/setup", title).family for folder, title in titled}) == 1


def test_a_query_with_dots_names_a_folder_without() -> None:
    """A site may call the folder of release 2.8 "28", and that of 0.8.2 "082"."""
    keys = [version_key_of(f"{HOST}/{folder}/setup", "Setup") for folder in ("082", "28", "38")]
    releases = np.array([key.release for key in keys])
    assert match_releases(releases, ["2.8"]).tolist() == [False, True, False]
    assert match_releases(releases, ["0.8.2"]).tolist() == [True, False, False]
