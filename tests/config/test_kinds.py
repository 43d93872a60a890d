"""The settings of sponsored results are parsed strictly."""

import pytest

from vedette.config import Serve, parse
from vedette.errors import ConfigError


def test_settings_of_sponsored_results() -> None:
    """Ads are off by default, and each setting is parsed into its field."""
    assert not Serve().sponsored
    text = '[serve]\nsponsored = true\nsponsored_slots = 3\nsponsored_reserve = "0.10"\ntime_zone = "Europe/Berlin"\n'
    serve = parse(text, "vedette.toml").serve
    assert (serve.sponsored, serve.sponsored_slots, serve.sponsored_reserve) == (True, 3, "0.10")
    assert serve.time_zone == "Europe/Berlin"


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ('sponsored = "yes"', "true or false"),
        ("sponsored = 1", "true or false"),
        ("sponsored_slots = 0", "1"),
        ("sponsored_exploration = 0.5", "whole number"),
        ("sponsored_reserve = 0.05", "as a string"),
        ('sponsored_reserve = "0.00"', "as a string"),
        ('sponsored_reserve = "-1.00"', "as a string"),
        ('time_zone = "Mars/Olympus"', "time zone"),
        ('time_zone = "../../etc/passwd"', "time zone"),
        ("time_zone = 2", "time zone"),
    ],
)
def test_a_wrong_value_is_told(line: str, advice: str) -> None:
    """The error says what to write instead."""
    with pytest.raises(ConfigError, match=advice):
        parse(f"[serve]\n{line}\n", "vedette.toml")
