"""Refresh plans of n days: which pages to fetch on which day, so that as few as possible are out of date.

Each page has 2^n plans, numbered by their fetches: bit t of a plan is set where it fetches on day t. What a page costs
under a plan does not depend on the others (``outlook``), so they meet in the daily budgets alone.

- ``two_days``: the costs of the print, and the exact optimum for two days as a flow.
- ``exact``: the exact optimum for any number of days, of few pages.
- ``lagrange``: a million pages, with a certified gap.

Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, section 2.3.3.
"""

from vedette.lab.baselines.plans.exact import best_plans
from vedette.lab.baselines.plans.lagrange import CertifiedPlans, solve_certified
from vedette.lab.baselines.plans.two_days import TwoDays, best_two_days, two_day_costs
from vedette.refresh.outlook import Outlook, compute_outlook, format_plan, memoryless_outlook, plan_costs, plan_matrix

__all__ = [
    "CertifiedPlans",
    "Outlook",
    "TwoDays",
    "best_plans",
    "best_two_days",
    "compute_outlook",
    "format_plan",
    "memoryless_outlook",
    "plan_costs",
    "plan_matrix",
    "solve_certified",
    "two_day_costs",
]
