"""What turns hold, sentence by sentence: by the kind model where it can read them, else by rules.

The model is three ridge regressions with a Gaussian kernel: a text is compared with each example that the model
learned from, and the examples vote, the nearer the louder. One says the kind, one whether a turn is worth keeping, one
whether a sentence of a turn is. `training/kinds.py` makes the file.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from math import sqrt
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Embedder, Vectors
from eunoe.embed.encoder import ENCODER_SHA256, MEANS_DIMENSIONS, Encoder
from eunoe.errors import EmbedderError
from eunoe.form.data_files import PatternFile
from eunoe.form.likeness import is_duplicate
from eunoe.form.statements import (
    is_fragment,
    is_instruction,
    is_question,
    is_secret,
    is_small_talk,
    is_unfit,
    is_vital,
    read_statement,
)
from eunoe.model.arguments import INSTRUCTION, KEPT_KINDS, TURN_KINDS, TurnKind
from eunoe.model.turn import AGENT_ROLES, TOOL_ROLES, Turn
from eunoe.records.corrections import Place
from eunoe.text.languages import ENGLISH, detect_language
from eunoe.text.sentences import split_sentences, word_count

_STATE: Final = MEANS_DIMENSIONS // 4
_STATES_BEFORE: Final = np.r_[_STATE : 2 * _STATE, 3 * _STATE : 4 * _STATE]
"""What is read of the vector of what was said before. The other half adds nothing."""
_TURN: Final = slice(0, MEANS_DIMENSIONS)
_BEFORE: Final = slice(_TURN.stop, _TURN.stop + len(_STATES_BEFORE))
_MARKS: Final = slice(_BEFORE.stop, _BEFORE.stop + 23)
ASSISTANT_MARK: Final = _MARKS.stop - 4
_ASSISTANT_ROLES: Final = ("assistant", "ai", "model")
_AGENT_ROLE: Final = "agent"
_FEW_WORDS: Final = 3
_SHORT_WORD_LETTERS: Final = 3
"""Words that are no longer are in too many turns to say that two of them are about the same."""
_READ_CHARACTERS: Final = 2000
"""About as much as the encoder reads of a text."""
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_KINDS: Final = PatternFile("kinds")
_CUES: Final = slice(_MARKS.stop, _MARKS.stop + len(_KINDS.content["cues"]))
_CUES_BEFORE: Final = slice(_CUES.stop, _CUES.stop + len(_KINDS.content["cues_before"]))
BLOCKS: Final = (_TURN, _BEFORE, _MARKS, _CUES, _CUES_BEFORE)
"""The columns of a row of features: vectors of the turn and of what was said before it, marks of both, cues in each."""

MODEL_FILE: Final = Path(__file__).parent / "model" / "kinds.npz"
_BATCH_TURNS: Final = 256
_LEAST_LENGTH: Final = 1e-9
_DIGITS: Final = 6
"""Of a probability. What the order of additions changes lies far below, so that a turn is judged alike in any batch."""
_INSTRUCTION: Final = TURN_KINDS.index(INSTRUCTION)
_NOTHING: Final = TURN_KINDS.index("nothing")

Arrays = Mapping[str, NDArray[Any]]

MIN_WORTH: Final = 0.5
"""From here on a sentence is worth keeping on its own."""
_DETAIL_WORTH: Final = 0.15
"""What each detail of an answer adds by rule, two at most."""
_AGENT_FACTOR: Final = 0.7
"""By rule. An agent says more than it decides."""
_MIN_INSTRUCTION: Final = 0.3
"""The probability from which a sentence is taken for a standing instruction to an agent."""
_MIN_INSTRUCTION_TO_PEOPLE: Final = (0.8, 0.4)
"""The same where people talk, who seldom ask something of each other for ever: of a speaker who seldom sounds so, and
of one who often does."""
_OFTEN: Final = 0.06
"""The mean probability of an instruction over the sentences of a speaker who often sounds so,"""
_FEW_SENTENCES: Final = 20
"""of which there are at least so many: in fewer, one that sounds so says nothing of the others."""
_MIN_FORMAL_INSTRUCTION: Final = 0.02
"""The same for a sentence to an agent that has the form of one, such as "never ...": nine in ten of these are."""
_UNCLEAR_FACTOR: Final = 0.7
"""What a turn's first sentence is worth if it speaks of something that only an earlier turn names."""
_MAX_READ: Final = 3000
"""Sentences of one turn that rules read. Longer ones are documents, and little is kept of any turn."""
_MAX_JUDGED: Final = 64
"""The same for the model, which takes milliseconds for each."""
_SCANNED_CHARACTERS: Final = 300
"""How much of each sentence of a document is looked at to choose those that are read."""
_MAX_ANSWER_WORDS: Final = 12
_MAX_QUESTION_WORDS: Final = 20
_MAX_TERSE_WORDS: Final = 10
"""A turn that is no longer, and has a fragment, is read as one sentence: "Lunt Harbour. north. wet"."""
_MAX_BARE_WORDS: Final = 3
"""What is no longer and has no form of a statement says nothing without the question that it answers."""
_PATTERNS: Final = PatternFile("turns")

Matrix = NDArray[np.float64]


class KindInput(NamedTuple):
    """A turn, or a sentence of one, as the model reads it."""

    text: str
    role: str = "user"
    before: str = ""
    """What was said just before: by the other side, or in the same turn."""
    vector: Vectors | None = None
    """The layer means of the text, by `Encoder.layer_means`. Without them there is no judgement."""
    vector_before: Vectors | None = None
    continues: bool = False
    """Whether the same speaker said what was said before."""
    is_to_agent: bool = False
    """Whether an agent listens. To people one says other things in other ways."""
    is_sentence: bool = False
    """Whether it is one of the sentences of a turn, and not all of it."""


def read_features(turns: Sequence[KindInput]) -> Matrix:
    """What is known of each turn, by row. Without a vector of what was said before, its columns are not numbers."""
    rows = np.zeros((len(turns), _CUES_BEFORE.stop))
    for row, turn in zip(rows, turns, strict=True):
        words, words_before = (
            _WORD.findall(text[:_READ_CHARACTERS].lower().replace("’", "'")) for text in (turn.text, turn.before)
        )
        row[_TURN] = turn.vector
        row[_BEFORE] = np.nan
        if turn.before and turn.vector_before is not None and turn.vector_before.any():
            row[_BEFORE] = turn.vector_before[_STATES_BEFORE]
        row[_MARKS] = _read_marks(turn, words, words_before)
        row[_CUES][_find_cues(words, "cues")] = 1
        row[_CUES_BEFORE][_find_cues(words_before, "cues_before")] = 1
    return rows


def _read_marks(turn: KindInput, words: Sequence[str], words_before: Sequence[str]) -> tuple[float, ...]:
    text, before, role = turn.text[:_READ_CHARACTERS], turn.before[:_READ_CHARACTERS], turn.role.lower()
    said = {word for word in words if len(word) > _SHORT_WORD_LETTERS}
    repeated = len(said.intersection(words_before))
    is_answer, is_short = before.rstrip().endswith("?"), len(words) <= _FEW_WORDS
    has_digit, has_digit_before = (any(map(str.isdigit, each)) for each in (text, before))
    return (
        np.log1p(len(text)),
        np.log1p(len(words)),
        is_short,
        has_digit,
        "?" in text,
        text.rstrip().endswith("?"),
        "!" in text,
        '"' in text,
        ":" in text,
        text[:1].isupper(),
        not before,
        np.log1p(len(before)),
        "?" in before,
        is_answer,
        is_answer and is_short,
        has_digit_before,
        has_digit and has_digit_before,
        np.log1p(repeated),
        repeated / (len(said) or 1),
        role in _ASSISTANT_ROLES,
        role == _AGENT_ROLE,
        turn.continues,
        turn.is_to_agent,
    )


def _find_cues(words: Sequence[str], name: str) -> list[int]:
    """The numbers of the cues that words have, of one of the lists."""
    found = set[int]()
    numbers, longest = _load_cues(name)
    for place, word in enumerate(words):
        for size in range(1, longest.get(word, 0) + 1):
            found.update(numbers.get(" ".join(words[place : place + size]), ()))
    return list(found)


@cache
def _load_cues(name: str) -> tuple[Mapping[str, Sequence[int]], Mapping[str, int]]:
    """By phrase the cues that it belongs to, and by first word how many words the longest of its phrases has."""
    numbers: dict[str, list[int]] = {}
    longest: dict[str, int] = {}
    for number, cue in enumerate(_KINDS.content[name]):
        for phrase in cue.split(","):
            words = phrase.split()
            numbers.setdefault(" ".join(words), []).append(number)
            longest[words[0]] = max(longest.get(words[0], 0), len(words))
    return numbers, longest


class Judgement(NamedTuple):
    """What the model says of a turn or a sentence."""

    kind: TurnKind
    probabilities: Mapping[TurnKind, float]
    """By kind. Their sum is 1."""
    keep: float
    """The probability that it holds something worth keeping."""


class Projection:
    """Brings features down to the few directions in which examples differ."""

    def __init__(self, arrays: Arrays) -> None:
        self._mean = arrays["mean"].astype(np.float64)
        self._matrix = arrays["projection"] * arrays["row_scale"].astype(np.float64)[:, None]

    def project(self, features: Matrix) -> Matrix:
        """What is missing counts as usual; so do columns that are left out at the end."""
        size = features.shape[1]
        projected: Matrix = np.nan_to_num(features - self._mean[:size]) @ self._matrix[:size]
        return projected


class Regression:
    """Lets examples vote."""

    def __init__(self, arrays: Arrays) -> None:
        self._examples = arrays["examples"] * arrays["example_scale"].astype(np.float64)
        self._squares = (self._examples**2).sum(1)
        self._votes, self._offsets = arrays["votes"].astype(np.float64), arrays["offsets"].astype(np.float64)

    def score(self, projected: Matrix) -> Matrix:
        scores: Matrix = gaussian_kernel(projected, self._examples, self._squares) @ self._votes + self._offsets
        return scores


class KindModel:
    """Judges turns and sentences by the examples that it learned from. It never changes."""

    def __init__(self, arrays: Arrays) -> None:
        """`arrays` is what `training/kinds.py` writes."""
        self._name = blake2b(arrays["kinds_projection"].tobytes(), digest_size=8).hexdigest()
        kinds, keep, turns, sentences = (part_of(arrays, name) for name in ("kinds", "keep", "turns", "sentences"))
        self._kind_projection, self._kinds = Projection(kinds), Regression(kinds)
        self._sentence_bias = kinds["sentence_bias"].astype(np.float64)
        self._keep_projection, self._turns, self._sentences = Projection(keep), Regression(turns), Regression(sentences)

    def judge(self, turns: Sequence[KindInput]) -> list[Judgement | None]:
        """Say of each turn or sentence what it holds; None of one without a vector."""
        judgements: list[Judgement | None] = [None] * len(turns)
        places = [place for place, turn in enumerate(turns) if turn.vector is not None and turn.vector.any()]
        for start in range(0, len(places), _BATCH_TURNS):
            batch = places[start : start + _BATCH_TURNS]
            for place, judgement in zip(batch, self._judge([turns[place] for place in batch]), strict=True):
                judgements[place] = judgement
        return judgements

    def place(self, means: Sequence[Vectors]) -> list[Place]:
        """Where texts stand among the examples by their layer means alone."""
        rows = self._kind_projection.project(np.array(means, np.float64).reshape(len(means), MEANS_DIMENSIONS))
        lengths = np.maximum(np.sqrt((rows**2).sum(1, keepdims=True)), _LEAST_LENGTH)
        return [Place(self._name, row) for row in (rows / lengths).astype(np.float32)]

    def _judge(self, turns: Sequence[KindInput]) -> Iterator[Judgement]:
        features, is_sentence = read_features(turns), np.array([turn.is_sentence for turn in turns])
        scores = self._kinds.score(self._kind_projection.project(features))
        shares = to_probabilities(scores + self._sentence_bias * is_sentence[:, None], features)
        projected = self._keep_projection.project(features)
        keep = np.where(is_sentence, self._sentences.score(projected)[:, 0], self._turns.score(projected)[:, 0])
        chances = (1 / (1 + np.exp(-keep))).round(_DIGITS).tolist()
        for row, chance in zip(shares.round(_DIGITS).tolist(), chances, strict=True):
            by_kind = dict(zip(TURN_KINDS, row, strict=True))
            yield Judgement(max(TURN_KINDS, key=by_kind.__getitem__), by_kind, chance)


@cache
def load_kind_model(encoder_name: str) -> KindModel | None:
    """Load the model that reads the vectors of an encoder; None if there is none."""
    if not MODEL_FILE.is_file():
        return None
    with np.load(MODEL_FILE, allow_pickle=False) as file:
        arrays = dict(file)
    is_for_encoder = [str(arrays[name]) for name in ("encoder", "sha256")] == [encoder_name, ENCODER_SHA256]
    return KindModel(arrays) if is_for_encoder else None


def part_of(arrays: Arrays, name: str) -> dict[str, NDArray[Any]]:
    """The arrays of one part of the model, by their own names."""
    start = f"{name}_"
    return {each.removeprefix(start): array for each, array in arrays.items() if each.startswith(start)}


def to_probabilities(scores: Matrix, features: Matrix) -> Matrix:
    """The probability of each kind, by row. An assistant gives no standing instructions: what it says so is advice."""
    powers = np.exp(scores - scores.max(1, keepdims=True))
    shares: Matrix = powers / powers.sum(1, keepdims=True)
    is_assistant = features[:, ASSISTANT_MARK] == 1
    shares[is_assistant, _NOTHING] += shares[is_assistant, _INSTRUCTION]
    shares[is_assistant, _INSTRUCTION] = 0
    return shares


def gaussian_kernel(one: Matrix, other: Matrix, squares: Matrix | None = None) -> Matrix:
    """How alike each row of one is to each row of the other, from 0 to 1. `squares` are the other's, if known."""
    kernel: Matrix = one @ other.T
    kernel *= 2
    kernel -= (one**2).sum(1)[:, None]
    kernel -= (other**2).sum(1) if squares is None else squares
    np.minimum(kernel, 0, out=kernel)
    return np.exp(kernel, out=kernel)


class Question(NamedTuple):
    """A question that ended the turn before."""

    text: str
    turn: Turn


class Sentence(NamedTuple):
    """A sentence of a turn, what kind of thing it holds, and how likely it is worth keeping."""

    text: str
    kind: TurnKind = "nothing"
    worth: float = 0.0
    question: Question | None = None
    """The question that it answers, if it cannot be understood without."""
    correction: str = ""
    """The corrected sentence that decided about it, if one did."""


class TurnReading(NamedTuple):
    """A turn and its sentences."""

    turn: Turn
    sentences: tuple[Sentence, ...] = ()
    judgement: Judgement | None = None
    """What the model says of the turn as a whole, if it read it."""
    means: Mapping[str, Vectors] = {}
    """The layer means of its sentences, if the model read it."""

    @property
    def worth(self) -> float:
        """How likely the turn holds something worth keeping."""
        if self.judgement:
            return self.judgement.keep
        return max((sentence.worth for sentence in self.sentences), default=0.0)


class TurnReader:
    """Reads the turns of a conversation. Without an embedder, or with another than the package's, by rules alone."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._encoder = embedder if isinstance(embedder, Encoder) else None
        self.model = load_kind_model(embedder.name) if isinstance(embedder, Encoder) else None

    def read(self, turns: Sequence[Turn], earlier: Sequence[Turn] = ()) -> list[TurnReading]:
        """Read turns that follow each other, and on `earlier` ones."""
        pairs = list(zip([*earlier[-1:], *turns] if earlier else [None, *turns], turns, strict=False))
        users = {turn.name for turn in [*earlier, *turns] if turn.role.lower() not in (*AGENT_ROLES, *TOOL_ROLES)}
        has_agent = any(turn.role.lower() in AGENT_ROLES for turn in [*earlier, *turns])
        judged: dict[str, TurnReading] = {}
        if self.model and self._encoder:
            try:
                spoken = [pair for pair in pairs if pair[1].role.lower() not in TOOL_ROLES]
                readings = _read_by_model(self.model, self._encoder, spoken, has_agent, len(users) > 1)
                judged = {reading.turn.id: reading for reading in readings if reading.judgement}
            except EmbedderError:  # then rules read them all
                judged = {}
        return [judged.get(turn.id) or read_by_rules(turn, before) for before, turn in pairs]


def read_by_rules(turn: Turn, before: Turn | None = None) -> TurnReading:
    """Read a turn by the forms of its sentences."""
    if turn.role.lower() in TOOL_ROLES:
        return TurnReading(turn)
    texts, question, first = choose_sentences(turn.text, _MAX_READ), _find_question(turn, before), list[Sentence]()
    if texts and question and _needs_question(turn, texts[0], question):
        details = len(_PATTERNS.telling_answer.findall(texts[0]))
        worth = MIN_WORTH + _DETAIL_WORTH * min(details, 2) if details else 0.0
        first = [Sentence(texts[0], "fact", worth, question)]
    return TurnReading(turn, (*first, *(_read_sentence(turn, text, question) for text in texts[len(first) :])))


def _read_sentence(turn: Turn, text: str, question: Question | None) -> Sentence:
    statement = read_statement(text, is_answer=question is not None)
    if statement is None:
        return Sentence(text, "request" if is_question(text) else "nothing")
    if turn.role.lower() not in AGENT_ROLES:
        return Sentence(text, statement.kind, 1.0 if is_vital(text) else statement.worth)
    # An agent's advice is not an instruction.
    return Sentence(text, "fact" if statement.kind == INSTRUCTION else statement.kind, _AGENT_FACTOR * statement.worth)


def _needs_question(turn: Turn, text: str, question: Question) -> bool:
    """Whether a sentence is an answer that cannot be understood without its question."""
    size = word_count(text)
    is_about_person = size <= _MAX_BARE_WORDS or _PATTERNS.question_about_person.search(question.text.lower())
    if turn.role.lower() in AGENT_ROLES or not is_about_person:
        return False
    if word_count(question.text) > _MAX_QUESTION_WORDS or size > _MAX_ANSWER_WORDS:
        return False
    if is_question(text) or is_secret(question.text) or text.endswith("!!") or is_duplicate(text, question.text):
        return False
    return is_fragment(text)


def _find_question(turn: Turn, before: Turn | None) -> Question | None:
    """The question that somebody else ended their turn with."""
    if before is None or before.name == turn.name or before.role.lower() in TOOL_ROLES:
        return None
    texts = split_sentences(before.text[-_SCANNED_CHARACTERS * 4 :])
    return Question(texts[-1], before) if texts and is_question(texts[-1]) else None


def choose_sentences(text: str, most: int) -> list[str]:
    """The sentences of a turn, long quotations left out; of too many, those that seem to say most of the speaker."""
    own_text = _PATTERNS.given_text.sub("", _PATTERNS.quoted_line.sub("", text))
    found = split_sentences(_PATTERNS.quoted_passage.sub(r"\1…\2", own_text))
    if len(found) <= most:
        return found
    last_places = {sentence: place for place, sentence in enumerate(found)}
    words = _PATTERNS.speaker_word
    scores = {place: min(len(words.findall(text[:_SCANNED_CHARACTERS])), 2) for text, place in last_places.items()}
    best = sorted(scores, key=lambda place: (-scores[place], place))[:most]
    return [found[place] for place in sorted(best)]


def _read_by_model(
    model: KindModel, encoder: Encoder, pairs: Sequence[tuple[Turn | None, Turn]], has_agent: bool, is_group: bool
) -> Iterator[TurnReading]:
    inputs = [list(_kind_inputs(before, turn, has_agent, is_group)) for before, turn in pairs]
    texts = list(dict.fromkeys(text for own in inputs for each in own for text in (each.text, each.before)))
    means = dict(zip(texts, encoder.layer_means(texts), strict=True))
    rows = [each._replace(vector=means[each.text], vector_before=means[each.before]) for own in inputs for each in own]
    judgements = model.judge(rows)
    least = _least_chances([turn.name for (_, turn), own in zip(pairs, inputs, strict=True) for _ in own], judgements)
    remaining = iter(judgements)
    for (before, turn), own in zip(pairs, inputs, strict=True):
        whole, *parts = [next(remaining) for _ in own]
        own_least = _MIN_INSTRUCTION if own[0].is_to_agent else least[turn.name]
        sentences = [_weigh(each, whole, part, own_least) for each, part in zip(own[1:], parts, strict=True)]
        if detect_language(turn.text) != ENGLISH:
            # The model reads other languages, but rules know more of their ways to order and to like.
            for place, sentence in enumerate(sentences):
                known = _read_sentence(turn, sentence.text, None)
                if known.worth > sentence.worth:
                    sentences[place] = known
                elif known.worth:
                    sentences[place] = sentence._replace(kind=known.kind)
        question = _find_question(turn, before)
        if question and sentences and _needs_question(turn, sentences[0].text, question):
            kind = "decision" if sentences[0].kind == INSTRUCTION else sentences[0].kind
            sentences[0] = sentences[0]._replace(question=question, kind=kind)
        elif sentences:
            sentences[0] = _weigh_alone(sentences[0])
        yield TurnReading(turn, tuple(sentences), whole, means)


def _least_chances(names: Sequence[str], judgements: Sequence[Judgement | None]) -> dict[str, float]:
    """By speaker: the probability from which a sentence to people is taken for an instruction."""
    chances: dict[str, list[float]] = {name: [] for name in names}
    for name, judgement in zip(names, judgements, strict=True):
        chances[name].append(judgement.probabilities[INSTRUCTION] if judgement else 0.0)
    return {
        name: _MIN_INSTRUCTION_TO_PEOPLE[sum(own) >= _OFTEN * max(len(own), _FEW_SENTENCES)]
        for name, own in chances.items()
    }


def _kind_inputs(before: Turn | None, turn: Turn, has_agent: bool, is_group: bool) -> Iterator[KindInput]:
    """A turn as the model reads it, and then its sentences. In a group, whoever answers the agent speaks to it."""
    said, continues = (before.text, before.name == turn.name) if before else ("", False)
    hears = before is not None and before.role.lower() in AGENT_ROLES if is_group else has_agent
    is_to_agent = turn.role.lower() not in AGENT_ROLES and (hears or not turn.speaker)
    whole = KindInput(turn.text, turn.role, said, continues=continues, is_to_agent=is_to_agent)
    yield whole
    for text in _join_terse(choose_sentences(turn.text, _MAX_JUDGED)):
        yield whole._replace(text=text, before=said, continues=continues, is_sentence=True)
        said, continues = text, True


def _join_terse(texts: Sequence[str]) -> list[str]:
    """The sentences of a turn; those of a short one as one, without thanks before them and questions that end it."""
    starts, ends = 0, len(texts)
    while ends > 1 and is_question(texts[ends - 1]):
        ends -= 1
    while starts < ends - 1 and word_count(texts[starts]) <= _MAX_BARE_WORDS and is_small_talk(texts[starts]):
        starts += 1
    said = texts[starts:ends]
    joined = " ".join(said)
    is_short = len(said) > 1 and word_count(joined) <= _MAX_TERSE_WORDS and not any(map(is_question, said))
    return [*texts[:starts], joined, *texts[ends:]] if is_short and any(map(is_fragment, said)) else list(texts)


def _weigh_alone(sentence: Sentence) -> Sentence:
    """The first sentence of a turn, worth less if it cannot be understood without the turn before."""
    if sentence.kind in (INSTRUCTION, "change"):
        return sentence
    is_bare = word_count(sentence.text) <= _MAX_BARE_WORDS and is_fragment(sentence.text)
    is_unclear = _PATTERNS.unclear.match(sentence.text.lower().replace("’", "'"))
    return sentence._replace(
        worth=0.0 if is_bare else _UNCLEAR_FACTOR * sentence.worth if is_unclear else sentence.worth
    )


def _weigh(read: KindInput, whole: Judgement | None, own: Judgement | None, least: float) -> Sentence:
    """What a sentence holds, by what the model says of it and of its turn. `least` is for instructions."""
    if whole is None or own is None:
        return Sentence(read.text)
    text, chance, worth = read.text, own.probabilities[INSTRUCTION], sqrt(own.keep * whole.keep)
    is_formal = read.is_to_agent and chance >= _MIN_FORMAL_INSTRUCTION and is_instruction(text)
    if is_unfit(text, may_suppose=read.is_to_agent and chance >= least):
        return Sentence(text)
    if (chance >= least or is_formal) and not _PATTERNS.one_off.search(text):
        return Sentence(text, INSTRUCTION, max(worth, sqrt(chance), MIN_WORTH))
    statement = read_statement(text) if read.is_to_agent else None
    if statement and statement.kind == "preference":  # said in few words, it looks like small talk to the model
        worth = max(worth, statement.worth)
    worth = 1.0 if is_vital(text) else worth
    if worth >= MIN_WORTH and own.kind not in KEPT_KINDS[1:]:
        # What is worth keeping for its turn alone states something, and decides nothing.
        is_plain = own.kind == "nothing"
        return Sentence(text, "fact" if is_plain else max(KEPT_KINDS[1:], key=own.probabilities.__getitem__), worth)
    return Sentence(text, own.kind, worth)
