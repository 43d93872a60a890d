"""Simulated visitors with known habits, who search a real server over real HTTP and open what they find.

They give the demo's console something to show, and learning policies a ground truth to be tested against: how people
read a page of results is defined in ``habits``, and their actions are drawn from it. ``population`` decides, with
neither clock nor socket; ``browser`` and ``traffic`` carry it out. ``queries`` has what people want, which drifts, and
how they type it. ``recorded_clicks`` has visitors fitted to a recorded log instead.
"""
