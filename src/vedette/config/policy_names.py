"""Names of the policies that settings may choose, the default of each kind first.

The registries have the policies themselves. Here are only the names, since every command reads the configuration, and
importing all policies takes longer than most commands run; a test compares both.
"""

REFRESH_POLICIES = (
    "expected-gain",
    "nutch",
    "uniform",
    "stormcrawler",
    "freshness",
    "lambdacrawl",
    "user-centric",
    "sbr",
    "ebr",
    "greedy-c1",
    "greedy-c2",
    "n-day",
    "proportional",
)
# Those for general use come before those for research.
NAMED_DISCOVERY_POLICIES = ("accrual", "thompson", "round-robin")
DISCOVERY_POLICIES = (
    *NAMED_DISCOVERY_POLICIES,
    "research:batch-bandit",
    "research:pham",
    "research:pham-scaled",
    "research:random",
)
NAMED_AD_POLICIES = ("paced", "believed", "bmix-e")
AD_POLICIES = (
    *NAMED_AD_POLICIES,
    "research:greedy",
    "research:msvv",
    "research:mix",
    "research:bmix",
    "research:bmix-t",
    "research:bmix-et",
    "research:linear",
    "research:two-level",
)
PROMOTIONS = ("prospect", "selective", "relaxed-selective")
