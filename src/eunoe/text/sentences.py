"""Texts in sentences, words, tokens and parts for embedding; the lines of a summary, and quotations as statements."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from math import ceil
from typing import Final, NamedTuple

from eunoe.text.languages import ENGLISH, is_stop_word
from eunoe.text.normalize import HAN_AND_KANA, SOUTH_EAST_ASIAN, WIDE, fold, load_table, load_words, word_set

# ruff: noqa: RUF001


_CODE_BLOCK: Final = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_LIST_MARK: Final = re.compile(r"^\s*(?:[-*•·‣–+>]|#{1,6}|\(?\d{1,3}[.)]|\(?[a-zA-Z]\))\s+")
_WRAPPED_LINE_CHARACTERS: Final = range(60, 2000)
_CHARACTERS_BEFORE_STOP: Final = 40
"""How far back a full stop is looked at: further than an abbreviation is long."""
_END: Final = re.compile(
    r"""(?P<wide>[。！？｡۔।॥።။។؟]+[」』”’）)"]*)"""
    r"""|(?<![.!?…])(?P<mark>[.!?…]++)(?P<close>["'”’»)\]]*+)(?=\s|$)"""
)
_OPENING: Final = "([\"'“„«"
_NEXT_WORD: Final = re.compile(r"\s*[\"'“„«(\[]*(\S*)")
_ABBREVIATIONS: Final = load_table("abbreviations")
_AFTER_ORDINAL: Final = re.compile(
    r"(?:jan|feb|m[äa]r|apr|ma[iyj]|jun|jul|aug|sep|o[kc]t|nov|de[zc])\w*|tag|jahrhundert", re.IGNORECASE
)
"""What follows a number of order: a month, or "Tag" and "Jahrhundert" in German."""
_TWO_LETTER_WORDS: Final = re.compile(f"[{HAN_AND_KANA}]")
_FOUR_LETTER_WORDS: Final = re.compile(f"[{SOUTH_EAST_ASIAN}]")
_CLAUSE_END: Final = re.compile(
    r"[,;:–—、，；]\s*|\s[-–—]\s|\s(?=(?:and|but|because|so|which|when|while|although|though|und|"
    r"aber|weil|mais|et|parce|pero|y|e|ma|en|maar)\s)"
)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, as written; code blocks are left out, list marks dropped.

    >>> split_sentences("Dr. Bell paid 3.50 at eunoe.dev. Was it a lot? 我住在上海。我喜欢茶。")
    ['Dr. Bell paid 3.50 at eunoe.dev.', 'Was it a lot?', '我住在上海。', '我喜欢茶。']
    """
    return [sentence for line in _unwrapped_lines(_CODE_BLOCK.sub("\n", text)) for sentence in split_line(line)]


def split_line(line: str) -> Iterator[str]:
    """Yield the sentences of one line, as written."""
    bounds = [0]
    for match in _END.finditer(line):
        if match["wide"] or _ends_sentence(line, bounds[-1], match):
            bounds.append(match.end())
    for start, end in pairwise([*bounds, len(line)]):
        if sentence := line[start:end].strip():
            yield sentence


def word_count(text: str) -> int:
    """Return how many words a text has; in scripts without spaces by the usual length of their words.

    >>> word_count("I moved to Rome."), word_count("我住在上海。")
    (4, 3)
    """
    if text.isascii():
        return len(text.split())
    return sum(map(_token_words, text.split()))


def cut_to_words(text: str, limit: int) -> str:
    """Cut a text to so many words: at the end of a clause where there is one, and then "…".

    >>> cut_to_words("I moved to Rome in May, because the rent in Milan had doubled within a year.", 10)
    'I moved to Rome in May…'
    """
    if word_count(text) <= limit:
        return text
    start = _first_words(text, limit)
    ends = [match.start() for match in _CLAUSE_END.finditer(start)]
    clauses = start[: ends[-1]] if ends else ""
    return (clauses if word_count(clauses) * 2 >= limit else start).rstrip(" ,;:–—-、，；(") + "…"


def _token_words(token: str) -> int:
    if token.isascii():
        return 1
    short, long = len(_TWO_LETTER_WORDS.findall(token)), len(_FOUR_LETTER_WORDS.findall(token))
    return max(1, -(-short // 2) + -(-long // 4))


def _first_words(text: str, limit: int) -> str:
    count, end = 0, 0
    for match in re.finditer(r"\S+", text):
        token = match[0]
        count += _token_words(token)
        if count > limit:
            lengths = range(1, len(token) + 1)
            letters = bisect_right(lengths, limit, key=lambda length: _token_words(token[:length]))
            return text[:end] or token[: max(letters, 1)]
        end = match.end()
    return text


def _unwrapped_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text without list marks; one that was only wrapped goes on with the next."""
    line = ""
    for raw in text.splitlines():
        following = _LIST_MARK.sub("", raw).strip()
        is_wrapped = line and len(line) in _WRAPPED_LINE_CHARACTERS and line[-1] not in ".!?…。！？:;"
        if line and not (following and is_wrapped and raw[:1].islower()):
            yield line
            line = ""
        line = f"{line} {following}" if line else following
    if line:
        yield line


def _ends_sentence(line: str, start: int, end: re.Match[str]) -> bool:
    following = _NEXT_WORD.match(line, end.end())
    after = following[1] if following else ""
    if not after:
        return True
    mark = end["mark"]
    if end["close"] or mark[0] == "…" or (len(mark) > 1 and set(mark) == {"."}):
        return not after[0].islower()
    if mark != ".":
        return True
    # A full stop may belong to an abbreviation, an initial or a number of order.
    before = line[max(start, end.start() - _CHARACTERS_BEFORE_STOP) : end.start()]
    last = "".join(before.split()[-1:]).lstrip(_OPENING)
    if last.isdecimal():
        return len(last) > 2 or not _AFTER_ORDINAL.match(after)
    if len(last) == 1 and last.isalpha():
        return not (last.isupper() and last != "I" and after[0].isupper() and before.strip() != last)
    match _ABBREVIATIONS.get(last.lower()):
        case "always":
            return False
        case "before a number":
            return not after[0].isdecimal()
        case "before a name":
            return not (last[0].isupper() and after[0].isupper())
        case "before a small letter":
            return not after[0].islower()
    return True


LONG_TEXT_WORDS: Final = 150
"""A text of at most so many words has one vector: it is about one thing, and in parts it is found less well
(docs/decisions/0018-parts.md)."""
PART_WORDS: Final = 60
"""About how many words a part has."""
MAX_PARTS: Final = 64
"""About how many parts a text has at most: a longer one has longer parts."""
_USUAL_WORD_CHARACTERS: Final = 6
"""With the blank after it. A longer word counts as several: a model reads it in pieces."""


def split_into_parts(text: str) -> list[str]:
    """Split a text for embedding: whole, or cut between lines and sentences into parts of about the same length.

    >>> split_into_parts("Anna moved to Rome.")
    ['Anna moved to Rome.']
    >>> [len(part.split()) for part in split_into_parts("Anna moved to Rome. " * 50)]
    [68, 68, 64]
    """
    if len(text) < 2 * LONG_TEXT_WORDS or (total := _size(text)) <= LONG_TEXT_WORDS:
        return [text]
    part_size = total / min(round(total / PART_WORDS), MAX_PARTS)
    return list(_join_pieces(text, part_size))


def _size(text: str) -> float:
    """How many words of the usual length a text has."""
    return max(word_count(text), len(text) / _USUAL_WORD_CHARACTERS)


def _join_pieces(text: str, part_size: float) -> Iterator[str]:
    part, size = list[str](), 0.0
    for line in text.splitlines():
        for sentence in split_line(line):
            for piece in filter(None, _cut_sentence(sentence, part_size)):
                more = _size(piece)
                if part and size + more / 2 > part_size:
                    yield " ".join(part)
                    part, size = [], 0.0
                part.append(piece)
                size += more
    if part:
        yield " ".join(part)


def _cut_sentence(sentence: str, part_size: float) -> Iterator[str]:
    """Cut a sentence that is too long for a part evenly, between words where there are any."""
    step = ceil(len(sentence) / ceil(_size(sentence) / part_size))
    start = 0
    while start < len(sentence):
        end = start + step
        blank = sentence.rfind(" ", start + step // 2, end) if end < len(sentence) else -1
        end = end if blank < 0 else blank
        yield sentence[start:end].strip()
        start = end


CHARACTERS_PER_TOKEN: Final = 4.5
"""Usual for English. A character of a script without spaces is about one token."""
_WIDE: Final = re.compile(f"[{WIDE}]+")


def token_count(text: str) -> int:
    """Estimate the tokens of a text.

    >>> token_count("nine more characters"), token_count("東京タワー")
    (5, 5)
    """
    return ceil(text_width(text) / CHARACTERS_PER_TOKEN)


def text_width(text: str) -> float:
    """Return the length of a text, where a character that is a token of its own counts as 4.5. Widths add up."""
    if text.isascii():
        return float(len(text))
    wide = sum(map(len, _WIDE.findall(text)))
    return len(text) + (CHARACTERS_PER_TOKEN - 1) * wide


HEADINGS: Final = {"instruction": "Instructions", "plan": "Plans", "decision": "Decisions"}
"""What is gathered by its label rather than by whom it is about."""
PAST: Final = "Past"
_LAST_HEADINGS: Final = (HEADINGS["plan"], HEADINGS["decision"], PAST)
_RESERVED: Final = frozenset(map(fold, [*HEADINGS.values(), PAST]))
"""Headings that no name may take: whoever is called so could put words among the instructions."""
_HEADING: Final = re.compile(r"(?P<subject>[^\s:#*•-][^:\n]{0,60}):")
_STATEMENT: Final = re.compile(r"(?P<mark>- )?(?:(?P<date>\d{4}-\d\d-\d\d)(?P<past> \(past\))?: )?(?P<text>.+)")


class SummaryLine(NamedTuple):
    """One line of a summary, or a sentence of one that is prose."""

    text: str
    """Without its mark and its date."""
    subject: str = ""
    """The heading above it; empty for what is below none."""
    date: str = ""
    is_past: bool = False
    is_heading: bool = False
    number: int = 0
    """Sentences of prose with the same number stand on one line."""

    @property
    def is_prose(self) -> bool:
        return not (self.subject or self.date or self.is_heading)

    def __str__(self) -> str:
        if self.is_heading:
            return f"{self.text}:"
        date = f"{self.date}{' (past)' if self.is_past else ''}: " if self.date else ""
        return f"{'- ' if self.subject else ''}{date}{self.text}"


def read_summary(text: str) -> Iterator[SummaryLine]:
    """Yield the lines of a summary. A heading is a line with a colon that is followed by statements, each with a mark.

    >>> [str(line) for line in read_summary("Tea:\\n- 2024-05-07: Anna likes it.") if line.subject]
    ['- 2024-05-07: Anna likes it.']
    """
    lines = filter(None, (" ".join(line.split()) for line in text.splitlines()))
    subject = ""
    for number, (line, following) in enumerate(pairwise([*lines, ""])):
        heading, statement = _HEADING.fullmatch(line), _STATEMENT.fullmatch(line)
        if heading and following.startswith("- "):
            subject = heading["subject"].strip()
            yield SummaryLine(subject, is_heading=True)
        elif statement:
            subject = subject if statement["mark"] else ""
            if subject or (statement["date"] and not statement["mark"]):
                date, is_past = statement["date"] or "", bool(statement["past"])
                yield SummaryLine(statement["text"], subject, date, is_past, number=number)
            else:
                yield from (SummaryLine(sentence, number=number) for sentence in _split_prose(line))


def _split_prose(line: str) -> list[str]:
    """The sentences of a line; all of it where these leave something out, such as a mark."""
    found = split_sentences(line)
    return found if " ".join(found) == line else [line]


def is_subject(name: str) -> bool:
    """Whether a name can stand in a heading."""
    return bool(_HEADING.fullmatch(f"{name}:")) and name == " ".join(name.split()) and fold(name) not in _RESERVED


def without_headings(summary: str) -> str:
    """The statements of a summary, each on its line."""
    return "\n".join(str(line) for line in read_summary(summary) if not line.is_heading)


def write_summary(lines: Sequence[SummaryLine]) -> str:
    """The text of lines that are given from the oldest on: prose as it was, then each subject with the newest first."""
    prose = groupby((line for line in lines if line.is_prose), key=lambda line: line.number)
    written = [" ".join(map(str, sentences)) for _, sentences in prose]
    groups: dict[str, list[SummaryLine]] = {}
    for line in (line for line in reversed(lines) if not line.is_prose):
        groups.setdefault(fold(line.subject), []).append(line)
    for group in sorted(groups.values(), key=lambda group: _order(group[0].subject)):
        written += [f"{group[0].subject}:"] if group[0].subject else []
        written += map(str, group)
    return "\n".join(written)


def _order(heading: str) -> int:
    """What is below no heading, instructions, people from the one last heard of, and then the rest."""
    if heading in _LAST_HEADINGS:
        return 3 + _LAST_HEADINGS.index(heading)
    return 0 if not heading else 1 if heading == HEADINGS["instruction"] else 2


_QUOTATION: Final = re.compile(r"(?P<name>[^\W_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){0,2}): (?P<words>[^\n]{1,300})")
_ADVERBS: Final = "(?:(?:also|always|currently|finally|just|never|now|often|only|really|recently|still|usually) )?"
_OWN: Final = re.compile(rf"(?P<subject>I(?:'\w+)?) (?P<adverb>{_ADVERBS})(?P<rest>.+)")
_BELONGINGS: Final = re.compile(
    r"My (?P<what>(?:[\w'-]+ ){1,4}?)(?P<verb>is|are|was|were|has|have|had|lives?|works?|lik(?:es|e)|loves?|moved|died|"
    r"plays?|goes|comes?|came|started|turned|turns) (?P<rest>.+)"
)
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_BREAK: Final = re.compile(r"[?\"“”„«»`;…]|[.!。！] ?\S|\((?:asked|until)\b|\bn't I\b")
_SECOND_VERB: Final = re.compile(
    r",(?! [A-ZÀ-Þ])|\b(?:and|or|but|then|so)\b(?! (?:an?|the|two|three|four|five|six|no|some|\d+)\b)"
)
"""What another verb of the speaker may follow, which would have to change as well."""
_MODAL_VERBS: Final = frozenset(["will"])
"""Verbs after which another one stays as it is."""
_MAX_NAME_WORDS: Final = 3
_INDEFINITE: Final = word_set("anybody anyone everybody everyone nobody none somebody someone who not")
_THIRD: Final = load_table("third_person")
_FIRST: Final = {third: first for first, third in reversed(_THIRD.items())}
_BOUND: Final = load_words("not_third_person")


def third_person(quotation: str) -> str:
    """Put what a speaker says of themselves as a statement about them; "" where it may not mean the same.

    >>> third_person("Anna: I'm allergic to peanuts."), third_person("Anna: My sister Eva lives in Rome.")
    ('Anna is allergic to peanuts.', "Anna's sister Eva lives in Rome.")
    >>> third_person("Anna: I live in Rome and work from home."), third_person("Anna: We moved to Rome.")
    ('', '')
    """
    match = _QUOTATION.fullmatch(quotation.replace("’", "'"))
    if match is None or _BREAK.search(match["words"]) or not _is_name(match["name"]):
        return ""
    name, words = match["name"], match["words"]
    if own := _OWN.fullmatch(words):
        return _state_own(name, own)
    belongings = _BELONGINGS.fullmatch(words)
    return f"{name}'s {words[3:]}" if belongings and not _is_bound(words[3:]) else ""


def quotation_of(statement: str) -> str:
    """The quotation that a statement was made from, in its plainest form; "" if it was made from none.

    >>> quotation_of("Anna still lives in Rome."), quotation_of("It rained.")
    ('Anna: I still live in Rome.', '')
    """
    words = statement.split(" ")
    for end in range(1, min(_MAX_NAME_WORDS + 1, len(words))):
        name, rest = " ".join(words[:end]), words[end:]
        belongings = " ".join([f"{name[:-2]}: My", *rest]) if name.endswith("'s") else ""
        own = (_with_verb(name, rest, place) for place in range(min(2, len(rest))))
        for quotation in filter(None, (belongings, *own)):
            if third_person(quotation) == statement:
                return quotation
    return ""


def _with_verb(name: str, words: list[str], place: int) -> str:
    """A quotation in which the word at a place is a verb of the first person."""
    first = _FIRST.get(words[place], "").removeprefix("I ")
    return " ".join([f"{name}: I", *words[:place], first, *words[place + 1 :]]) if first else ""


def _state_own(name: str, own: re.Match[str]) -> str:
    """What is said with "I", with the verb in its other form."""
    subject, adverb, (first, _, rest) = own["subject"], own["adverb"], own["rest"].partition(" ")
    if subject == "I":
        verb, third = first, _THIRD.get(f"I {first}", "")
        stated = f"{adverb}{third} {rest}"
    else:
        verb, third, rest = "", _THIRD.get(subject, ""), own["rest"]
        stated = f"{third} {adverb}{rest}"
    is_changed = third != verb and third not in _MODAL_VERBS
    if not third or not rest or _is_bound(rest) or (is_changed and _SECOND_VERB.search(rest)):
        return ""
    return f"{name} {stated}"


def _is_bound(words: str) -> bool:
    return not _BOUND.isdisjoint(_WORD.findall(words.lower()))


def _is_name(name: str) -> bool:
    """Whether a statement about it speaks of one person; "Nobody" and "The others" are called so by chance."""
    return not any(is_stop_word(word, ENGLISH) or word in _INDEFINITE for word in name.lower().split())
