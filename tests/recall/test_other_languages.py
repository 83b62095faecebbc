"""Conversations in other languages are found by inflected words, without an embedder."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.conversations import GoldConversation, load_conversations, merge_conversations

import eunoe

FOLDER = Path(__file__).parents[1] / "fixtures" / "languages"
FILES = sorted(FOLDER.glob("*.json"))
ANNA = {"user": "anna"}


def share_found(path: Path, conversation: GoldConversation, first: int) -> float:
    """The share of questions with a gold turn among the first hits."""
    with eunoe.open(path, embedder="none") as memory:
        memory.observe(ANNA, conversation.turns)
        hits = [{hit.id for hit in memory.recall(ANNA, asked.text, limit=first)} for asked in conversation.questions]
    found = [bool(ids & set(asked.gold)) for ids, asked in zip(hits, conversation.questions, strict=True)]
    return sum(found) / len(found)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_inflected_words_find_their_turn(file: Path, tmp_path: Path) -> None:
    assert share_found(tmp_path / "memory.db", load_conversations(file)[0], 5) >= 0.8


def test_twelve_languages_in_one_memory(tmp_path: Path) -> None:
    together = merge_conversations([load_conversations(file)[0] for file in FILES])
    assert share_found(tmp_path / "memory.db", together, 5) >= 0.85


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Die Häuser am Markt sind alt.", "Haus"),
        ("Der Küchenschrank kommt im Mai.", "Schränke"),
        ("Ich habe gestern gekündigt.", "Kündigung"),
        ("Die Straße ist gesperrt.", "STRASSE"),
        ("Le chat dort à l'école.", "écoles"),
        ("J'ai mangé au restaurant d'Hélène.", "Helene"),
        ("Las canciones que cantamos ayer", "¿canción?"),
        ("Mi señora vive en Logroño.", "senora"),
        ("Os irmãos falaram com o médico.", "medicos"),
        ("A reunião é na sala azul.", "Quando são as reuniões?"),
        ("Onde se compram os pães?", "pão"),
        ("La luz de la cocina no funciona.", "¿Dónde están las luces?"),
        ("Il lago è bello.", "Dove sono i laghi?"),
        ("Gli amici della nonna", "amico"),
        ("Książki są na półce.", "książka"),
        ("Мы купили новые книги.", "книга"),
        ("The invoice (счета) came by post.", "счет"),
        ("Я настроил programming server вчера.", "programs"),
        ("我家的猫生了四只小猫。", "猫"),
        ("東京へ行きました。", "東京"),
        ("자전거를 도둑맞았어요.", "자전거가"),
        ("แมวของฉันชื่อมะลิ", "มะลิ"),
        ("We met Robert Mueller.", "Who is Müller?"),
        ("We met Robert Müller.", "Who is Mueller?"),
        ("We met Robert Müller.", "Muller"),
        ("We stayed in Aarhus.", "Århus?"),
        ("We met at the cafe\u0301.", "CAFE"),
    ],
)
def test_a_form_of_a_word_is_found(memory: eunoe.Memory, said: str, asked: str) -> None:
    memory.observe(ANNA, [{"content": "Nothing of that kind here."}, {"content": said, "id": "said"}, {"content": "…"}])
    assert memory.recall(ANNA, asked)[0].id == "said"


def test_an_english_question_takes_no_other_words_for_its_own(memory: eunoe.Memory) -> None:
    memory.remember(ANNA, "The carpet is red.", id="carpet")
    memory.remember(ANNA, "The carpenters came.", id="carpenter")
    assert not memory.recall(ANNA, "What is that car?")
