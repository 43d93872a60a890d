"""Background jobs pause in proportion to their CPU time, not to their wall time."""

import time

from vedette.runtime.processes.background import BackgroundJob

DAYS_S = 1e6
STEPS = 3_000


def test_what_waited_for_the_processor_does_not_rest_for_that() -> None:
    """By the clock of who asks it took days, and it worked for a moment: it may begin again within the hour."""
    aside = BackgroundJob("vedette")
    aside.start(0.0, "--version")
    for step in range(STEPS):
        if aside.is_ready(DAYS_S + step):
            break
        time.sleep(0.01)
    assert aside.is_ready(DAYS_S + STEPS)
