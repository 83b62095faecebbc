"""Which rows hold which terms, and terms that begin or end alike."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.index.lexical import NUMBER, TIME, LexicalIndex, RelatedTerms, TermGroup
from eunoe.index.stream import DenseIndex
from eunoe.text import analyzer
from eunoe.text.languages import LANGUAGES


def made(*texts: str) -> LexicalIndex:
    lexical = LexicalIndex()
    lexical.add(range(len(texts)), texts)
    return lexical


def group(lexical: LexicalIndex, *words: str, fits: tuple[float, ...] = (), exact: int | None = None) -> TermGroup:
    known = [lexical.vocabulary[analyzer.stem(word)] for word in words if analyzer.stem(word) in lexical.vocabulary]
    return TermGroup(
        words[0],
        tuple(known),
        fits or (1.0,) * len(known),
        len(known) if exact is None else exact,
    )


def test_the_best_fit_of_a_row_counts() -> None:
    lexical = made("shingles", "an illness", "shingles is an illness")
    found = lexical.matches([group(lexical, "illness", "shingles", fits=(1.0, 0.5), exact=1)])
    assert found.tolist() == [[0.5, 1, 1]]


def test_rare_words_tell_more() -> None:
    lexical = made("tea", "tea", "tea", "tea and coffee")
    assert lexical.idf(group(lexical, "coffee")) > lexical.idf(group(lexical, "tea"))
    assert lexical.idf(group(lexical, "milk")) > lexical.idf(group(lexical, "coffee"))


def test_bm25_prefers_more_of_the_word_and_less_else() -> None:
    lexical = made("kiln", "kiln kiln", "kiln " + "word " * 30, "other")
    scores = lexical.bm25([group(lexical, "kiln")])
    assert scores[1] > scores[0] > scores[2] > scores[3] == 0
    assert scores.max() <= 1


def test_times_and_numbers_are_marked() -> None:
    lexical = made("we met last Tuesday", "it cost 40 euros", "in 2021", "the march was hard", "three dogs", "at 7pm")
    times = [bool(flag & TIME) for flag in lexical.rows["flags"]]
    numbers = [bool(flag & NUMBER) for flag in lexical.rows["flags"]]
    assert times == [True, False, True, False, False, True]
    assert numbers == [False, True, True, False, True, True]


words = st.lists(
    st.sampled_from(["red", "blue", "car", "cars", "tea", "東京", "ERR_42", "der", "die", "das"]), max_size=6
).map(" ".join)


@given(st.lists(st.tuples(st.integers(0, 5), st.none() | words), max_size=40))
def test_changes_end_where_a_fresh_build_does(changes: list[tuple[int, str | None]]) -> None:
    lexical, texts = LexicalIndex(), {}
    lexical.add(range(6), [""] * 6)
    texts = dict.fromkeys(range(6), "")
    for row, words in changes:
        if row in texts:
            lexical.remove([row])
            del texts[row]
        if words is not None:
            lexical.add([row], [words])
            texts[row] = words
    fresh = LexicalIndex()
    fresh.add(sorted(texts), [texts[row] for row in sorted(texts)])
    for term in fresh.vocabulary.keys() - {""}:
        left, right = (TermGroup(term, (each.vocabulary[term],), (1.0,), 1) for each in (lexical, fresh))
        rows = max(fresh.rows.size, 1)
        assert lexical.matches([left])[0, :rows].tolist() == fresh.matches([right])[0].tolist()
        assert lexical.idf(left) == pytest.approx(fresh.idf(right))
        assert lexical.bm25([left])[:rows] == pytest.approx(fresh.bm25([right]))


def test_many_removals_give_memory_back() -> None:
    lexical = LexicalIndex()
    lexical.add(range(3000), [f"word{row} tail" for row in range(3000)])
    before = lexical.postings.size
    lexical.remove(range(2500))
    assert lexical.postings.size < before / 2
    assert lexical.matches([group(lexical, "tail")]).sum() == 500


def test_cosines_skip_rows_without_a_vector() -> None:
    dense = DenseIndex()
    dense.reserve(4)
    for row, vector in enumerate(([3.0, 0.0], None, [0.0, 2.0], [1.0, 2.0, 3.0])):
        dense.put(np.array([row]), [None if vector is None else np.array(vector, np.float32)])
    assert dense.present.tolist() == [True, False, True, False]
    found = dense.cosines(np.array([1, 1], np.float32))
    assert found is not None
    assert found.tolist() == pytest.approx([0.7071, 0, 0.7071, 0], abs=1e-3)
    assert dense.cosines(np.ones(3, np.float32)) is None
    assert dense.cosines(np.zeros(2, np.float32)) is None


def test_a_vector_that_is_no_vector_is_missing() -> None:
    dense = DenseIndex()
    dense.reserve(2)
    dense.put(np.array([0]), [np.array([np.nan, 1], np.float32)])
    dense.put(np.array([1]), [np.zeros(2, np.float32)])
    assert not dense.present.any()


def test_rows_have_the_sum_of_what_their_words_are_worth() -> None:
    lexical = made("red kayak", "old kayak", "a red car", "tea")
    worth = {lexical.vocabulary["red"]: 0.25, lexical.vocabulary["kayak"]: 0.5}
    unsorted = lexical.sum_weights(worth).tolist()
    lexical.matches([group(lexical, "red")])
    assert lexical.sum_weights(worth).tolist() == unsorted == [0.75, 0.5, 0.25, 0]
    lexical.add([4], ["one more kayak"])
    assert lexical.sum_weights(worth).tolist() == [0.75, 0.5, 0.25, 0, 0.5]
    lexical.remove([0])
    assert lexical.sum_weights(worth).tolist() == [0, 0.5, 0.25, 0, 0.5]


class Untouched(dict[str, int]):
    """A vocabulary that cannot be gone through from its start."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all words were gone through")


def test_a_new_word_does_not_cost_a_walk_through_all_the_others() -> None:
    lexical = made("red cars", "blue bikes at 7")
    lexical.vocabulary = Untouched(lexical.vocabulary)
    lexical.add([2, 3], ["green cars at 8 and nine", "green boats"])
    assert lexical.matches([group(lexical, "green")]).tolist() == [[0, 0, 1, 1]]
    assert [bool(flag & NUMBER) for flag in lexical.rows["flags"].tolist()] == [False, True, True, False]
    assert lexical.idf(group(lexical, "green")) == lexical.idf(group(lexical, "car"))


GERMAN, SPANISH = LANGUAGES.index("german"), LANGUAGES.index("spanish")


def related(terms: str, stem: str, language: int = GERMAN) -> set[str]:
    vocabulary = {term: number for number, term in enumerate(terms.split())}
    return set(RelatedTerms(vocabulary).find(stem, language))


@pytest.mark.parametrize(
    ("terms", "stem", "expected"),
    [
        ("kuchenschrank schrank haus", "schrank", {"kuchenschrank"}),
        ("schrank kuche haus", "kuchenschrank", {"schrank", "kuche"}),
        ("gekundigt versicher", "kundig", {"gekundigt"}),
        ("kundig versicher", "gekundigt", {"kundig"}),
        ("haus", "haus", set()),
        ("hau ha", "haus", set()),
        ("verwaltungsgerichtsentscheid", "gericht", set()),
        ("hausbau", "", set()),
        ("hausbau", "h" * 30_000, set()),
        ("err_42 haus42", "haus", set()),
    ],
)
def test_forms_parts_and_compounds(terms: str, stem: str, expected: set[str]) -> None:
    assert related(terms, stem) == expected


def test_only_compounding_languages_look_at_the_end() -> None:
    assert related("imaginacion nacional", "nacion", SPANISH) == {"nacional"}


def test_the_nearer_in_length_fits_better_and_nothing_as_well_as_the_word_itself() -> None:
    fits = RelatedTerms({"schrankwand": 0, "schranke": 1, "kleiderschrank": 2}).find("schrank", GERMAN)
    assert 1 > fits["schranke"] > fits["schrankwand"] > fits["kleiderschrank"] > 0


def test_a_vocabulary_that_grows_is_read_on() -> None:
    vocabulary = {"haustur": 0}
    terms = RelatedTerms(vocabulary)
    assert set(terms.find("haus", GERMAN)) == {"haustur"}
    vocabulary["hausdach"] = 1
    assert set(terms.find("haus", GERMAN)) == {"haustur", "hausdach"}
