"""Refresh plans of n days: which pages to fetch on which day, so that as few as possible are out of date.

Each page has 2^n plans, numbered by their fetches: bit t of a plan is set where it fetches on day t. What a page costs
under a plan does not depend on the others (``refresh.outlook``), so they meet in the daily budgets alone.

- ``two_days``: the exact optimum for two days as a flow.
- ``exact``: the exact optimum for any number of days, of few pages.
- ``lagrange``: a million pages, with a certified gap.

The experiment ``plans`` carries them out day by day.

Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, section 2.3.3.
"""
