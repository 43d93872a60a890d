"""The campaign store: advertisers, campaigns and ads are saved and loaded, in folders of any format."""

import shutil
from pathlib import Path

import pytest
from tests.data_folders import AD, OLD_MARKET, opened

from vedette.adapters.ads.campaign_store import CampaignStore

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize("number", [2, 7, 8])
def test_older_folders_have_an_empty_market(number: int, tmp_path: Path) -> None:
    """Formats before 8 had no ads; the stored sample has an advertiser, a campaign and an ad."""
    folder = shutil.copytree(GOLDEN / f"format-{number}", tmp_path / "data")
    with opened(folder) as state:
        market = CampaignStore(state.db)
        found = [*market.list_advertisers(), *market.list_campaigns(), *market.list_ads()]
        assert found == (OLD_MARKET if number >= 8 else [])
        assert market.save_ad(AD._replace(id=0)) == (2 if number >= 8 else 1)
