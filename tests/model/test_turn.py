"""The order of a chat is read from what each message was put after, and survives what is removed."""

from hypothesis import given
from hypothesis import strategies as st

from eunoe.model.message import Message
from eunoe.model.turn import AFTER, hand_on, in_order


def message(id: str, after: str, role: str = "user") -> Message:
    return Message(id=id, role=role, text=id, metadata={AFTER: after})


def ids(messages: list[Message]) -> str:
    return " ".join(each.id for each in messages)


def test_what_came_later_stands_right_behind_what_it_names() -> None:
    chat = [message("a", ""), message("b", "a"), message("c", "b"), message("x", "a"), message("y", "x")]
    assert ids(in_order(chat)) == "a x y b c"


def test_prompts_are_no_part_of_a_chat_and_what_names_nothing_known_stands_at_its_end() -> None:
    chat = [message("a", ""), message("b", "a"), message("x", "a"), message("p", "a", "system"), message("c", "gone")]
    assert ids(in_order(chat)) == "a x b c"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=20))
def test_the_order_survives_what_is_removed(steps: list[tuple[bool, int]]) -> None:
    chat: list[Message] = []
    expected: list[str] = []
    for number, (is_removed, place) in enumerate(steps):
        place = min(place, len(expected))
        if not is_removed:
            chat.append(message(f"m{number}", expected[place - 1] if place else ""))
            expected.insert(place, f"m{number}")
        elif expected:
            removed = {expected.pop(place - 1)}
            names = hand_on(in_order(chat), removed)
            chat = [
                message(each.id, names.get(each.id, each.metadata[AFTER])) for each in chat if each.id not in removed
            ]
        assert [each.id for each in in_order(chat)] == expected
