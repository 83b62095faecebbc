"""Which sentences everybody may read: of things, not of people, and without a secret, an address or an order."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

from eunoe.form.statements import is_instruction, is_private, is_secret
from eunoe.text.analyzer import stem
from eunoe.text.languages import LANGUAGES, detect_language, is_stop_word
from eunoe.text.normalize import fold

_GERMAN: Final = LANGUAGES.index("german")
"""Where every noun has a capital."""


def is_for_all(sentence: str, subject: Container[str] = ()) -> bool:
    """Whether a sentence may be shared with every user; in doubt it may not.

    The first word may be a name, unless its stem or the next one's belongs to the subject.

    >>> is_for_all("Fresh bread keeps for 3 days."), is_for_all("Tom has flu, so no bread.")
    (True, False)
    """
    if is_private(sentence) or is_secret(sentence) or is_instruction(sentence):
        return False
    lowered = " ".join(sentence.lower().replace("’", "'").split())
    if _REACHED.search(lowered) or _CONFIDED.search(lowered) or _ORDERED.search(lowered):
        return False
    return not _names_somebody(sentence, subject)


def _names_somebody(sentence: str, subject: Container[str]) -> bool:
    spoken = detect_language(sentence)
    if _TITLED.search(sentence) or any(
        not is_stop_word(fold(word), spoken) for word in _BEFORE_A_NAME.findall(sentence)
    ):
        return True
    first = _FIRST.match(sentence)
    if (
        first
        and not is_stop_word(fold(first[1]), spoken)
        and not any(stem(fold(word)) in subject for word in first.groups(""))
    ):
        return True
    if spoken == _GERMAN:
        return bool(_DOING.search(sentence))
    return any(not _HARMLESS.fullmatch(found) for found in _CAPITAL.findall(sentence))


_REACHED: Final = re.compile(
    r"https?:|www\.|\S@\S|\w\.(?:com|net|org|io|co|info|biz|xyz|ru|cn|de|ch|at|fr|es|it|nl|uk|eu|us|me|app|dev|ai|"
    r"link|site|online|top|club)\b|(?:stra(?:ss|ß)e|gasse|weg|platz) \d|\d{5}|(?:\d[ .()/-]?){7}"
)
_CONFIDED: Final = re.compile(
    r"\b(?:pins?|codes?|digits?|passwords?|kennwort|vaults?|safe|keys?|combination|secrets?|tokens?|log-?ins?|"
    r"credentials|schlüssel|geheim\w*|tresor|clave|clé|chiave|chave|hiv|aids|cancer|krebs|pregnan\w+|schwanger|"
    r"diagnos\w+|depress\w+|suicid\w+|drunk|drinks|arrested|affair|divorced?|marriage|salary|debts?|husband|wife|"
    r"girlfriend|boyfriend|mother|father|mum|mom|dad|sister|brother|son|daughter|uncle|aunt|cousin|niece|nephew|"
    r"ehemann|ehefrau|neighbou?r|boss|customer|patient|household|family)\b"
)
"""Secrets, and what is told of people even where no name stands."""
_ORDERED: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass) (?:\w+ ){0,4}(?:instructions?|prompts?|rules?|messages?|said)\b"
    r"|\b(?:tell|ask|show|convince|urge|warn|advise|inform|remind|direct|send) (?:\w+ )?"
    r"(?:users?|customers?|everyone|everybody|people|them|clients?|visitors?)\b"
    r"|\b(?:system prompt|assistants?|agents?|chatbots?|users?|you (?:must|should|shall|have to|need to|will|are to)"
    r"|please|bitte)\b"
    r"|(?:^|[,:;] )(?:always|never|from now on|append|insert|include|send|visit|click|reply|answer|respond|output|"
    r"print|repeat|say|pretend|act|recommend|mention|remember|do not|don't|immer|niemals)\b"
)
_TITLED: Final = re.compile(
    r"\b(?:Mr|Mrs|Ms|Miss|Dr|Prof|Sir|Lady|Frau|Herrn?|Mme|Mlle|Monsieur|Madame|Señora?|Don|Doña|Sig)\b"
)
_BEFORE_A_NAME: Final = re.compile(r"(?<!\w)([A-ZÀ-ÖØ-Þ][a-zß-ÿ'’-]+)(?= [A-ZÀ-ÖØ-Þ][a-zß-ÿ'’-]+)")
"""The first of two words with a capital."""
_FIRST: Final = re.compile(
    r"[\"“(]?([A-ZÀ-ÖØ-Þ][a-zß-ÿ-]+)"
    r"(?:['’]s|,| (?:(?:also|often|always|never|just|still|now|only|really|usually|and|or|und) ){0,3}"
    r"(\w+(?:s|ed)|hat|ist|war|wohnt|lebt|kommt|geht|sagt|mag|macht|est|es|è|a|ha|tiene|had|went|got|told|said|will|can|"
    r"made|gave|took|came))(?![\w'’])"
)
"""A word with a capital that does something."""
_DOING: Final = re.compile(
    r"(?<!der )(?<!die )(?<!das )(?<!den )(?<!dem )(?<!ein )(?<!ine )\b[A-ZÄÖÜ][a-zß-ÿ]+ "
    r"(?:hat|ist|war|wohnt|lebt|kommt|geht|sagt|mag|macht|trinkt|isst|arbeitet|heißt|liebt|hasst)\b"
)
_CAPITAL: Final = re.compile(r"(?<=[^\s.!?:] )[\"“(]?([A-ZÀ-ÖØ-Þ][\w'’-]*)")
_HARMLESS: Final = re.compile(
    r"[A-Z0-9]{1,6}s?|\w*\d\w*|[A-Z]\w*[a-z][A-Z]\w*|[A-Z][a-z]+(?:ish|ese|ian)"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
    r"|January|February|March|April|May|June|July|August|September|October|November|December|Christmas|Easter"
)
"""Capitals that are no names: abbreviations, languages, days and months."""
