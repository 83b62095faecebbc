from eunoe.apps.discussion.files.plan import Entry, Known, Plan, make_plan


def entries(*texts: str) -> list[Entry[str]]:
    """Entries such as "text#anchor"."""
    return [Entry(text, text, text.partition("#")[2]) for text in texts]


def known(*texts: str, imported: bool = True, in_force: bool = True, covered: bool = False) -> list[Known[str]]:
    return [
        Known(text, text, text.partition("#")[2], text, float(place), imported, in_force, covered)
        for place, text in enumerate(texts, 1)
    ]


def told(plan: Plan[str]) -> dict[str, object]:
    changed = [(old.id, new) for old, new in plan.changed]
    all_ = {"new": plan.new, "changed": changed, "ended": plan.ended, "revived": plan.revived}
    return {name: value for name, value in all_.items() if value}


def test_the_same_file_changes_nothing() -> None:
    plan = make_plan(entries("a#1", "b#2", "a#1"), known("a#1", "b#2", "a#1"))
    assert (told(plan), plan.unchanged) == ({}, 3)


def test_a_file_that_has_grown_adds_what_is_new() -> None:
    assert told(make_plan(entries("a#1", "b#2", "c#3"), known("a#1"))) == {"new": [("b#2", 2.0), ("c#3", 3.0)]}


def test_what_is_new_between_others_stands_between_them() -> None:
    assert told(make_plan(entries("x", "a", "y", "z", "b"), known("a", "b"))) == {
        "new": [("x", 0.5), ("y", 1 + 1 / 3), ("z", 1 + 2 / 3)]
    }


def test_many_new_ones_find_places_of_their_own() -> None:
    texts = [f"n{number}" for number in range(5000)]
    places = [place for _, place in make_plan(entries("a", *texts, "b"), known("a", "b")).new]
    assert places == sorted(set(places))
    assert places[0] > 1
    assert places[-1] < 2


def test_other_words_for_the_same_part_supersede() -> None:
    assert told(make_plan(entries("a#1", "new#2"), known("a#1", "b#2"))) == {"changed": [("b#2", "new#2")]}


def test_of_two_parts_with_one_anchor_the_right_one_is_superseded() -> None:
    assert told(make_plan(entries("a#1", "new#1"), known("a#1", "b#1"))) == {"changed": [("b#1", "new#1")]}


def test_entries_without_an_anchor_are_not_taken_for_one_another() -> None:
    assert told(make_plan(entries("x"), known("a"))) == {"new": [("x", 0.5)], "ended": ["a"]}


def test_what_left_the_file_ends_and_comes_back() -> None:
    assert told(make_plan(entries("a"), known("a", "b"))) == {"ended": ["b"]}
    ended = known("a", "b", in_force=False)
    assert told(make_plan(entries("a", "b"), ended)) == {"revived": ["a", "b"]}


def test_what_was_made_here_never_ends() -> None:
    assert told(make_plan(entries(), known("a", imported=False))) == {}


def test_what_was_condensed_or_superseded_here_stays_so() -> None:
    members = known("a#1", "b#2", in_force=False, covered=True)
    assert told(make_plan(entries("a#1", "b#2"), members)) == {}
