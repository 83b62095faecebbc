"""A question, read against a stream: what it looks for, whom it names, which times it means."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from eunoe.index.lexical import TermGroup
from eunoe.index.stream import StreamIndex
from eunoe.text import analyzer, dates
from eunoe.text.dates import DateRange
from eunoe.text.languages import ENGLISH, FRAME_WORDS, guess_language, stop_words
from eunoe.text.plurals import other_numbers
from eunoe.text.typing_errors import one_letter_away

NearWords = tuple[tuple[str, float], ...]

MAX_WORDS: Final = 48
MAX_CHARACTERS: Final = 20_000
"""What is longer is cut: no question is."""

_FRAME_WEIGHT: Final = 0.4
"""Of words that only frame a question, such as `tell`."""
_DATE_WEIGHT: Final = 0.3
"""Of words for a time, which counts by itself."""
_PART_WEIGHT: Final = 0.5
"""Of the words in an identifier, which counts as a whole."""
_SINGLE_HAN_WEIGHT: Final = 0.4
"""Of a Chinese character beside the pairs that it is in: it is often a word of its own."""
_HAN: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_JOINT: Final = re.compile(r"[-'\u2019]")
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_SPREAD_UMLAUT: Final = re.compile("(?<![aeiouq])([aou])e(?=[^aeiou][a-z]{2}|h[lmn]$|rg$)")
"""As in Mueller, Goethe and Joerg, and not as in poets, Noel and Samuel."""
_OTHER_NUMBER_FIT: Final = 0.9
"""Of the plural of a word, or its singular: its ending could be that of another word."""
_MISTYPED_FIT: Final = 0.8
"""Of a term that a word is a letter away from."""
_MIN_NICKNAME_CHARACTERS: Final = 3
_MAX_CACHED_CHARACTERS: Final = 48
_FRAME_STEMS: Final = frozenset(analyzer.stem(word) for word in FRAME_WORDS)
_PHRASAL_VERB: Final = re.compile(
    r"\b(\w+)\s+(?:(up|out|off|down|back|away)\b|(in|on)(?=\s*(?:$|[?!.,;:)]|(?:to|with|without|by|from|for|via|using|"
    r"as|at|again|and|or|when|after|before|first)\b)))",
    re.IGNORECASE,
)
"""A word and one behind it that may change what it means. `in` and `on` do if they belong to no noun."""
_PHRASAL_WEIGHT: Final = 0.4
"""Of the first of the two: to log in is not to log."""
_JOINED_VERBS: Final = frozenset(["login", "logon", "timeout"])
"""Phrasal verbs that are read as one word: the vector of the two is that of a log or of a time."""
_ASKS_TIME: Final = re.compile(
    r"\b(?:when|what (?:date|year|month|day|time|age)|which (?:date|year|month|day|week)|how (?:long|old|often|soon)|"
    r"how many (?:days|weeks|months|years|hours)|date of|on what|by what date|since when|until when|"
    r"wann|wie lange|quand|cuándo|cuando|quando|wanneer|когда)\b|何時|いつ|什么时候|언제"
)
_ASKS_NUMBER: Final = re.compile(
    r"\b(?:how (?:many|much|old|far|long|big|tall|large|high|heavy|often)|what (?:number|size|price|percentage|share|"
    r"score|rate|budget|amount)|price|cost|number of|budget|amount|total|"
    r"wie ?viele?|combien|cuánt[oa]s?|quant[oaie]|quanto|hoeveel|сколько)\b|いくつ|多少|얼마"
)
UNSAID: Final = 0.1
"""How far a question asks for the present whose words do not say so."""
_PRESENT: Final = re.compile(
    r"\b(?:(?:do|am) i|(?:is|are|['’]s) (?:my|our))\b|"
    r"\b(?:now|nowadays|current(?:ly)?|latest|newest|(?:most|more) recent|still|these days|today|at present|presently|"
    r"actual(?:ly)?|final(?:ly)?|in the end|any ?more|at the moment|settled|up to date|so far|"
    r"jetzt|aktuell\w*|heute|inzwischen|mittlerweile|noch|zurzeit|derzeit\w*|gerade|"
    r"ahora|actualmente|todavía|hoy|aún|maintenant|actuel\w*|aujourd['’]hui|encore|désormais|"
    r"adesso|attual\w*|ancora|oggi|ora|agora|atual\w*|hoje|ainda|nu|nog|huidige|momenteel|teraz|obecnie|nadal|"
    r"сейчас|теперь|ещё)\b|现在|目前|現在|いま|지금"
)
_PAST: Final = re.compile(
    r"\b(?:original(?:ly)?|first|before|previous(?:ly)?|earlier|used to|(?<!how )old(?:er)?|former(?:ly)?|"
    r"initial(?:ly)?|beginning|started|at the start|did|were|had|ago|back then|once|order|sequence|history|"
    r"how (?:has|have)|chang(?:e|ed|es)|was(?! (?:ist|sind|wird|werden|hat|haben|soll|kann|muss|macht|kostet))|"
    r"ursprünglich\w*|früher\w*|zuerst|anfangs|damals|war|waren|hatten?|wurden?|bisher\w*|vorher|"
    r"antes|original\w*|primer[oa]?|fue|fueron|era|había|avant|d['’]abord|était|avait|ancien\w*|premi[eè]re?|"
    r"prima|inizialmente|originari\w*|fu|erano|aveva|finora|foi|primeir[oa]|tinha)\b|以前|最初"
)
_FUTURE: Final = re.compile(
    r"\b(?:will|going to|shall|plans?|planned|planning|next|upcoming|due|scheduled|supposed to|"
    r"wird|werden|werde|geplant\w*|nächste\w*|será|serán|va a|van a|próxim[oa]s?|sera|prochaine?|prévue?|"
    r"sarà|prossim[oa]|previst[oa]|vai)\b"
)


def present_share(question: str) -> float:
    """How far a question asks for what is true now, from 0 to 1. What will be is what is planned now, and whoever asks
    about themselves means today.

    >>> [present_share(text) for text in ("Where does Ada live now?", "Where did Ada live?", "the street of Ada")]
    [1.0, 0.0, 0.1]
    """
    text = question.lower()
    if _PRESENT.search(text):
        return 1.0
    if _PAST.search(text):
        return 0.0
    return 1.0 if _FUTURE.search(text) else UNSAID


@runtime_checkable
class Synonyms(Protocol):
    """Finds words of like meaning."""

    def similar_words(self, words: Sequence[str]) -> list[NearWords]:
        """For each folded word, others with how alike they are, above 0 and below 1, the best first."""


@runtime_checkable
class WordList(Synonyms, Protocol):
    """Knows the common words of English too."""

    def is_word(self, word: str) -> bool:
        """Whether a folded word is one of them, and so no typing error."""


class QuestionWord(NamedTuple):
    """One word of a question and the forms it may have in an index."""

    label: str
    forms: tuple[str, ...]
    weight: float
    folded: str = ""
    """The folded word, where other words can be near it."""
    chunk: str = ""
    """The piece of the question that it was taken from."""
    is_identifier: bool = False


class Question(NamedTuple):
    """A question, read once for all indexes."""

    text: str
    language: int | None
    """None if its words do not tell."""
    words: tuple[QuestionWord, ...]
    stop_words: tuple[QuestionWord, ...]
    asks_time: bool
    asks_number: bool
    present_share: float
    now: float


class QueryPlan(NamedTuple):
    """A question read against one index."""

    question: Question
    groups: tuple[TermGroup, ...]
    identifiers: tuple[int, ...]
    """Which of the groups are identifiers that the index knows."""
    name_groups: tuple[TermGroup, ...]
    """The names of speakers in the question, which are not among the groups."""
    speakers: frozenset[str]
    """The speakers that the question names,"""
    speaker_words: frozenset[str]
    """and the words it names them by."""
    date_ranges: tuple[DateRange, ...]
    present_share: float = 0.0
    """How far it asks for what is true now."""


def read_question(query: str, languages: Iterable[int], now: float) -> Question:
    """Split a question into words, each in its forms in these languages and its own."""
    text = _join_phrasal_verbs(query[:MAX_CHARACTERS])
    guess = guess_language(text)
    language = guess or ENGLISH
    form_languages = tuple(sorted({ENGLISH, language, *languages}))
    words: dict[str, QuestionWord] = {}
    frame: dict[str, QuestionWord] = {}
    stops = stop_words(language)
    for chunk in text.split():
        split = _split_chunk_cached if len(chunk) <= _MAX_CACHED_CHARACTERS else _split_chunk
        for word in split(chunk, form_languages):
            is_frame = (word.folded or word.label) in stops or (language != ENGLISH and _has_only(word, stops))
            (frame if is_frame else words).setdefault(word.label, word)
    lowered = text.lower()
    for verb, *_ in _PHRASAL_VERB.findall(lowered):
        if verb in words:
            words[verb] = words[verb]._replace(weight=words[verb].weight * _PHRASAL_WEIGHT)
    return Question(
        text=text,
        language=guess,
        words=tuple(words.values())[:MAX_WORDS],
        stop_words=tuple(frame.values())[:MAX_WORDS],
        asks_time=bool(_ASKS_TIME.search(lowered)),
        asks_number=bool(_ASKS_NUMBER.search(lowered)),
        present_share=present_share(text),
        now=now,
    )


def _join_phrasal_verbs(text: str) -> str:
    """The text with some phrasal verbs as one word.

    >>> _join_phrasal_verbs("Who is logged in? What is logged in production?")
    'Who is login? What is logged in production?'
    """

    def join(match: re.Match[str]) -> str:
        joined = analyzer.stem(match[1].lower()) + (match[2] or match[3]).lower()
        return joined if joined in _JOINED_VERBS else match[0]

    return _PHRASAL_VERB.sub(join, text)


def _has_only(word: QuestionWord, stops: frozenset[str]) -> bool:
    """Whether it joins words that say nothing, such as "qu'est-ce"."""
    return not word.folded and stops.issuperset(_JOINT.split(word.label))


def _split_chunk(chunk: str, languages: tuple[int, ...]) -> tuple[QuestionWord, ...]:
    found = analyzer.split_token(chunk)
    words = [
        QuestionWord(whole, (whole,), 1.0, chunk=chunk, is_identifier=analyzer.is_identifier(whole))
        for whole in found.exact_terms
    ]
    for word in found.words:
        weight = _PART_WEIGHT if found.exact_terms else 1.0
        if analyzer.stem(word) in _FRAME_STEMS:
            weight *= _FRAME_WEIGHT
        spellings = (word, *_other_spellings(word, chunk))
        forms = tuple(dict.fromkeys([analyzer.stem(each, language) for each in spellings for language in languages]))
        words.append(QuestionWord(word, forms, weight, word, chunk))
    for run in found.spaceless_runs:
        words += [QuestionWord(pair, (pair,), 1.0, chunk=chunk) for pair in analyzer.character_pairs(run)]
        words += [QuestionWord(sign, (sign,), _SINGLE_HAN_WEIGHT, chunk=chunk) for sign in _HAN.findall(run)]
    return tuple(words)


def _other_spellings(word: str, chunk: str) -> tuple[str, ...]:
    """How else names with umlauts are written: Müller and Muller as Mueller, and Mueller as Müller."""
    if len(chunk) > _MAX_CACHED_CHARACTERS:  # no name; it may hold thousands of words, each of which comes here
        return ()
    if not chunk.isascii():
        spread = chunk.lower().translate(_UMLAUTS)
        words = analyzer.folded_words(spread) if spread != chunk.lower() else []
        return tuple(words) if len(words) == 1 else ()
    return (_SPREAD_UMLAUT.sub(r"\1", word),) if chunk[0].isupper() and _SPREAD_UMLAUT.search(word) else ()


_split_chunk_cached: Final = analyzer.word_cache(4096)(_split_chunk)


def plan_query(question: Question, index: StreamIndex, synonyms: Synonyms | None) -> QueryPlan:
    """Find a question's words, people and times in an index."""
    named = _named_speakers(question, index.layout.speakers_by_word) if index.layout.speakers_by_word else {}
    ranges = dates.find_date_ranges(question.text, question.now, index.layout.time_span)
    date_words = {word for found in ranges for word in analyzer.folded_words(question.text[slice(*found.span)])}
    words = [word for word in question.words if word.folded not in named] or question.words or question.stop_words
    groups: list[TermGroup] = []
    language = index.lexical.other_language if question.language is None else question.language
    for word, near in zip(words, _near_words(words, synonyms), strict=True):
        weight = word.weight * (_DATE_WEIGHT if word.folded in date_words else 1)
        group = term_group(word._replace(weight=weight), index, near)
        if language != ENGLISH:
            group = _with_related_terms(group, word, index, language)
        elif not group.exact_count and isinstance(synonyms, WordList) and not synonyms.is_word(word.folded):
            group = _with_mistyped_terms(group, word, index)
        groups.append(group)
    return QueryPlan(
        question=question,
        groups=tuple(groups),
        identifiers=_known_identifiers(words, groups),
        name_groups=tuple(term_group(word, index) for word in question.words if word.folded in named),
        speakers=frozenset[str]().union(*named.values()),
        speaker_words=frozenset(named),
        date_ranges=ranges,
        present_share=_present_share(question, ranges),
    )


def _present_share(question: Question, ranges: Iterable[DateRange]) -> float:
    """A question about a time that is over asks for what was true then, unless it says otherwise."""
    is_over = any(range.end <= question.now for range in ranges)
    return question.present_share if question.present_share == 1 or not is_over else 0.0


def _known_identifiers(words: Sequence[QuestionWord], groups: Sequence[TermGroup]) -> tuple[int, ...]:
    """Of a path that is known as a whole, the file name is no identifier of its own."""
    known: dict[int, str] = {}
    for number, (word, group) in enumerate(zip(words, groups, strict=True)):
        if word.is_identifier and group.exact_count and not any(word.label in label for label in known.values()):
            known[number] = word.label
    return tuple(known)


def _named_speakers(question: Question, speakers: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The speakers that a question names, by the words it names them by. A capitalised short form counts when it can
    mean one speaker only."""
    named: dict[str, set[str]] = {}
    for word in [word.folded for word in question.words if word.folded]:
        if word in speakers:
            named[word] = speakers[word]
        elif len(word) >= _MIN_NICKNAME_CHARACTERS and word.capitalize() in question.text:
            longer = [names for name, names in speakers.items() if name.startswith(word)]
            if len(longer) == 1:
                named[word] = longer[0]
    return named


def without_names(query: str, indexes: Iterable[StreamIndex]) -> str:
    """The question as it is embedded: without the names of those who speak in the streams.

    Everyone's turns are about the speakers, so that a name pulls a vector towards greetings and away from the matter.
    """
    names = {name for index in indexes for name in index.layout.speakers_by_word}
    query = _join_phrasal_verbs(query)
    chunks = query.split()
    if names:
        words_of = {chunk: analyzer.folded_words(chunk) for chunk in chunks}
        chunks = [chunk for chunk in chunks if not words_of[chunk] or not names.issuperset(words_of[chunk])]
        if not any(words_of[chunk] for chunk in chunks):
            return query
    return " ".join(chunks)


def term_group(word: QuestionWord, index: StreamIndex, near: NearWords = ()) -> TermGroup:
    """The terms of an index that count as a word, and as the words near to it."""
    vocabulary = index.lexical.vocabulary
    fits = {vocabulary[form]: 1.0 for form in word.forms if form and form in vocabulary}
    exact_count = len(fits)
    if near:
        others = _near_forms(near, index.lexical.languages)
        for form in others.keys() & vocabulary.keys():
            fits.setdefault(vocabulary[form], others[form])
    return TermGroup(word.label, tuple(fits), tuple(fits.values()), exact_count, word.weight, word.chunk)


def _with_related_terms(group: TermGroup, word: QuestionWord, index: StreamIndex, language: int) -> TermGroup:
    """The group with forms and compounds of its word. An English one has its stem and words of like meaning."""
    fits = dict(zip(group.terms, group.fits, strict=True))
    # A text of a few words may count as English.
    stems = [analyzer.stem(each, of) for each in other_numbers(word.folded, language) for of in (language, ENGLISH)]
    for stem in filter(index.lexical.vocabulary.__contains__, stems):
        fits.setdefault(index.lexical.vocabulary[stem], _OTHER_NUMBER_FIT)
    for term, fit in index.lexical.related_terms.find(analyzer.stem(word.folded, language), language).items():
        fits.setdefault(index.lexical.vocabulary[term], fit)
    return group._replace(terms=tuple(fits), fits=tuple(fits.values()))


def _with_mistyped_terms(group: TermGroup, word: QuestionWord, index: StreamIndex) -> TermGroup:
    """The group of a word that the index does not know, with the terms that may have been meant."""
    vocabulary = index.lexical.vocabulary
    forms = _mistyped_forms(word.folded) & vocabulary.keys()
    meant = [vocabulary[form] for form in sorted(forms)]
    others = {term: fit for term, fit in zip(group.terms, group.fits, strict=True) if term not in meant}
    fits = (*[_MISTYPED_FIT] * len(meant), *others.values())
    return group._replace(terms=(*meant, *others), fits=fits, exact_count=len(meant))


@analyzer.word_cache(4096)
def _mistyped_forms(word: str) -> frozenset[str]:
    """The stems of the words that an English word is a letter away from."""
    return frozenset(map(analyzer.stem, one_letter_away(word)))


def exact_groups(question: Question, index: StreamIndex) -> tuple[TermGroup, ...]:
    """All words of a question, names included, without words of like meaning."""
    return tuple(term_group(word, index) for word in question.words or question.stop_words)


def expand_words(
    words: Sequence[QuestionWord], languages: frozenset[int], synonyms: Synonyms | None
) -> list[dict[str, float]]:
    """For each word the terms that count as it, and how well each fits (1 is exact)."""
    others = [_near_forms(near, languages) for near in _near_words(words, synonyms)]
    return [found | {form: 1.0 for form in word.forms if form} for word, found in zip(words, others, strict=True)]


def _near_words(words: Sequence[QuestionWord], synonyms: Synonyms | None) -> list[NearWords]:
    near = iter(synonyms.similar_words([word.folded for word in words if word.folded]) if synonyms else ())
    return [next(near, ()) if word.folded else () for word in words]


@analyzer.word_cache(4096)
def _near_forms(near: NearWords, languages: frozenset[int]) -> dict[str, float]:
    """The stems of near words, each with its best fit."""
    forms: dict[str, float] = {}
    for other, fit in near:
        for language in languages:
            forms.setdefault(analyzer.stem(other, language), fit)
    return forms
