"""Why an ad is shown or not shown for a search, in plain words for administrators and advertisers."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from vedette.serve.ads.matching import MatchType, Target, is_match
from vedette.serve.ads.selection import Standing
from vedette.web.ads.ports import AdExplanation, AdLine, CampaignLine
from vedette.web.commands.ads_text import format_target


class AdSituation(NamedTuple):
    """The inputs of an explanation: the ad and its campaign, its position, and the minimum price of a click.

    ``left`` is what may still be charged today, of the campaign's budget or the advertiser's; ``by_advertiser`` says
    which.
    """

    line: AdLine
    campaign: CampaignLine | None
    standing: Standing
    reserve: Decimal
    left: Decimal = Decimal(0)
    by_advertiser: bool = False


def explain_ad(query: str, found: AdSituation) -> AdExplanation:
    """Explain in plain words why an ad is shown for a search or not, and what would help."""
    line, standing = found.line, found.standing
    if line.state != "shown" or found.campaign is None:
        return _answer(query, line, shown=False, reason=f"It is not running: {line.state}.", advice=_START[line.state])
    if not standing.cause:
        reason = (
            f"It is shown in position {standing.slot + 1} for its phrase “{standing.phrase}”. "
            f"A click would cost {standing.price}."
        )
        return _answer(query, line, shown=True, reason=reason)
    reason, advice = {
        "match": _explain_match,
        "reserve": _explain_reserve,
        "spent": _explain_spent,
        "resting": _explain_resting,
        "held": _explain_held,
        "rank": _explain_rank,
    }[standing.cause](query, found, found.campaign)
    return _answer(query, line, shown=False, reason=reason, advice=advice)


_START = {
    "waits to be approved": "The operator must approve it first.",
    "revoked": "Edit it and have it approved again.",
    "its campaign is gone": "Submit it again in another campaign.",
    "its campaign is paused": "Resume the campaign.",
    "not on these days": "Change the campaign's first or last day.",
    "shown": "",
}


def _answer(query: str, line: AdLine, *, shown: bool, reason: str, advice: str = "") -> AdExplanation:
    stats = line.figures
    lost = [
        f"{times} times {words}"
        for times, words in (
            (stats.lost_rank, "because other ads were expected to earn more"),
            (stats.lost_budget, "because its budget was spent"),
            (stats.lost_reserve, "because its bid was below the minimum price"),
        )
        if times
    ]
    matches = stats.shown + stats.lost_rank + stats.lost_budget + stats.lost_reserve
    missed = f"; it was not shown {_join(lost)}" if lost else ""
    history = f"In the last 30 days {matches} searches matched it, and it was shown {stats.shown} times{missed}."
    return AdExplanation(line.ad.id, query, shown, reason, advice, history)


def _join(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _explain_match(query: str, found: AdSituation, _campaign: CampaignLine) -> tuple[str, str]:
    ad = found.line.ad
    targets = [Target(ad.id, MatchType(each.way), each.phrase) for each in ad.targets]
    if any(is_match(target, query) for target in targets):
        away = next((text for text in ad.negatives if is_match(Target(ad.id, MatchType.BROAD, text), query)), "")
        return f"The search contains the negative phrase “{away}”.", f"Remove “{away}” from the negative phrases."
    phrases = ", ".join(f"{each.way} “{format_target(each)}”" for each in ad.targets[:10])
    return (
        f"The search matches none of its phrases: {phrases}.",
        "Add a phrase with the words of this search; broad phrases match the most searches.",
    )


def _explain_reserve(_query: str, found: AdSituation, _campaign: CampaignLine) -> tuple[str, str]:
    return (
        f"Its bid of {found.standing.bid} is below {found.reserve}, the minimum price per click here.",
        f"Bid {found.reserve} or more.",
    )


def _explain_spent(_query: str, found: AdSituation, campaign: CampaignLine) -> tuple[str, str]:
    if found.by_advertiser:
        return (
            f"The advertiser's budget for today across all campaigns is spent; {found.left} is left.",
            "It resets at midnight. The operator can raise it.",
        )
    row = campaign.campaign
    return (
        f"Today's campaign budget is spent: {campaign.today.charged} of {row.budget}.",
        "It resets at midnight. With a larger budget the ad is shown longer.",
    )


def _explain_resting(_query: str, _found: AdSituation, campaign: CampaignLine) -> tuple[str, str]:
    spent = f"{campaign.today.charged} of {campaign.campaign.budget}"
    reason = (
        f"Its campaign is paced so that the budget lasts through the day: {spent} is spent, more than the share of "
        "searches that a typical day has had by now."
    )
    return reason, "It is shown again as more searches come in. With a larger budget it pauses less."


def _explain_held(_query: str, found: AdSituation, _campaign: CampaignLine) -> tuple[str, str]:
    return (
        f"The remaining {found.left} for today is reserved for clicks on impressions that were just shown.",
        "It is shown again within ten minutes if those clicks do not happen.",
    )


def _explain_rank(_query: str, found: AdSituation, _campaign: CampaignLine) -> tuple[str, str]:
    standing = found.standing
    others = "Another ad is" if standing.better == 1 else f"{standing.better} other ads are"
    needed = f"A bid of {standing.needed} would be enough right now. " if standing.needed else ""
    return (
        f"{others} shown instead and expected to earn more, by bid and click rate, than this ad at {standing.bid}.",
        f"{needed}Ads that are clicked more often need lower bids.",
    )
