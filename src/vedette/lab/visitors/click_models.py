"""Visitors that click as a model says which was fitted to a real log: for policies that learn from clicks.

``reading`` is a public with stated habits; here the habits are those of people who were recorded.
"""

import numpy as np

from vedette.learn.clicks.examination import CascadeModel, PositionModel
from vedette.learn.clicks.impressions import Bools
from vedette.policy import Floats, Ints


def draw_position_clicks(model: PositionModel, result: Ints, rng: np.random.Generator) -> Bools:
    """The clicks of searches that show these results: each place on its own."""
    return rng.random(result.shape) < model.examined[: result.shape[1]] * model.attraction[result]


def draw_cascade_clicks(model: CascadeModel, result: Ints, rng: np.random.Generator) -> Bools:
    """The clicks of searches that are read from the top, until content or tired."""
    searches, places = result.shape
    clicked = np.zeros((searches, places), bool)
    reads = np.ones(searches, bool)
    for place in range(places):
        clicked[:, place] = reads & (rng.random(searches) < model.attraction[result[:, place]])
        content = clicked[:, place] & (rng.random(searches) < model.satisfaction)
        reads &= ~content & (rng.random(searches) < model.perseverance)
    return clicked


def examination_probabilities(model: PositionModel | CascadeModel, result: Ints) -> Floats:
    """How probably each place of searches is looked at, before anything was clicked."""
    if isinstance(model, PositionModel):
        return np.broadcast_to(model.examined[: result.shape[1]], result.shape).copy()
    passed = model.perseverance * (1 - model.attraction[result] * model.satisfaction)
    chances = np.cumprod(passed, axis=1)
    return np.concatenate([np.ones((len(result), 1)), chances[:, :-1]], axis=1)
