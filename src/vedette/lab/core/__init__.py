"""The framework of the lab: experiments, plans, runner, run folders, reports, statistics."""
