"""The fit of the default recipe speaks of the signals that there are. scipy, which it minimizes with, stands aside."""

import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from bench.conversations import load_conversations

from eunoe.recall.recipes import RECIPES, Blend

TRAINING = Path(__file__).parents[2] / "training"
NOT_SIGNALS = {"bias", "size_penalty", "weights"}


@pytest.fixture(scope="module")
def fit_recipe() -> Iterator[ModuleType]:
    optimize = SimpleNamespace(minimize=None, minimize_scalar=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TRAINING))
        patch.setitem(sys.modules, "scipy", SimpleNamespace(optimize=optimize))
        patch.setitem(sys.modules, "scipy.optimize", optimize)
        import fit_recipe

        yield fit_recipe
    for name in ("fit_recipe", "talk"):
        sys.modules.pop(name, None)


def test_every_signal_is_fitted_or_set_by_hand(fit_recipe: ModuleType) -> None:
    names = {field.name for field in fields(Blend)}
    assert set(fit_recipe.NAMES) | set(fit_recipe.SET_BY_HAND) == names - NOT_SIGNALS
    assert not set(fit_recipe.NAMES) & set(fit_recipe.SET_BY_HAND)


def test_what_is_set_by_hand_ships(fit_recipe: ModuleType) -> None:
    shipped = RECIPES["default"]
    for blend in (shipped.blend, *shipped.blends_by_model[fit_recipe.OWN_MODEL]):
        assert {name: getattr(blend, name) for name in fit_recipe.SET_BY_HAND} == fit_recipe.SET_BY_HAND
    without_vectors = {name: getattr(shipped.lexical_blend, name) for name in fit_recipe.SET_BY_HAND}
    assert without_vectors == {**fit_recipe.SET_BY_HAND, "later": 0}


def test_what_is_printed_is_the_blend(fit_recipe: ModuleType) -> None:
    weights = np.arange(len(fit_recipe.NAMES)) / 4
    blend = fit_recipe.make_blend(weights, fit_recipe.NAMES, -5.0)
    printed = fit_recipe.format_blend(blend, 0.75)
    assert eval(printed, {"Blend": Blend}) == replace(blend, size_penalty=0.75)


def test_the_evidence_has_every_signal(fit_recipe: ModuleType) -> None:
    conversation = load_conversations()[0]
    short = replace(conversation, questions=conversation.questions[:3])
    source = fit_recipe.EmbedderVectors("none")
    evidence = fit_recipe.ConversationEvidence(short, source, fit_recipe.WORDS_ONLY)
    assert evidence.signals.shape == (3, len(short.turns), len(fit_recipe.WORDS_ONLY))
    assert (evidence.signals[:, :, fit_recipe.WORDS_ONLY.index("term")].max(axis=1) > 0).all()
    recipe = fit_recipe.shipped_recipe()
    assert fit_recipe.best_candidates(evidence.index, short.questions[0].text, source, recipe, "")[0].score > 0
