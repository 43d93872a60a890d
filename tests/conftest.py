"""How hard the properties are tried: ``VEDETTE_PROVE=1`` tries twenty times as many examples.

Both profiles draw the same examples on every run, so a failure that one person sees is a failure that all see. There
is no deadline: how long an example takes says more about the machine than about the code.
"""

import os

from hypothesis import HealthCheck, settings

MODEST = 100
PROVE_TIMES = 20

settings.register_profile(
    "test",
    max_examples=MODEST,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],  # it measures the machine
)
settings.register_profile("prove", settings.get_profile("test"), max_examples=MODEST * PROVE_TIMES)
settings.load_profile("prove" if os.environ.get("VEDETTE_PROVE") == "1" else "test")
