"""Numbers that say how well a run went: pure functions of what happened and when."""
