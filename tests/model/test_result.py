import copy
import pickle
from dataclasses import asdict, replace

import pytest

import eunoe
from eunoe.cli.output import plain
from eunoe.model.hit import Hit, Reason
from eunoe.model.message import Message

REASONS = (Reason("lexical", 0.75, "tea"), Reason("dense", 0.25))
ITEM = Message(text="Tea, please.", id="m1")


def late() -> Hit:
    return Hit.late(ITEM, 0.5, lambda: ITEM, lambda: REASONS)


def test_a_hit_that_is_yet_to_be_looked_at_is_like_any_other() -> None:
    ready = Hit(ITEM, 0.5, REASONS)
    for hit in (ready, late(), pickle.loads(pickle.dumps(late()))):
        assert (hit.id, hit.kind, hit.text, hit.source, hit.item) == ("m1", "message", "Tea, please.", ("m1",), ITEM)
    assert late() == ready
    assert repr(late()) == repr(ready)
    assert late().reasons == REASONS
    assert asdict(late()) == asdict(ready)
    assert plain(late()) == plain(ready)
    assert replace(late(), score=0.25) == replace(ready, score=0.25)


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda hit: pickle.loads(pickle.dumps(hit))])
def test_a_copy_of_a_hit_carries_its_reasons(twin) -> None:  # type: ignore[no-untyped-def]
    assert twin(late()) == late()
    assert twin(late()).reasons == REASONS


def test_hits_can_be_kept_in_a_set() -> None:
    unhashable = replace(ITEM, metadata={"tags": ["tea"]})
    ready = Hit(unhashable, 0.5, REASONS)
    twin = Hit.late(unhashable, 0.5, lambda: unhashable, lambda: REASONS)
    assert {ready, twin, pickle.loads(pickle.dumps(twin))} == {ready}
    assert len({ready, replace(ready, score=0.25), replace(ready, item=replace(ITEM, id="m2"))}) == 3


def test_reasons_are_worked_out_once() -> None:
    calls: list[int] = []
    hit = Hit.late(ITEM, 0.5, lambda: ITEM, lambda: (calls.append(1), REASONS)[1])  # type: ignore[func-returns-value]
    assert hit.reasons is hit.reasons
    assert calls == [1]


def test_a_hit_has_nothing_else() -> None:
    with pytest.raises(AttributeError, match="colour"):
        late().colour  # type: ignore[attr-defined]  # noqa: B018


def test_a_hit_outlives_its_memory() -> None:
    with eunoe.open(":memory:") as memory:
        memory.remember("user=anna", "Anna drinks green tea.")
        (hit,) = memory.recall("user=anna", "Which tea?")
    assert hit.reasons
    assert pickle.loads(pickle.dumps(hit)) == hit
