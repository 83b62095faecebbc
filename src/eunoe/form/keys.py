# ruff: noqa: RUF001
"""What a statement is about, if that has one value at a time: a later one with the same key takes its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from eunoe.text.normalize import fold
from eunoe.text.word_lists import word_set


def key_of(speaker: str, sentence: str, asked: str = "") -> str:
    """The key of a statement, such as `anna/home`; empty if it has none. `asked` is the question it answers.

    >>> key_of("Anna", "I moved to Rome in May."), key_of("Anna", "My favourite colour is green.")
    ('anna/home', 'anna/favourite colour')
    >>> key_of("Anna", "My sister is sick."), key_of("Anna", "I live in hope.")
    ('', '')
    >>> key_of("Anna", "Rome.", asked="Where do you live?")
    'anna/home'
    """
    text = " ".join(_QUOTED.sub(" ", sentence[: _LONGEST + 1].replace("’", "'")).split())
    owner = _owner(speaker)
    if not owner or len(text) > _LONGEST or _UNSURE.search(text):
        return ""
    whole = "" if asked else _whole(owner, text)
    if whole or _says_more(text):
        return whole
    if asked:
        return _joined(owner, _asked_for(asked)) if not _UNANSWERED.match(text) else ""
    if birthday := _BIRTHDAY.search(text):
        return _joined(_owner(birthday["who"]), "birthday")
    for attribute, pattern in _OTHERS:
        if other := pattern.match(text):
            return _joined(_owner(other["who"]), attribute)
    return _joined(owner, _attribute(text))


def clauses(sentence: str) -> list[str]:
    """The parts of a sentence that the speaker begins anew, such as "I'm Tom, I live in Rome and my cat is called Bo".

    >>> clauses("I'm allergic to nuts and I live in Rome.")
    ["I'm allergic to nuts", 'I live in Rome.']
    """
    return [part for part in _ANEW.split(sentence) if part.strip()]


def _says_more(text: str) -> bool:
    """Whether a sentence holds more than one thing: a new value of the one must not take the other away."""
    return text.count(" ") >= _MOST_WORDS or bool(_MORE.search(_BEGINNING.sub("", text)))


def _owner(name: str) -> str:
    return " ".join(fold(name).replace("/", " ").split())


def _joined(owner: str, attribute: str) -> str:
    return f"{owner}/{attribute}" if attribute else ""


def _attribute(text: str) -> str:
    for attribute, pattern in _PATTERNS:
        if pattern.search(text):
            return attribute
    for pattern, spelled in _NAMED:
        if match := pattern.search(text):
            return _checked(spelled(match), match["value"])
    return ""


def _whole(owner: str, text: str) -> str:
    """The key of a sentence of a form that leaves no room for anything else to be said."""
    if aged := _AGED.fullmatch(text):
        return _joined(_owner(aged["who"]), "age") if aged["who"] else _joined(owner, f"{fold(aged['kin'])}'s age")
    if _ANSWERING.fullmatch(text):
        return _joined(owner, "language of answers")
    return _joined(owner, _stance(text))


def _stance(text: str) -> str:
    """What somebody likes, takes or is allergic to: one key for the thing, whether they do or not."""
    for attribute, pattern in _STANCES:
        if match := pattern.fullmatch(text):
            words = _ARTICLE.sub("", fold(match[match.lastgroup or "what"])).split()
            return f"{attribute} {' '.join(map(_singular, words))}" if words and words[0] not in _NO_THING else ""
    return ""


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _asked_for(question: str) -> str:
    plain = question.replace("’", "'")
    for attribute, pattern in _QUESTIONS:
        if match := pattern.search(plain):
            return attribute.format(*map(fold, match.groups()))
    return ""


def _checked(attribute: str, value: str) -> str:
    """The attribute if it is one that can have one value, and the value is of its kind."""
    words = attribute.split()
    needs = _KINDS.get(" ".join(words[-2:])) or _KINDS.get(words[-1])
    fits = not _NO_VALUE.match(value) if words[0] in _SINGLE else bool(needs and needs.match(value))
    return _SAME.get(attribute, attribute) if fits else ""


def _mine(match: re.Match[str]) -> str:
    """The words after "my", with one spelling for what means the same."""
    words = fold(match["what"]).split()
    if words[0] in _DROPPED and len(words) > 1:
        words = words[1:]
    return " ".join(_SAME.get(word, word) for word in words)


def _favourite(match: re.Match[str]) -> str:
    return f"favourite {fold(match['what'])}"


def _start(pattern: str) -> re.Pattern[str]:
    """A pattern for the beginning of a clause; its small words in any case."""
    return re.compile(
        rf"(?:^|[,;:.!–—] |\b(?:[Aa]nd|[Bb]ut|[Ss]o|[Nn]ow|[Bb]ecause|[Tt]hat|und|et|"
        rf"y) ){_FILLED}{pattern}"
    )


_LONGEST: Final = 1000
_MOST_WORDS: Final = 16
_BEGINNING: Final = re.compile(r"^(?:\w+[,!] )+")
_MORE: Final = re.compile(
    r";|,? (?:and|but|because|while|although|und|aber|weil|et|mais|y|pero|ma|en|maar) (?=(?:\S+ )*?[a-zß-ÿ])"
    r"|, (?=(?:(?:and|but|so) )?(?:I|I'm|I've|my|we|he|she|they|it|who|which|where)\b)"
)
_BEGUN: Final = (
    r"(?=(?:I|I'm|I've|I’m|I’ve|we|ich|wir|je|yo)\b|(?:my|mein\w*|mon|ma|mi) (?:[\w'’-]+ ){1,3}"
    r"(?:is|are|was|were|has|have|had|lives?|works?|turns|comes?|goes|loves?|likes?|hates?|ist|sind|war|hat|heißt|wohnt|"
    r"est|sont|a|habite|es|son|tiene|vive)\b)"
)
_ANEW: Final = re.compile(rf"(?:;|,)? (?:and|but|und|aber|et|mais|y|pero) {_BEGUN}|[;,] {_BEGUN}")
_QUOTED: Final = re.compile(r"[\"“„«「][^\"”“»」]*[\"”“»」]")
_UNSURE: Final = re.compile(
    r"\?|\b(?i:if|maybe|perhaps|might|would|could|wish|used to|imagine|said|says|isn't|wasn't|"
    r"vielleicht|wenn|peut-être|quizás?)\b"
)
_UNANSWERED: Final = re.compile(r"(?i:no idea|don't know|not sure|why|nothing|none|never mind|i'd rather|guess)\b")
_FILLED: Final = (
    r"(?i:(?:oh|well|so|ok|okay|yes|yeah|hi|hello|hey|actually|also|and|but|now|currently|"
    r"nowadays|these days|today|btw|fyi|ja|oui|sí|hallo|hola|bonjour)[,!]? )*"
)
_A: Final = r"(?i:(?:really |just |now |still |also |currently |recently |finally |actually |both |all )*)"
_PLACE: Final = (
    r"(?!(?:Linux|Windows|Mac|Python|Rust|Java|Google|GitHub|GitLab|Slack|Notion|Obsidian|"
    r"Postgres|AWS|Azure|Team|Plan|Monday|Tuesday|"
    r"Wednesday|Thursday|Friday|Saturday|Sunday|January|February|March|April|May|June|July|August|"
    r"September|October|November|December)\b)"
    r"[A-ZÀ-Þ][\w-]+(?!'s)\b"
)
_NAME: Final = r"[A-ZÀ-Þ][\w'-]*"
_DIETS: Final = (
    r"(?:vegetarian|vegan|pescatarian|kosher|halal|keto|omnivore|meat[- ]eater|vegetari[ae]r\w*|"
    r"veganer\w*|végétarienn?e?|végane?|vegetarian[oa]|vegan[oa])"
)
_BIRTHDAY: Final = re.compile(
    rf"\b(?P<who>(?!My|Our|Her|His|Their|Your){_NAME})'s birthday (?i:is|falls) (?=.*(?:\d|"
    rf"[A-Z][a-z]+))"
)
_WHO: Final = (
    r"(?P<who>(?!(?:I|He|She|It|They|Who|We|You|Everyone|Everybody|Nobody|Someone|Mum|Mom|Dad|Life)\b)"
    rf"{_NAME}(?: {_NAME})?) (?i:(?:now |still |currently |also )*)"
)
_OTHERS: Final = (
    ("home", re.compile(rf"{_WHO}(?:lives|has moved|is based|is living)(?: back)? (?:in|to) {_PLACE}")),
    ("job", re.compile(rf"{_WHO}(?:works|is working) as ")),
    ("employer", re.compile(rf"{_WHO}(?:works|is working) (?:at|for) {_NAME}")),
)
"""What is said of others by their name."""
LANGUAGE_NAMES: Final = (
    r"(?:english|german|french|spanish|italian|portuguese|dutch|polish|turkish|russian|chinese|japanese|arabic|"
    r"englisch|deutsch|französisch|spanisch|italienisch|portugiesisch|anglais|allemand|français|espagnol|italien|"
    r"portugais|inglés|alemán|francés|español|italiano|portugués|inglese|tedesco|francese|spagnolo|portoghese|"
    r"inglês|alemão|francês|espanhol|português|engels|duits|frans|spaans|nederlands)"
)
_ANSWERING: Final = re.compile(
    rf"{_FILLED}(?i:(?:(?:please|bitte|always|from now on|ab jetzt|ab sofort|immer|désormais|siempre|sempre),? )*"
    r"(?:answer|reply|respond|write|speak|talk|antworte|schreibe?|réponds|répondez|responde|respóndeme|contesta|"
    r"rispondi|responda|antwoord)(?:-moi)?(?: (?:to|with|me|mir|mi|bitte|always|only|immer|nur|toujours|siempre|"
    rf"sempre|altijd))* (?:in|auf|en|em|het) {LANGUAGE_NAMES}"
    r"(?:,? (?:please|bitte|from now on|only|always|immer|désormais|por favor|per favore|s'il te plaît))*[.!]*)"
)
_COUNT: Final = (
    r"(?:\d{1,3}|(?i:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w{3,5}teen|twenty|thirty|forty|"
    r"fifty|sixty|seventy|eighty|ninety|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|deux|trois|quatre|"
    r"cinq|sept|huit|neuf|dix|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|due|tre|quattro|sei|sette|otto|nove|"
    r"dieci|dois|três|quatro|sete|oito|dez))"
)
_AGED: Final = re.compile(
    rf"{_FILLED}(?i:my|our|mein|meine|mon|ma|mi|mio|mia|meu|minha|la mia|il mio|o meu|a minha) "
    r"(?P<kin>(?i:(?:older |younger |oldest |youngest |little |elder )?(?:son|daughter|wife|husband|brother|sister|"
    r"mother|mum|mom|father|dad|partner|grandson|granddaughter|nephew|niece|baby|dog|cat|sohn|tochter|frau|mann|"
    r"bruder|schwester|mutter|vater|hund|katze|fils|fille|femme|mari|frère|sœur|mère|père|chien|chat|hij[oa]|espos[oa]|"
    r"herman[oa]|madre|padre|perr[oa]|gat[oa]|figli[oa]|moglie|marito|fratello|sorella|cane|gatto|filh[oa]|"
    r"irmã|irmão|mãe|pai|cachorro)))"
    rf"(?:,? (?P<who>{_NAME}),?)? (?:is(?: now)?|just turned|turned|ist(?: jetzt)?|a|tiene|ha|tem) {_COUNT}"
    r"(?: (?i:years? old|months? old|years? of age|now|today|already|jahre(?: alt)?|ans|años|anni|anos))?[.!]*"
)
_THING: Final = (
    r"(?P<what>(?:(?:the|le|la|les|el|los|las|il|lo|i|gli|o|a|os|as|den|die|das) |l')?[\w-]+"
    r"(?: (?!(?:any|anymore|at|now|again|too|a|so|very|these|by|btw|nicht|"
    r"mehr|sehr|gern|gar|plus|pas|beaucoup|mucho|nada|più|molto|mais|"
    r"muito)\b)[\w-]+)?)"
)
_ENDED: Final = (
    r"(?:,? (?:anymore|any more|any longer|at all|now|again|too|a lot|so much|very much|these days|by the way|btw|"
    r"nicht mehr|nicht|mehr|sehr|gern|gar nicht|plus|pas|beaucoup|mucho|nada|più|molto|mais|muito))*[.!]*"
)
_ALSO: Final = r"(?:(?:really|also|just|still|absolutely|totally|always|actually|do|now|very|much) )*"
_NOT: Final = r"(?:(?:don't|do not|no longer|never|not|didn't) )?"
_LIKE: Final = (
    rf"(?:(?:i|we) {_ALSO}(?:{_NOT}{_ALSO}(?:love|like|hate|enjoy|adore|dislike|detest|despise)|can't stand|"
    r"cannot stand|can't bear|(?:have |'ve )?(?:started|stopped) (?:liking|loving|hating|enjoying))"
    r"|(?:ich|wir) (?:mag|mögen|liebe|lieben|hasse|hassen)(?: (?:kein|keine|keinen|nicht|sehr|wirklich|total))*"
    r"|j'(?:aime|adore)(?: (?:pas|plus|bien|beaucoup))*|je (?:n'aime|déteste|n'adore)(?: (?:pas|plus|vraiment))*"
    r"|(?:ya )?(?:no )?me (?:gustan?|encantan?)(?: (?:más|mucho|nada))*|(?:ya )?(?:no )?(?:odio|detesto)"
    r"|(?:non )?mi (?:piace|piacciono)(?: (?:più|molto|tanto))*"
    r"|(?:eu )?(?:não )?(?:gosto|gostamos)(?: (?:mais|muito|nada))* (?:de|do|da|dos|das)|(?:eu )?(?:adoro|odeio))"
)
_ALLERGY: Final = (
    rf"(?:(?:i|we)(?:'m|'re| am| are) {_ALSO}(?:not |no longer )?{_ALSO}(?:severely |badly |highly |mildly )?"
    r"allergic to"
    r"|ich bin (?:nicht mehr |nicht |auch |stark )?allergisch (?:gegen|auf)"
    r"|je (?:ne )?suis (?:pas |plus )?allergique (?:à|aux|au)"
    r"|(?:ya )?(?:no )?soy alérgic[oa] (?:al|a)|(?:non )?sono (?:più )?allergic[oa] (?:alle|agli|alla|allo|ai|al|a)"
    r"|(?:eu )?(?:não )?sou (?:mais )?alérgic[oa] (?:aos|às|ao|à|a))"
)
_OFTEN: Final = (
    r"(?: (?:once|twice|(?:one|two|three|four|\d) times?|daily|every|each|a|per|day|night|morning|evening|week|month|"
    r"other|in|at|the|and|with|before|after|breakfast|lunch|dinner|meals|food|for|of|\d+|mg|ml|pills?|tablets?))+"
)
_TAKING: Final = (
    r"(?:(?:i|we) (?:(?:now|also|still|currently) )*(?:take|am taking)(?: \d+ ?mg(?: of)?)? (?P<what>[a-zà-ÿ-]{5,})"
    rf"(?: \d+ ?mg)?{_OFTEN}|(?:i|we)(?:'ve| have)? (?:just |recently )?(?:(?:stopped|quit|started) taking|"
    r"no longer take|don't take|do not take|came off|am off|'m off) (?P<drug>[a-zà-ÿ-]{5,}))"
)
_STANCES: Final = tuple(
    (attribute, re.compile(rf"{_FILLED}(?i:{pattern}{_ENDED})"))
    for attribute, pattern in (
        ("attitude to", rf"{_LIKE} {_THING}"),
        ("allergy to", rf"{_ALLERGY} {_THING}"),
        ("taking", _TAKING),
    )
)
_ARTICLE: Final = re.compile(r"^(?:the|le|la|les|el|los|las|il|lo|i|gli|o|a|os|as|den|die|das) |^l'")
_NO_THING: Final = word_set(
    """
    it that this you her him them these those to how when what your my his their our me us being having getting people
    everything nothing anything something doing going first second other one ihn sie es dich euch ca cela eso esto lui
    lei isso isto
    """
)
"""What points at a thing and names none."""
_SINGLE: Final = frozenset(["favourite", "favorite", "best", "current", "new", "preferred", "usual"])
_DROPPED: Final = frozenset(["current", "new", "full", "real", "home", "work", "own", "exact"])
_SAME: Final = {
    "favorite": "favourite",
    "number": "phone",
    "telephone": "phone",
    "mobile": "phone",
    "cell": "phone",
    "phone number": "phone",
    "mobile number": "phone",
    "phone phone": "phone",
    "phone mobile": "phone",
    "e-mail": "email",
    "email address": "email",
    "timezone": "time zone",
    "job title": "job",
    "title": "job",
    "profession": "job",
    "occupation": "job",
    "color": "colour",
    "geburtstag": "birthday",
    "anniversaire": "birthday",
    "cumpleanos": "birthday",
    "telefonnummer": "phone",
    "handynummer": "phone",
    "adresse": "address",
    "direccion": "address",
    "nombre": "name",
    "nom": "name",
    "vorname": "first name",
    "telefono": "phone",
    "numero": "phone",
    "beruf": "job",
}
_FIGURE: Final = re.compile(r"\D{0,24}\d")
_PROPER: Final = re.compile(rf"(?:called |named |a (?:man|woman) called )?(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?{_NAME}")
_DATE: Final = re.compile(r"(?:.{0,20}\d|(?:on |in |the )*(?:[A-ZÀ-Þ]\w+|im \w+|en \w+|el \w+))")
_ANY: Final = re.compile(r"(?:an? |the |at |as )?\w")
_KINDS: Final = {
    name: kind
    for kind, names in (
        (
            _FIGURE,
            "phone;address;age;height;weight;salary;rent;budget;postcode;zip;shoe size;dress "
            "size;account number;licence plate;pin;"
            "telefonnummer;handynummer;telefon;alter;adresse;miete;gehalt;teléfono;telefono;numero;dirección;direccion;loyer;âge;edad",
        ),
        (
            _PROPER,
            "name;surname;nickname;first name;last name;middle "
            "name;boss;manager;doctor;dentist;landlord;landlady;therapist;hometown;"
            "home "
            "town;employer;nationality;partner;wife;husband;fiancé;fiance;fiancée;fiancee;vorname;nachname;nom;prénom;prenom;nombre;apellido",
        ),
        (_DATE, "birthday;anniversary;wedding date;due date;deadline;geburtstag;anniversaire;cumpleaños;cumpleanos"),
        (re.compile(r"\S+@\S+"), "email;e-mail;email address;mail"),
        (re.compile(r"\S+/\S+"), "pronouns"),
        (re.compile(r"@?\w\S*$|@?[\w.-]*\d"), "username;handle"),
        (re.compile(r"(?:UTC|GMT|[A-Z]{2,4}\b|[A-Z]\w+|\S*\d)"), "time zone;timezone"),
        (re.compile(r"(?:[ABO0]{1,2}\b|.{0,10}(?:positive|negative))"), "blood type"),
        (
            re.compile(
                r"(?!(?:kill|driv|mak|go|great|good|bad|hard|tough|fine|not|so|very|really|boring|stress|"
                r"exhaust)\w*)(?:an? |as |at |to )?\w"
            ),
            "job;profession;occupation;job title;beruf;métier;profesión;profesion",
        ),
        (_ANY, "native language;mother tongue;star sign;dream job;major"),
    )
    for name in names.split(";")
}
_NO_VALUE: Final = re.compile(
    r"(?i:not|no|gone|broken|dead|closed|coming|getting|being|so|very|too|really|still|just|"
    r"always|never|that|when|about|on|off|out|back|here|"
    r"there|nicht|pas|no)\b|(?i:\w+ing\b)|(?i:sick|ill|fine|good|great|bad|tired|slow|ready|late|"
    r"lost|missing)\W*$"
)
_PATTERNS: Final = (
    (
        "home",
        _start(
            rf"(?i:(?:I|we)(?:'m|'re|'ve| am| are| have)?) {_A}(?i:live|living|moved(?: back| over| down|"
            rf" up| out)?|based|settled|relocated|reside) (?i:in|to|at|near|outside)(?i: the)? {_PLACE}"
        ),
    ),
    (
        "home",
        _start(
            rf"(?i:ich|wir) (?:(?i:wohnen?|leben?)(?: \w+)? in|(?i:bin|"
            rf"sind) (?:\w+ )*nach) {_PLACE}(?:.*gezogen)?(?!.*\b(?:geflogen|gefahren|gereist)\b)"
        ),
    ),
    ("home", _start(rf"(?i:j'habite|nous habitons|je vis|j'ai déménagé) (?i:maintenant )?(?i:à|en|au|aux) {_PLACE}")),
    ("home", _start(rf"(?i:yo |ahora )*(?i:vivo|vivimos|me mudé) (?i:ahora )?(?i:en|a) {_PLACE}")),
    (
        "home",
        re.compile(
            r"(?:^|[，,。])我(?:现在)?(?:住在|搬到了?)|(?:^|は|、)[^、]{1,10}に(?:住んでいます|住んでる|引っ越し)"
        ),
    ),
    ("job", _start(rf"(?i:(?:I|I'm|I am|I've been)) {_A}(?i:work|working|employed) (?i:as) ")),
    (
        "job",
        _start(
            rf"(?i:I(?:'ve| have)?) {_A}(?i:(?:got|took|started|landed) (?:a|the|my)(?: new)? (?:job|"
            rf"position|role) as) "
        ),
    ),
    ("job", _start(r"(?i:ich arbeite(?: \w+)? als|je travaille comme|trabajo (?:como|de)) ")),
    ("employer", _start(rf"(?i:(?:I|I'm|I am)) {_A}(?i:work|working|employed) (?i:at|for|by)(?i: the)? {_NAME}")),
    ("employer", _start(rf"(?i:ich arbeite(?: \w+)? bei|je travaille chez|trabajo (?:en|para)) {_NAME}")),
    (
        "form of address",
        _start(
            rf"(?i:(?:please )?(?:just )?call me|I go by|you can call me|nenn mich|appelle[- ]moi|"
            rf"appelez-moi|llámame|chiamami|me chame de|noem me) (?!(?i:when|if|back|later|tomorrow)\b){_NAME}"
        ),
    ),
    ("name", _start(rf"(?i:je m'appelle|ich heiße|me llamo|mi chiamo|me chamo|ik heet) {_NAME}")),
    ("name", re.compile(r"(?:^|[，,。])我叫|(?:^|、)(?:私|僕)の名前は")),
    (
        "diet",
        re.compile(
            rf"(?i:\bI(?:'m| am|'ve (?:gone|become|turned)| went| became|"
            rf" turned)(?: \w+)?(?: \w+)? {_DIETS}\b)"
        ),
    ),
    (
        "diet",
        re.compile(
            r"\b(?i:I (?:eat|started eating|have started eating) (?:meat|fish) again|I(?:'ve|"
            r" have)? (?:stopped|quit|gave up|given up)(?: eating)? meat|I (?:don't|"
            r"no longer) eat (?:meat|animal\w*)\b)"
        ),
    ),
    ("diet", re.compile(rf"(?i:\b(?:ich bin|je suis|soy)(?: \w+)? {_DIETS}\b)")),
    (
        "age",
        _start(
            r"(?i:I(?:'m| am| just turned| turned)) (?:\d{1,3}|(?i:twenty|thirty|forty|fifty|sixty|"
            r"seventy|eighty)(?:-(?i:one|two|three|four|five|six|seven|eight|nine))?)"
            r"(?: (?i:years? old|now|today|last)\b|[.!,]|$|(?<=turned \d\d) )"
        ),
    ),
    ("age", _start(r"(?i:ich bin \d{1,3} Jahre alt|j'ai \d{1,3} ans|tengo \d{1,3} años)")),
    (
        "marital status",
        _start(
            rf"(?i:(?:I|we)(?:'m|'re| am| are| got| just got)) {_A}(?i:married|divorced|engaged|single|"
            rf"widowed|separated)\b(?! to (?:the|my job))"
        ),
    ),
    ("phone", re.compile(r"(?i:\b(?:reach|call|text|phone) me (?:at|on)) \+?\d[\d ()./-]{5,}")),
    ("email", re.compile(r"(?i:\b(?:reach|email|e-mail|write) (?:to )?me (?:at|on)) \S+@\S+")),
)
_NAMED: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (
        _start(
            r"(?i:my|our) (?P<what>[\w-]+'s? (?:[\w-]+ )?[\w-]+)(?: (?i:is|are)(?: (?i:now|actually|still|"
            r"also))?) (?P<value>.+)"
        ),
        _mine,
    ),
    (
        _start(
            r"(?i:my|our) (?P<what>(?:[\w-]+ ){0,3}[\w-]+?)(?:'s| (?i:is|are)(?: (?i:now|actually|still|"
            r"also))?) (?P<value>.+)"
        ),
        _mine,
    ),
    (
        _start(
            r"(?i:mein|meine|unser|unsere) (?i:lieblings)(?P<what>\w+) (?i:ist|"
            r"sind)(?: (?i:jetzt))? (?P<value>.+)"
        ),
        _favourite,
    ),
    (_start(r"(?i:mein|meine|unsere?) (?P<what>\w+) (?i:ist|lautet)(?: (?i:jetzt))? (?P<value>.+)"), _mine),
    (_start(r"(?i:mon|ma|mes) (?P<what>\w+) (?i:préférée?s?) (?i:est|sont) (?P<value>.+)"), _favourite),
    (_start(r"(?i:mon|ma|mes) (?P<what>\w+) (?i:est) (?P<value>.+)"), _mine),
    (_start(r"(?i:mi|mis) (?P<what>\w+) (?i:favorit[oa]s?|preferid[oa]s?) (?i:es|son) (?P<value>.+)"), _favourite),
    (_start(r"(?i:mi) (?P<what>\w+) (?i:es) (?P<value>.+)"), _mine),
    (re.compile(r"我最喜欢的(?P<what>\w{1,6})是(?P<value>.+)"), _favourite),
)
_QUESTIONS: Final = tuple(
    (attribute, re.compile(pattern, re.IGNORECASE))
    for attribute, pattern in (
        (
            "home",
            r"\bwhere (?:do|are) you (?:live|living|based)\b|\bwo wohnst du\b|\boù (?:habites-tu|"
            r"tu habites)\b|\bdónde vives\b",
        ),
        (
            "name",
            r"\bwhat(?:'s| is) your name\b|\bwie heißt du\b|\bcomment t'appelles\b|\bcómo te llamas\b",
        ),
        ("form of address", r"\bwhat (?:should|can|do) i call you\b"),
        ("age", r"\bhow old are you\b|\bwie alt bist du\b|\bquel âge as\b|\bcuántos años tienes\b"),
        (
            "job",
            r"\bwhat do you do (?:for a living|for work)\b|\bwhat(?:'s| is) your (?:job|profession|"
            r"occupation)\b",
        ),
        ("employer", r"\b(?:where|who) do you work(?: for)?\b"),
        ("birthday", r"\bwhen(?:'s| is) your birthday\b"),
        ("phone", r"\bwhat(?:'s| is) your (?:phone|mobile|cell)?(?: ?number)\b"),
        ("favourite {0}", r"\bwhat(?:'s| is) your favou?rite (\w+(?: \w+)?)\s*\?"),
    )
)
