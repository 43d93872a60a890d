"""Refresh plans of n days: which pages to fetch on which day, so that as few as possible are out of date.

Each page has 2^n plans, numbered by their fetches: bit t of a plan is set if it fetches on day t. The cost of a page
under a plan does not depend on the others (``refresh.outlook``), so they interact only through the daily budgets.

- ``two_days``: the exact optimum for two days as a flow.
- ``exact``: the exact optimum for any number of days, of few pages.
- ``lagrange``: a million pages, with a certified gap.

The experiment ``plans`` carries them out day by day.

Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, section 2.3.3.
"""
