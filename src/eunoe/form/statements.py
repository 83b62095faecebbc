# ruff: noqa: RUF001
"""Which sentences say something worth keeping, and how much it matters."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from eunoe.form.labels import CHILDREN, KIN_WORDS, WHEN, label_of
from eunoe.text.sentences import word_count
from eunoe.text.word_lists import word_set

LABELS: Final = (
    "instruction",
    "decision",
    "preference",
    "identity",
    "relationship",
    "plan",
    "event",
    "state",
)
KEPT: Final = 1.5
"""The score from which a sentence is worth keeping on its own."""

_LONGEST: Final = 1000
"""Characters beyond which a sentence is no longer one."""
_BRIEF: Final = 0.3
"""What a sentence of few words is worth less,"""
_PLAIN: Final = frozenset(["instruction", "preference", "identity"])
"""but not if it is one of these, which need few."""


class Statement(NamedTuple):
    """A sentence that says something, and how much it matters."""

    text: str
    label: str
    score: float


def statement(sentence: str) -> Statement | None:
    """What a sentence states; None for questions, greetings, small talk, suppositions and code.

    >>> statement("I'm allergic to peanuts.").label
    'preference'
    >>> statement("Thanks, see you tomorrow!") is None
    True
    """
    if len(sentence) > _LONGEST:
        return None
    plain = _plain(sentence)
    bare = _QUOTED.sub(" ", plain)
    if _is_empty(sentence, bare):
        return None
    label, base = label_of(bare)
    if not label:
        label, base = "state", 0.65 if word_count(bare) > 4 else 0.2
    if word_count(bare) < 3 and label not in _PLAIN:
        return None
    score = base + _specifics(sentence, bare) - (0.0 if label == "instruction" else _doubts(bare))
    score += _BRIEF if label in _PLAIN and word_count(bare) < 4 else 0.0
    return Statement(sentence, label, round(score, 3)) if score > 0 else None


def is_question(sentence: str) -> bool:
    """Whether it asks; a question mark may be missing.

    >>> is_question("Where do you live?"), is_question("what time is it"), is_question("I live here")
    (True, True, False)
    """
    stripped = sentence.rstrip(" \"'”’»)")
    if stripped.endswith(("?", "？", "؟", "か。", "吗。", "吗", "呢")):
        return True
    return bool(_ASKING.match(_plain(sentence)))


def is_fragment(sentence: str) -> bool:
    """Whether it has no form of a statement, as answers have that lean on their question.

    >>> is_fragment("Two of them."), is_fragment("I have two of them.")
    (True, False)
    """
    return not label_of(_plain(sentence))[0]


def is_secret(sentence: str) -> bool:
    """Whether it speaks of a password or the like, which is better left in the log alone.

    >>> is_secret("My password is hunter2.")
    True
    """
    return bool(_SECRET.search(_plain(sentence)))


def is_private(sentence: str) -> bool:
    """Whether it speaks of the speaker or the one spoken to, or holds an address: nothing to share with others.

    >>> is_private("My oven runs hot."), is_private("Bread needs a hot oven.")
    (True, False)
    """
    plain = _plain(sentence)
    if len(sentence) > _LONGEST:
        return True
    return bool(_PRIVATE.search(plain) or _ADDRESS.search(sentence))


def is_instruction(sentence: str) -> bool:
    """Whether it says how to go on from here.

    >>> is_instruction("Always answer in French."), is_instruction("I answer in French.")
    (True, False)
    """
    return label_of(_plain(sentence))[0] == "instruction"


def names(sentence: str) -> tuple[str, ...]:
    """Names in a sentence: words with a capital that do not begin it.

    >>> names("Yesterday Tom Baker and I met Ida.")
    ('Tom Baker', 'Ida')
    """
    found = (match[1] for match in _NAME.finditer(sentence))
    return tuple(dict.fromkeys(name for name in found if name.split()[0].lower() not in _NO_NAMES))


def people(sentence: str) -> tuple[str, ...]:
    """Names that the words beside them show to be a person's.

    >>> people("I went to Rome with Tom and met Dr Bell.")
    ('Tom', 'Bell')
    """
    found = (match[1] or match[2] for match in _PERSON.finditer(sentence))
    return tuple(dict.fromkeys(name for name in found if name.lower() not in _NO_NAMES))


def _plain(sentence: str) -> str:
    """Lower case, straight apostrophes, single blanks, without a filler in front."""
    lowered = " ".join(sentence.lower().replace("’", "'").replace("‘", "'").split())
    return _FILLER.sub("", _FILLER.sub("", lowered))


def _is_empty(sentence: str, bare: str) -> bool:
    """Nothing that could be a statement of the speaker's own."""
    size = word_count(bare)
    if size < 2 or size > 80 or is_question(sentence) or _is_code(sentence):
        return True
    told = _SMALL_TALK.match(bare) or _WEARY.match(bare) or _REPORTED.match(bare)
    return bool(told or _SECRET.search(bare) or _SUPPOSED.search(bare))


def _is_code(sentence: str) -> bool:
    return len(_SIGN.findall(sentence)) > 0.4 * len(sentence) or bool(_CODE.search(sentence) or _LOGGED.match(sentence))


def _specifics(sentence: str, bare: str) -> float:
    """What makes it worth more: names, numbers, dates, and a length that says something."""
    size = word_count(bare)
    score = 0.35 * min(len(names(sentence)), 2) + 0.2 * min(len(_NUMBER.findall(bare)), 2)
    score += 0.5 * bool(_DIGIT.search(bare)) + 0.3 * bool(_MONEY.search(bare)) + 0.3 * bool(_DATED.search(bare))
    score += 0.35 * bool(_KIN.search(bare)) + 0.4 * bool(_CHANGE.search(bare)) + 0.15 * ("," in bare)
    score += 1.2 * bool(_VITAL.search(bare)) + 0.2 * bool(_ACTING.match(sentence))
    return score + (0.25 if size >= 8 else -_BRIEF if size < 4 else 0.0)


def _doubts(bare: str) -> float:
    """What makes it worth less: guesses, orders of the moment, words on the other one, moods."""
    score = 0.6 * bool(_HEDGED.search(bare)) + 0.7 * bool(_YOURS.match(bare)) + 0.4 * bool(_YOU.search(bare))
    score += 0.5 * bool(_OPINION.match(bare)) + 0.35 * bool(_PROMISE.search(bare)) + 0.2 * bool(_VAGUE.match(bare))
    score += 0.8 * bool(_REQUEST.match(bare)) + 1.2 * bool(_PASSING.search(bare))
    return score + 0.4 * bool(_MOOD.search(bare))


_QUOTED: Final = re.compile(r"[\"“„«「『][^\"”“»」』]{8,}[\"”“»」』]|`[^`]*`")
_CODE: Final = re.compile(
    r"[{};]\s*$|\w\(\)|=>|::|</?\w+>|^\s*(?:def|class|import|return|const|let|"
    r"var)\s+\w+[^a-z]*[=({:]|==|\$ \w+"
)
_SIGN: Final = re.compile(r"[^\w\s]|_")
_LOGGED: Final = re.compile(
    r"\s*(?:File \"|Traceback\b|Caused by:|panic:|goroutine \d|npm ERR!|(?:Subject|From|Cc|Sent|Fwd): |\S+:\d+: "
    r"|at [\w$.<>]+ ?\(|[\w.]*(?:Error|Exception|Warning)(?::|$)|SELECT .* FROM |INSERT INTO "
    r"|(?:[\[\d][\d:.,TZ\] +-]{4,40}\s)?\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE|CRITICAL)\b[:\]]?\s)"
)
"""A line that a program wrote."""
_FILLER: Final = re.compile(
    r"^(?:oh|ah|ha|haha+|lol|well|so|ok|okay|yes|yeah|yep|no|nope|hi|hello|hey|anyway|actually|"
    r"also|and|but|btw|by the way|fyi|"
    r"hm+|um+|right|sure|sorry|honestly|basically|true|good news|bad news|update|fine|oh no|wow|"
    r"ja|nein|also|ach|oui|non|bon|alors|sí|si|bueno|pues|sim|não|então|allora|beh|nee|hallo|"
    r"bonjour|salut|hola|ciao|olá)(?:\s*[,:;–—-]+\s*|\s+(?=i\b|we\b|my\b|ich\b|je\b|yo\b|"
    r"always\b|never\b|don't\b|decided\b))"
)
_ASKING: Final = re.compile(
    r"(?:what|where|when|why|who|whose|which|how) (?:is|are|was|were|do|does|did|can|could|should|"
    r"would|will|have|has|about|much|many|long|"
    r"old|time|kind|color|colour)\b|(?:do|does|did|are|is|can|could|would|will|have|has|shall|"
    r"should) (?:you|we|i|he|she|they|it|there|that|this|your)\b"
    r"|(?:what|how) about\b|any (?:idea|chance|tips)\b"
)
_SMALL_TALK: Final = re.compile(
    r"(?:thanks|thank you|thx|cheers|ta|great|cool|nice|perfect|awesome|lovely|brilliant|amazing|"
    r"congrat\w*|well done|good (?:morning|night|evening|luck|idea|point|job|to (?:hear|know|"
    r"see))|"
    r"goodnight|see you|talk (?:soon|later)|take care|bye|sounds (?:good|great|like)|"
    r"no (?:worries|problem|way|idea|rush)|you'?re welcome|my pleasure|"
    r"of course|got it|makes sense|fair enough|deal|same here|me too|happy (?:to|birthday|new)|"
    r"welcome|hope (?:you|that|it|all)|i hope you|glad (?:to|you|it|that)|i'm (?:so |really |"
    r"very )?(?:glad|sorry|proud|happy for|here for|kidding|joking)|"
    r"i'm (?:fine|good|ok|okay|great|well|back|here|in|ready|done|listening|alive|sure|not sure|"
    r"serious|crying|laughing|dying)\W*$|"
    r"let me know|i(?:'ll| will) (?:let you know|tell you|keep you|text you|call you|send you)|"
    r"just (?:checking|kidding|saying)|i (?:see|know|agree|understand|guess|think so|hope so|bet|"
    r"mean)\W*$|"
    r"i (?:love|like|hate) (?:it|that|this|you|her|him|them|those|these)(?: (?:already|so much|"
    r"too|idea|one|for you|all))*\W*$|"
    r"(?:i|we)(?:'d)? (?:love|like|hate|prefer|want|choose|take) (?:the |this |that )?(?:first|second|third|last|other|"
    r"former|latter|left|right|new|old|this|that) (?:one|version|option|idea)s?\W*$|"
    r"i (?:can'?t|cannot) (?:wait|believe)|"
    r"danke|guten (?:tag|morgen|abend)|gern geschehen|merci|de rien|bonne (?:nuit|journée)|"
    r"gracias|de nada|buen(?:os|as) |grazie|prego|obrigad[oa]|bom dia|dank je|graag gedaan|"
    r"谢谢|你好|您好|再见|好的|ありがとう|こんにちは|おはよう|はい、?$)"
    r"(?![a-z])"
)
_SUPPOSED: Final = re.compile(
    r"\bif (?:i|we) (?:were|was|had|could|ever|would|won)\b|\bif only\b|\bi wish\b|\b(?:imagine|"
    r"suppose|pretend|hypothetically)\b|"
    r"\b(?:i|we)(?:'d| would) (?:have|be|never|probably|kill|die|just|only)\b|\bwould have\b|"
    r"\bcould have been\b|"
    r"\bwenn ich\b.*\b(?:wäre|hätte|könnte)\b|\bsi j'étais\b|\bsi j'avais\b|\bsi (?:yo )?(?:fuera|"
    r"tuviera)\b|\bse (?:io )?(?:fossi|avessi)\b|\bse eu (?:fosse|tivesse)\b|\bals ik\b.*\b(?:was|"
    r"had|zou)\b|如果|要是|もし"
)
_REPORTED: Final = re.compile(
    r"[\"“„«]?\s*[\"”»]?\s*(?:he|she|they|it|my (?:\w+ )?\w+) "
    r"(?:said|says|wrote|asked|asks|replied|agreed|agrees|laughed|knows|called)\b\W*$"
)

_DATED: Final = re.compile(
    rf"\b(?:{WHEN})\b|\b(?:heute|gestern|morgen|übermorgen|montag|dienstag|mittwoch|donnerstag|"
    rf"freitag|samstag|sonntag|nächste\w*|letzte\w*|januar|februar|märz|mai|juni|juli|oktober|"
    rf"dezember|"
    r"hier|demain|aujourd'hui|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|prochaine?|"
    r"dernière?|janvier|février|juin|juillet|août|septembre|octobre|novembre|décembre|"
    r"ayer|mañana|hoy|lunes|martes|jueves|viernes|próxim[oa]|pasad[oa]|enero|febrero|marzo|mayo|"
    r"junio|julio|agosto|ieri|domani|oggi|lunedì|martedì|venerdì|prossim[oa]|scors[oa]|"
    r"ontem|amanhã|hoje|gisteren|volgende|vorige|maandag|vrijdag)\b|\d+月|\d+日|昨天|明天|今天|去年|明年|下周|"
    r"上周|昨日|明日|来週|先週|来月"
)
_COUNTS: Final = (
    r"two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|"
    r"fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|dozen|half|twice|zwei|drei|vier|"
    r"deux|trois|dos|tres|due|tre|dois|três|twee|drie"
)
_NUMBER: Final = re.compile(
    rf"[€£$¥]?\d+(?:[.,:]\d+)*%?|\b(?:{_COUNTS})\b|[一二三四五六七八九十百千万]+(?=[个岁年月天只口点])"
)
_KIN: Final = re.compile(
    rf"\b(?:my|our|his|her) (?:\w+ )?(?:{KIN_WORDS})\b|\b(?:dad|mum|mom|gran|grandma|grandpa)\b|"
    rf"\bmein(?:e|en|em|er)? (?:frau|mann|mutter|vater|bruder|schwester|sohn|tochter)\b|{CHILDREN}"
)
_VITAL: Final = re.compile(
    r"\b(?:(?:i|we)(?:'m| am|'re| are)|my \w+(?:'s| is)|ich bin|je suis|soy|sono|sou|ik ben)\b.*"
    r"\b(?:allerg\w+|al[eé]rgi\w+|intoleran\w+|diabeti\w+|asthmati\w+|co?eliac\w*|celíac\w|cœliaque|zöliak\w+|epilepti\w+|pregnant|schwanger|"
    r"enceinte|embarazada|incinta|vegan\w*|veget\w+|végét\w+|deaf|blind|kosher|halal)"
    r"|\b(?:nut|peanut|milk|gluten|lactose|penicillin) allergy\b|过敏|アレルギー"
)
"""What nobody who cares for a person may overlook."""
_ACTING: Final = re.compile(
    r"(?!(?:It|That|This|There|He|She|They|We|You|I|The|What|Who|Which|These|Those|Everyone|Everything|Nobody|Nothing|"
    r"Something|Someone|One|My|Your|Our|His|Her|Their|And|But|So|Yes|No|Not|Then|Here|Now|How|Sounds?|Looks?|All|"
    r"Mine|Yours|As|Thanks|Always|Never|Just|Also|Still|Let)\b)"
    r"[A-ZÀ-Þ][a-zß-ÿ]+(?: [A-ZÀ-Þ][a-zß-ÿ]+)? (?:is|was|has|had|will|says|said|wants|got|came|went|\w+ed|\w+s)\b"
)
"""A name at the start, where `names` finds none."""
_DIGIT: Final = re.compile(r"\d")
_MONEY: Final = re.compile(r"[€£$¥]|\b(?:pounds?|quid|euros?|dollars?|bucks|kroner|francs?)\b|[元円]")
_YOU: Final = re.compile(r"\b(?:you|your|yours|you're|you've|you'll)\b")
_PASSING: Final = re.compile(
    r"\b(?:(?:have|need|got) to (?:go|run|leave now)|(?:be|right) back|brb|"
    r"in (?:a|an|\d+|\w+) (?:min(?:ute)?s?|sec(?:ond)?s?)|"
    r"right now|at the moment|got (?:an|this|the) error|an error:|this (?:code|line|function|table|text|essay|"
    r"paragraph|script|query)|gleich zurück|in \d+ minuten)\b"
)
"""What is over before it could be recalled."""
_WEARY: Final = re.compile(
    r"(?:i'm|i am|we're|we are|ich bin|je suis|estoy|sono|estou|ik ben) (?:\w+ ){0,3}"
    r"(?:tired|exhausted|hungry|bored|sleepy|thirsty|müde|hungrig|fatiguée?|crevée?|cansad[oa]|stanc[oa]|moe)"
    r"(?: (?:today|now|tonight|again|already|heute|aujourd'hui|hoy|oggi|hoje|vandaag))?\W*$"
)
_SECRET: Final = re.compile(
    r"\b(?:password|passwort|passwd|passcode|passphrase|mot de passe|contraseña|senha|wachtwoord|"
    r"pin (?:code|number|is)|"
    r"api[ -]?key|secret key|private key|access token|cvv|credit card number|social security)\b|密码|パスワード"
)
_PROMISE: Final = re.compile(r"\b(?:i|we)(?:'ll| will)\b")
_CHANGE: Final = re.compile(
    r"\b(?:changed?|moved|instead|no longer|not any ?more|anymore|now|switched|replaced|postponed|"
    r"cancel+ed|quit|stopped|started|new|officially|finally|turned (?:out|down)|confirmed|signed|"
    r"accepted|passed|failed|"
    r"offer(?:ed)?|diagnosed|born|died|pregnant|engaged|married|divorced|hired|fired|promoted|"
    r"retired|graduated|arrived|broke|broken|costs?|paid|price|rent|salary|budget|deadline|due|"
    r"allergic|called|named)\b"
)
_HEDGED: Final = re.compile(
    r"\b(?:maybe|perhaps|might|probably|i guess|i suppose|not sure|no idea|i think|i wonder|"
    r"wondering|could be|would|should|sort of|kind of|as if|basically|apparently|vielleicht|"
    r"peut-être|quizás?|tal vez|forse|talvez|misschien)\b|也许|可能|たぶん"
)
_YOURS: Final = re.compile(
    r"(?:(?:i|we) (?:think|hope|know|bet|believe|told you|can|could|would) )?(?:that )?(?:you|"
    r"you're|you've|you'll|you'd|your|u|yours|du|ihr|tu|vous|usted|je moet|jij)\b"
)
_OPINION: Final = re.compile(
    r"(?:that's|that is|that was|this is|it's|it is|it was|that sounds|what a|how \w+|such an?|"
    r"not (?:bad|at all)|very \w+|so \w+)\b(?!.*\d)"
)
_REQUEST: Final = re.compile(
    r"(?:please|pls|can you|could you|would you|lets|"
    r"let's(?! (?:go with|settle|stick|make it|use) (?!it\b|that\b|this\b))|give|show|tell|send|help|write|make|"
    r"list|explain|find|check|try|add|go|get|take|look|think|remember|wait|come|ask|let(?!')|put|bring|"
    r"call|draft|suggest|read|keep|don't|do|use|run|start|stop|turn|leave|wear|say|hold|bitte|"
    r"donne|dime|dammi)\b(?! me\b.* is\b)"
)
_VAGUE: Final = re.compile(
    r"(?:it|that|this|they|he|she|there|these|those|everyone|everything|nothing|something|nobody|"
    r"which|who|what)(?:'s|'re|'ll)?\b"
)
_MOOD: Final = re.compile(
    r"\b(?:haha\w*|lol|lmao|omg|ugh|joke|joking|kidding|laugh\w*|cr(?:y|ied|ying)|god|hell|"
    r"poor thing|bless|blah)\b|!!"
)
_PRIVATE: Final = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|im|me|my|mine|myself|ich|mich|mir|mein\w*|je|j'\w+|moi|mon|ma|mes|"
    r"yo|mi|mis|mí|conmigo|soy|estoy|tengo|vivo|trabajo|io|mio|mia|miei|mie|sono|ho|lavoro|abito|"
    r"eu|meu|minha|meus|minhas|sou|tenho|moro|trabalho|ik|mij|mijn|your|yours|yourself|you(?:'re|"
    r"'ve| are| have| were| said| told| mentioned| live| work| like| love| prefer| asked| want|"
    r" wanted)|"
    r"dein\w*|votre|vos|ton|ta|tes|tuo|tua|jouw)\b|\b(?:he|she|his|her|him|hers)\b|我(?!们)|你的|私|僕|俺|あなた"
)
_ADDRESS: Final = re.compile(r"[^\s@]@[^\s@]+\.\w|(?:\+?\d[\s()./-]?){8,}\d")
_NAME: Final = re.compile(
    r"(?:(?<=[\w,;:)'’\"”] )|(?<=[\w,;:)] "
    r"[\"“„(]))([A-ZÀ-ÖØ-Þ][\w'’&-]*[\w](?:\s+[A-ZÀ-ÖØ-Þ][\w'’&-]*\w)*)"
)
_PERSON: Final = re.compile(
    rf"\b(?:{KIN_WORDS}|with|met|meet|called|named|told|asked|visit|visited|married|"
    rf"Dr\.?|Mrs?\.?|Ms\.?|Aunt|Uncle) (?:(?:Dr|Mrs?|Ms)\.? )?"
    r"([A-ZÀ-ÖØ-Þ][\w-]+)(?!\w)"
    r"|\b(?<![Tt]he )([A-ZÀ-ÖØ-Þ][\w-]+) (?:and I|says|said|told|asked|gave|who)\b"
)
_NO_NAMES: Final = word_set(
    "i i'm i'll i've i'd i’m i’ll i’ve i’d ok okay yes no and but so the it it's he she they we "
    "you my a an that this there what monday tuesday wednesday thursday friday saturday sunday "
    "january february march april may june july august september october november december "
    "christmas easter english"
)
