"""Which sentences say something worth keeping, what kind of statement they are, how much it matters, who may read it.

The memory key of a statement is what it is about, if that has one value at a time: a later one with the same key takes
the place of the earlier one. The forms of statements, by which they get their labels, are in `patterns/labels.toml`.
"""

from collections.abc import Container
from functools import lru_cache
from itertools import islice
from math import exp, inf
from typing import Final, NamedTuple

from eunoe.form.data_files import PatternFile
from eunoe.model.arguments import KEPT_KINDS, TurnKind
from eunoe.text.analyzer import stem
from eunoe.text.languages import LANGUAGES, detect_language, is_stop_word
from eunoe.text.normalize import fold
from eunoe.text.sentences import split_sentences, word_count

MIN_SCORE: Final = 1.5
"""The score from which a statement is worth keeping on its own."""

_MAX_CHARACTERS: Final = 1000
"""What is longer is no sentence."""
_MAX_WORDS: Final = 80
_STEEPNESS: Final = 2.0
"""How quickly scores become certainties: a point above the least is nine in ten."""
_ANSWER_BONUS: Final = 0.5
_TERSE_LABELS: Final = frozenset(["instruction", "preference", "identity"])
"""Statements that need few words."""
_TERSENESS: Final = 0.3
"""What other statements lose for having few."""
_QUESTION_ENDS: Final = ("?", "？", "؟", "か。", "吗。", "吗", "呢")  # noqa: RUF001
_PATTERNS: Final = PatternFile("statements")
_LABELS: Final = PatternFile("labels")
_KEYS: Final = PatternFile("memory_keys")
_MAX_KEY_WORDS: Final = 16
"""A sentence with more words says more than one thing."""
_VALUES: Final = PatternFile("sentence_values")
_PLAIN_VALUE: Final = 0.5
"""What a sentence is worth that is no statement, as in summaries by rule."""
_PAST_LOSS: Final = 1.0
"""What a plan loses when its day is over."""
_MAX_SENTENCES: Final = 20
"""What a longer text says first tells what it is worth."""
_SHARING: Final = PatternFile("sharing")
_GERMAN: Final = LANGUAGES.index("german")
"""Where every noun has a capital."""


class Statement(NamedTuple):
    """A sentence that says something, and how much it matters."""

    text: str
    label: str
    score: float

    @property
    def kind(self) -> TurnKind:
        """What kind of thing it holds."""
        return next((kind for kind in KEPT_KINDS if kind == self.label), "fact")

    @property
    def worth(self) -> float:
        """How likely it is worth keeping, from 0 to 1."""
        return 1 / (1 + exp(_STEEPNESS * (MIN_SCORE - self.score)))


def read_statement(sentence: str, is_answer: bool = False) -> Statement | None:
    """Read what a sentence states; None for questions, greetings, small talk, suppositions and code."""
    if len(sentence) > _MAX_CHARACTERS:
        return None
    plain = _PATTERNS.quotation.sub(" ", _simplify(sentence))
    size = word_count(plain)
    if not 2 <= size <= _MAX_WORDS or is_question(sentence) or _is_code(sentence):
        return None
    starts = (_PATTERNS.small_talk, _PATTERNS.weariness, _PATTERNS.reported_speech)
    parts = (_PATTERNS.secret, _PATTERNS.supposition)
    if any(start.match(plain) for start in starts) or any(part.search(plain) for part in parts):
        return None
    label, weight = _find_label(plain)
    if not label:
        label, weight = "state", 0.65 if size > 4 else 0.2
    if size < 3 and label not in _TERSE_LABELS:
        return None
    score = weight + _specifics(sentence, plain, size) - (0.0 if label == "instruction" else _doubts(plain))
    score += _TERSENESS if label in _TERSE_LABELS and size < 4 else 0.0
    score += _ANSWER_BONUS if is_answer else 0.0
    return Statement(sentence, label, round(score, 3)) if score > 0 else None


def is_question(sentence: str) -> bool:
    """Whether it asks; a question mark may be missing."""
    if sentence.rstrip(" \"'”’»)").endswith(_QUESTION_ENDS):
        return True
    return bool(_PATTERNS.question_start.match(_simplify(sentence)))


def is_fragment(sentence: str) -> bool:
    """Whether it has no form of a statement, as answers have that need their question."""
    return not _find_label(_simplify(sentence))[0]


def is_small_talk(sentence: str) -> bool:
    """Whether it opens as thanks, greetings and the like do."""
    return bool(_PATTERNS.small_talk.match(_simplify(sentence)))


def is_secret(sentence: str) -> bool:
    """Whether it speaks of a password or the like, which is better left in the log alone."""
    return bool(_PATTERNS.secret.search(_simplify(sentence)))


def is_vital(sentence: str) -> bool:
    """Whether it says what nobody who cares for a person may overlook, such as an allergy."""
    return bool(_PATTERNS.vital.search(_simplify(sentence[:_MAX_CHARACTERS])))


def is_unfit(sentence: str, may_suppose: bool = False) -> bool:
    """Whether it is better not kept whatever it says: a secret, code, no sentence at all, or a supposition (but an
    instruction may be put as one: "could you always ...")."""
    plain = _simplify(sentence[:_MAX_CHARACTERS])
    is_long = len(sentence) > _MAX_CHARACTERS or word_count(plain) > _MAX_WORDS
    is_supposition = not may_suppose and bool(_PATTERNS.supposition.search(plain))
    return is_long or is_secret(sentence) or is_supposition or _is_code(sentence)


def is_private(sentence: str) -> bool:
    """Whether it speaks of the speaker or the one spoken to, or holds an address: nothing to share with others."""
    if len(sentence) > _MAX_CHARACTERS:
        return True
    return bool(_PATTERNS.private.search(_simplify(sentence)) or _PATTERNS.address.search(sentence))


def is_instruction(sentence: str) -> bool:
    """Whether it says how to go on from here."""
    return _find_label(_simplify(sentence))[0] == "instruction"


def find_names(sentence: str) -> tuple[str, ...]:
    """Return the names in a sentence: words with a capital that do not begin it."""
    names = (match[1] for match in _PATTERNS.name.finditer(sentence))
    return tuple(dict.fromkeys(name for name in names if name.split()[0].lower() not in _PATTERNS.words["not_names"]))


def find_people(sentence: str) -> tuple[str, ...]:
    """Return the names that the words beside them show to be a person's."""
    names = (match[1] or match[2] for match in _PATTERNS.person.finditer(sentence))
    return tuple(dict.fromkeys(name for name in names if name.lower() not in _PATTERNS.words["not_names"]))


def _find_label(plain: str) -> tuple[str, float]:
    """The label of the first form that a sentence has, and what such a sentence is worth; "" and 0 if it has none."""
    start = plain[:_MAX_CHARACTERS]
    rows = (row for row in _LABELS.tables["labels"] if row.pattern.search(start))
    return next(((row.name, row.weight) for row in rows), ("", 0.0))


def _simplify(sentence: str) -> str:
    """Lower case, straight apostrophes, single blanks, without fillers in front."""
    lowered = " ".join(sentence.lower().replace("’", "'").replace("‘", "'").split())
    return _PATTERNS.leading_filler.sub("", _PATTERNS.leading_filler.sub("", lowered))


def _is_code(sentence: str) -> bool:
    if len(_PATTERNS.symbol.findall(sentence)) > 0.4 * len(sentence):
        return True
    return bool(_PATTERNS.code.search(sentence) or _PATTERNS.log_line.match(sentence))


def _specifics(sentence: str, plain: str, size: int) -> float:
    """What makes it worth more: names, numbers, dates, and a length that says something."""
    score = 0.35 * min(len(find_names(sentence)), 2) + 0.2 * min(len(_PATTERNS.number.findall(plain)), 2)
    has_digit, has_money = _PATTERNS.digit.search(plain), _PATTERNS.money.search(plain)
    score += 0.5 * bool(has_digit) + 0.3 * bool(has_money) + 0.3 * bool(_PATTERNS.date.search(plain))
    has_kin, has_change = _PATTERNS.kin.search(plain), _PATTERNS.change.search(plain)
    score += 0.35 * bool(has_kin) + 0.4 * bool(has_change) + 0.15 * ("," in plain)
    score += 1.2 * bool(_PATTERNS.vital.search(plain)) + 0.2 * bool(_PATTERNS.acting_name.match(sentence))
    return score + (0.25 if size >= 8 else -_TERSENESS if size < 4 else 0.0)


def _doubts(plain: str) -> float:
    """What makes it worth less: guesses, orders of the moment, words on the other one, moods."""
    is_hedged, is_about_you = _PATTERNS.hedge.search(plain), _PATTERNS.about_you.match(plain)
    score = 0.6 * bool(is_hedged) + 0.7 * bool(is_about_you) + 0.4 * bool(_PATTERNS.you.search(plain))
    is_opinion, is_promise = _PATTERNS.opinion.match(plain), _PATTERNS.promise.search(plain)
    score += 0.5 * bool(is_opinion) + 0.35 * bool(is_promise) + 0.2 * bool(_PATTERNS.vague_subject.match(plain))
    score += 0.8 * bool(_PATTERNS.request.match(plain)) + 1.2 * bool(_PATTERNS.passing.search(plain))
    return score + 0.4 * bool(_PATTERNS.mood.search(plain))


def find_memory_key(speaker: str, sentence: str, question: str = "") -> str:
    """Return the key of a statement, such as `anna/home`; "" if it has none. `question` is what it answers.

    >>> find_memory_key("Anna", "I moved to Rome in May."), find_memory_key("Anna", "My favourite colour is green.")
    ('anna/home', 'anna/favourite colour')
    >>> find_memory_key("Anna", "My sister is sick."), find_memory_key("Anna", "Rome.", "Where do you live?")
    ('', 'anna/home')
    """
    text = " ".join(_KEYS.quotation.sub(" ", sentence[: _MAX_CHARACTERS + 1].replace("’", "'")).split())
    if len(text) > _MAX_CHARACTERS or _KEYS.unsure.search(text):
        return ""
    who, attribute = ("", _answered_attribute(text, question)) if question else _stated_attribute(text)
    owner, named = (" ".join(fold(name).replace("/", " ").split()) for name in (speaker, who or speaker))
    return f"{named}/{attribute}" if attribute and owner else ""


def split_clauses(sentence: str) -> list[str]:
    """Split a sentence where the speaker begins anew, as in "I'm Tom, I live in Rome and my cat is called Bo"."""
    return [part for part in _KEYS.clause_break.split(sentence) if part.strip()]


def _answered_attribute(text: str, question: str) -> str:
    if _says_more(text) or _KEYS.no_answer.match(text):
        return ""
    plain = question.replace("’", "'")
    matches = ((row.name, row.pattern.search(plain)) for row in _KEYS.tables["questions"])
    return next((name.format(*map(fold, match.groups())) for name, match in matches if match), "")


def _stated_attribute(text: str) -> tuple[str, str]:
    """Whom a statement is about, "" for the speaker, and what of them."""
    if relative := _KEYS.age_of_relative.fullmatch(text):
        return (relative["who"], "age") if relative["who"] else ("", f"{fold(relative['kin'])}'s age")
    if _KEYS.answer_language.fullmatch(text):
        return "", "language of answers"
    for row in _KEYS.tables["attitudes"]:  # one attribute for the thing, whether it is liked, taken or borne, or not
        if match := row.pattern.fullmatch(text):
            thing = _KEYS.article.sub("", fold(match[match.lastgroup or "what"])).split()
            if thing and thing[0] not in _KEYS.words["not_things"]:
                return "", f"{row.name} {' '.join(map(_singular, thing))}"
            break
    if _says_more(text):
        return "", ""
    if birthday := _KEYS.birthday.search(text):
        return birthday["who"], "birthday"
    for row in _KEYS.tables["others"]:
        if other := row.pattern.match(text):
            return other["who"], row.name
    for row in _KEYS.tables["attributes"]:
        if row.pattern.search(text):
            return "", row.name
    for row in _KEYS.tables["named"]:
        if match := row.pattern.search(text):
            words = fold(match["what"]).split()
            if row.name == "favourite":
                name = f"favourite {fold(match['what'])}"
            else:  # the words after "my", with one spelling for what means the same
                words = words[1:] if words[0] in _KEYS.words["dropped"] and len(words) > 1 else words
                name = " ".join(map(_synonym, words))
            name = _synonym(name)
            return "", name if _has_one_value(name, match["value"]) else ""
    return "", ""


def _says_more(text: str) -> bool:
    """Whether a sentence holds more than one thing: a new value of the one must not take the other away."""
    return text.count(" ") >= _MAX_KEY_WORDS or bool(_KEYS.second_statement.search(_KEYS.first_words.sub("", text)))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _synonym(name: str) -> str:
    return str(_KEYS.content["synonyms"].get(name, name))


def _has_one_value(attribute: str, value: str) -> bool:
    """Whether an attribute can have one value at a time, and this is a value of its kind."""
    words = attribute.split()
    if words[0] in _KEYS.words["single_value"]:
        return not _KEYS.no_value.match(value)
    forms = {row.name: row.pattern for row in _KEYS.tables["values"]}
    form = forms.get(" ".join(words[-2:])) or forms.get(words[-1])
    return bool(form and form.match(value))


@lru_cache(maxsize=4096)
def sentence_value(text: str) -> float:
    """The value of a memory or of a line of a summary to an agent that has room for only some; infinite for a standing
    instruction.

    >>> sentence_value("2024-05-07: anna: Always answer me in German.")
    inf
    """
    line = _VALUES.line_start.match(text)
    said = text[line.end() :] if line else text
    sentences = list(islice(split_sentences(said), _MAX_SENTENCES))
    if any(is_instruction(sentence) or _VALUES.standing.search(sentence.lower()) for sentence in sentences):
        return inf
    values = [statement.score for statement in map(read_statement, sentences) if statement]
    return max(values, default=_PLAIN_VALUE) - (_PAST_LOSS if line and line["past"] else 0.0)


def is_shareable(sentence: str, subject: Container[str] = ()) -> bool:
    """Whether a sentence may be shared with every user: it is of things, not of people, and without a secret, an
    address or an order. In doubt it may not.

    The first word may be a name, unless its stem or the next one's belongs to the subject.
    """
    if is_private(sentence) or is_secret(sentence) or is_instruction(sentence):
        return False
    lowered = " ".join(sentence.lower().replace("’", "'").split())
    if any(pattern.search(lowered) for pattern in (_SHARING.contact, _SHARING.confidence, _SHARING.order)):
        return False
    spoken = detect_language(sentence)
    pairs = _SHARING.first_of_two_names.findall(sentence)
    if _SHARING.title.search(sentence) or any(not is_stop_word(fold(word), spoken) for word in pairs):
        return False
    first = _SHARING.acting_first_word.match(sentence)
    is_named = first is not None and not is_stop_word(fold(first[1]), spoken)
    if first and is_named and not any(stem(fold(word)) in subject for word in first.groups("")):
        return False
    if spoken == _GERMAN:
        return not _SHARING.acting_german_name.search(sentence)
    return all(_SHARING.harmless_capital.fullmatch(word) for word in _SHARING.capitalized.findall(sentence))
