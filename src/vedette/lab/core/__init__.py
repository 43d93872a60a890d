"""Framework of the lab: experiments, plans, runner, run folders, reports, statistics."""
