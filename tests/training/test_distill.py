"""What a student is shown: batches of texts, of talk and of teachers' similarities."""

import random
from importlib import import_module
from types import ModuleType

import pytest

torch = pytest.importorskip("torch", reason="training needs torch (training/requirements.txt), which is not installed")


@pytest.fixture(scope="module")
def distill() -> ModuleType:
    return import_module("distill")


@pytest.fixture
def settings(distill: ModuleType) -> object:
    import corpus

    chosen = {name: value for name, value in corpus.load_settings()["student"].items() if name != "seeds"}
    return distill.StudentSettings(seed=1, **chosen)


def test_a_quarter_of_a_batch_of_texts_is_foreign(distill: ModuleType, settings: object) -> None:
    from texts import TextPool

    pool = TextPool()
    for group in range(20):
        pool.add_group(f"text {group} {number}" for number in range(100))
    for number in range(500):
        pool.add_translation(f"texto {number}", f"text 0 {number % 100}")
    settings.text_batch = 120
    batch = distill._text_batch(pool, settings, random.Random(1))
    foreign = [text for text, _ in batch if text.startswith("texto")]
    assert len(foreign) == 30
    english = [(text, place) for text, place in batch if not text.startswith("texto")]
    assert all(pool.english[place] == text for text, place in english)
    assert len({place for _, place in english}) == len(english) <= 90


def test_a_translated_question_is_read_in_english_by_the_teachers(distill: ModuleType, settings: object) -> None:
    import corpus

    asked = corpus.GoldQuery("What did Mara buy?", [1], translations=["Was hat Mara gekauft?"])
    stream = corpus.TalkStream("a", "friends", ["Hello.", "A kayak."], ["Mara", "Mara"], ["1", "1"], [asked], [])
    settings.conversations, settings.translated = 2, 1.0
    batch = next(distill._talk_batches([stream], settings))
    assert batch.queries == ["Was hat gekauft?"] * 2
    assert batch.english == ["What did buy?"] * 2
    assert batch.gold == [[1], [3]], "places among the turns of all conversations of the batch"


def test_the_first_teacher_does_not_count_in_technical_text(distill: ModuleType) -> None:
    teachers = distill.Teachers([])
    first, second = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    both = torch.cat([first, first])
    similar = teachers.similarities([both, both], [first, second], torch.tensor([False, True]))
    assert similar.tolist() == [[0.5], [0.0]]
    alone = teachers.similarities([both], [first], torch.tensor([False, True]))
    assert alone.tolist() == [[1.0], [1.0]]


def test_all_stages_in_their_order(distill: ModuleType) -> None:
    import corpus
    import make

    teachers, second, *last = make.stage_waves(corpus.load_settings())
    assert [stage[0] for stage in teachers] == ["teacher"] * 7
    assert [stage[-1] for stage in teachers[4:]] == ["0", "1", "2"]
    assert [stage[0] for stage in second] == ["opinions"] * 3 + ["student"] * 3
    assert [stage[0] for (stage,) in last] == ["encoder", "reranker"]
