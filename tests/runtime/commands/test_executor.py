"""Operator commands are executed as a whole, logged, and undone as a whole."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.data_folders import NOW_S, opened

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.search_store import UserKeyRow
from vedette.errors import StoreCorrupt, UsageError, VedetteError
from vedette.model import Site
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.commands.operator import FolderOperator
from vedette.web.auth.tokens import hash_secret
from vedette.web.commands.commands import (
    AddRules,
    AddSite,
    Command,
    CreateKey,
    Dismiss,
    ImportSites,
    PauseSite,
    RemoveRules,
    RemoveSite,
    ReplaceToken,
    RevokeKey,
    Rule,
    SetSite,
    Undo,
    command_from_json,
    command_to_json,
)

STARTS = ("https://example.org/", "https://example.com/docs/", "https://example.net/")
start = st.sampled_from(STARTS)
site = st.builds(
    Site,
    start=start,
    delay_s=st.none() | st.floats(0, 100),
    exclude=st.lists(st.sampled_from(["/a", "/b*"]), max_size=2).map(tuple),
)
rule = st.builds(
    Rule, st.sampled_from(["block", "raise", "lower"]), st.just(""), st.sampled_from(["example.org", "example.com"])
) | st.builds(Rule, st.sampled_from(["synonym", "pin"]), st.sampled_from(["a", "b"]), st.sampled_from(["a", "b", "c"]))
order: st.SearchStrategy[Command] = st.one_of(
    st.builds(AddSite, site, st.booleans()),
    st.builds(SetSite, start, st.fixed_dictionaries({"delay_s": st.none() | st.floats(0, 9)}), st.just("delay")),
    st.builds(PauseSite, start, st.booleans()),
    st.builds(RemoveSite, start, st.booleans()),
    st.builds(ImportSites, st.lists(st.tuples(site, st.booleans()), min_size=1, max_size=3).map(tuple)),
    st.builds(AddRules, st.lists(rule, min_size=1, max_size=3).map(tuple)),
    st.builds(RemoveRules, st.lists(rule, min_size=1, max_size=1).map(tuple)),
    st.builds(
        lambda name: CreateKey(UserKeyRow(name, "00", {"scopes": ["search"], "rate": None, "sites": []}, 0.0)),
        st.just("k"),
    ),
    st.builds(RevokeKey, st.just("k")),
)


def read_state(state: State) -> object:
    """Return everything that commands change."""
    sites = sorted((row.site.start, row.site, row.paused) for row in state.store.list_sites())
    rules = sorted((row.kind, *sorted((row.query, row.value))) for row in state.store.list_search_rules())
    keys = sorted((row.name, row.revoked_s is None) for row in state.store.list_user_keys() if row.revoked_s is None)
    return sites, rules, keys


@example(
    [AddRules((Rule("block", "", "a.test"), Rule("raise", "", "a.test")))], RemoveRules((Rule("raise", "", "a.test"),))
)
@given(st.lists(order, max_size=6), order)
def test_every_command_can_be_undone_and_redone(before: list[Command], last: Command) -> None:
    """After an undo everything is as before the command, and after undoing that as after it."""
    with TemporaryDirectory() as folder, opened(Path(folder) / "data") as state:
        for one in before:
            try_out(state, one)
        was = read_state(state)
        action = try_out(state, last)
        if action is not None:
            done = read_state(state)
            undone = execute_command(Undo(action), state, NOW_S, "a test").action
            assert read_state(state) == was
            if can_be_undone(state, undone):
                execute_command(Undo(undone), state, NOW_S, "a test")
                assert read_state(state) == done


def try_out(state: State, one: Command) -> int | None:
    """Return the number of the action if it can be undone; None if it was refused or changed nothing."""
    before = read_state(state)
    try:
        action = execute_command(one, state, NOW_S, "a test").action
    except VedetteError:
        assert read_state(state) == before
        return None
    return action if can_be_undone(state, action) else None


def can_be_undone(state: State, action: int) -> bool:
    """Check whether its log row has an inverse."""
    row = state.store.find_action(action)
    return row is not None and bool(row.action.undo)


def test_the_log_has_each_action_its_author_and_whether_it_can_be_undone(tmp_path: Path) -> None:
    """An action can be undone once, and the log shows which ones can't."""
    with opened(tmp_path / "data") as state:
        added = execute_command(AddSite(Site(STARTS[0])), state, NOW_S, "the console").action
        execute_command(Undo(added), state, NOW_S + 1, "the command line")
        token = execute_command(ReplaceToken(hash_secret("vt_x")), state, NOW_S + 2, "the console").action
        rows = {row.id: row for row in state.store.list_actions(10)}
        assert (rows[added].undone_s, rows[added].action.who) == (NOW_S + 1, "the console")
        assert STARTS[0] in rows[added].action.what
        for number, word in ((added, "already"), (token, "cannot"), (999, "no action")):
            with pytest.raises(UsageError, match=word):
                execute_command(Undo(number), state, NOW_S, "the console")


def test_a_new_token_ends_all_sessions(tmp_path: Path) -> None:
    """Earlier sessions end; signing out ends only that session. This does not need a coordinator."""
    operator = FolderOperator(tmp_path / "data")
    with opened(tmp_path / "data") as state:
        execute_command(ReplaceToken(hash_secret("vt_one")), state, NOW_S, "a test")
    for name in ("a", "b"):
        operator.open_session(hash_secret(name), NOW_S, "a test")
    operator.close_session(hash_secret("a"))
    assert [operator.session_opened_s(hash_secret(name)) for name in ("a", "b", "c")] == [None, NOW_S, None]
    with opened(tmp_path / "data") as state:
        execute_command(ReplaceToken(hash_secret("vt_two")), state, NOW_S, "a test")
    assert operator.session_opened_s(hash_secret("b")) is None
    assert operator.is_operator_token("vt_two")


def test_old_sessions_are_deleted_and_a_session_is_no_path(tmp_path: Path) -> None:
    """A cookie can't name another file, and files of expired sessions are deleted when another is opened."""
    with opened(tmp_path / "data"):
        operator = FolderOperator(tmp_path / "data")
    operator.open_session(hash_secret("old"), NOW_S, "a test")
    operator.open_session(hash_secret("new"), NOW_S + 13 * 3600, "a test")
    assert [path.name for path in (tmp_path / "data" / "sessions").iterdir()] == [hash_secret("new")]
    assert operator.session_opened_s("../format") is None
    operator.close_session("../format")
    assert (tmp_path / "data" / "format").exists()


def test_the_secret_stays_and_differs_from_folder_to_folder(tmp_path: Path) -> None:
    """The servers' signing secret survives a restart, and differs between folders."""
    found = []
    for name in ("one", "one", "two"):
        with opened(tmp_path / name) as state:
            found.append(state.store.read_secret())
    assert found[0] == found[1] != found[2]
    assert len(found[0]) >= 32


@given(st.one_of(order.filter(lambda one: not isinstance(one, CreateKey)), st.builds(Dismiss, st.just("example.org"))))
def test_an_order_is_kept_as_it_was(one: Command) -> None:
    """It is the same command after saving and loading."""
    assert command_from_json(json.loads(json.dumps(command_to_json(one)))) == one


@pytest.mark.parametrize(
    "report", [None, [], {}, {"order": "format_disk"}, {"order": "add_site", "site": {"start": 1, "x": 2}}]
)
def test_an_order_that_makes_no_sense_is_damage(report: object) -> None:
    """It is reported, and nothing is done."""
    with pytest.raises(StoreCorrupt, match="restore"):
        command_from_json(report)
