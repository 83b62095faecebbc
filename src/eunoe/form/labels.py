"""What kind of thing a sentence says: the forms that each kind has, in the languages that are known by rule."""

from __future__ import annotations

import re
from typing import Final

from eunoe.form.keys import LANGUAGE_NAMES


def label_of(plain: str) -> tuple[str, float]:
    """The kind of the first form that a sentence in lower case has, and what it is worth; empty and 0 if it has none.

    >>> label_of("i decided to stay")[0], label_of("two of them")
    ('decision', ('', 0.0))
    """
    for label, weight, pattern in _PATTERNS:
        if pattern.search(plain):
            return label, weight
    return "", 0.0


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_ADV: Final = (
    r"(?:(?:really|also|just|still|absolutely|totally|generally|usually|always|only|actually|"
    r"honestly|mostly|definitely|personally|even|do|much|very|quite|recently|now|already|never|"
    r"finally|currently|officially) )*"
)
_I: Final = r"\b(?:i|we)(?:'ve|'d| have| had)? " + _ADV
_LIKED: Final = r"\b(?:i|we)(?:'ve| have)? " + _ADV
_IAM: Final = r"\b(?:i|we)(?:'m|'re| am| are|m) " + _ADV
KIN_WORDS: Final = (
    r"wife|husband|partner|girlfriend|boyfriend|fianc[ée]e?|spouse|ex|mother|mum|mom|father|dad|"
    r"parents|sister|brother|sibling|son|daughter|kids?|children|child|"
    r"baby|twins?|grand(?:mother|father|ma|pa|son|daughter|parents)|gran|granny|nan|uncle|"
    r"aunt(?:ie)?|cousin|niece|nephew|in-laws?|(?:mother|father|sister|brother)-in-law|friend|"
    r"best friend|"
    r"flatmate|roommate|housemate|neighbou?r|boss|manager|colleague|coworker|co-worker|teacher|"
    r"doctor|dentist|therapist|landlord|landlady|tutor|coach|dog|cat|puppy|kitten|horse|parrot|"
    r"rabbit"
)
CHILDREN: Final = (
    r"\b(?:ich habe|wir haben|j'ai|nous avons|tengo|tenemos|ho|abbiamo|tenho|temos|ik heb|we hebben) \w+ "
    r"(?:kind(?:er|eren)?|söhne|töchter|enfants?|fils|filles?|hij[oa]s?|figli[oae]?|filh[oa]s?|dochters|zonen)\b"
)
_PAST: Final = (
    r"(?:(?!(?:hundred|need|indeed|speed|feed|seed|weed|shed|sled|breed|naked|wicked|"
    r"embed)\b)\w{2,}ed|was|were|went|got|had|made|took|gave|came|saw|bought|sold|met|left|lost|"
    r"found|told|said|began|started|broke|brought|built|caught|chose|drove|fell|felt|flew|forgot|"
    r"grew|heard|held|hurt|kept|knew|led|lent|paid|ran|rang|read|rode|sat|sent|set|slept|spent|"
    r"spoke|stood|stole|swam|taught|thought|threw|understood|won|wore|wrote|did|cut|put|let|quit|"
    r"hit|bit|hid|shot|sang|drank|ate|tore|dug|became|moved)"
)
_PART: Final = (
    r"(?:(?!(?:hundred|need|indeed|speed|feed|seed|weed|shed)\b)\w{2,}ed|been|gone|got|gotten|had|"
    r"made|taken|given|come|seen|bought|sold|met|left|lost|found|told|said|begun|broken|brought|"
    r"built|caught|chosen|driven|fallen|felt|flown|"
    r"forgotten|grown|heard|held|hurt|kept|known|led|lent|paid|run|rung|read|ridden|sat|sent|set|"
    r"slept|spent|spoken|stood|stolen|swum|taught|thought|thrown|won|worn|written|done|cut|put|"
    r"become|quit)"
)
WHEN: Final = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|april|june|july|august|"
    r"september|october|november|december|(?:in|on|by|since|of|last|next|early|late|mid) (?:may|"
    r"march)|"
    r"(?:may|march) \d|\d (?:may|march)|tomorrow|tonight|yesterday|today|this (?:morning|"
    r"afternoon|evening|week|weekend|month|year|spring|summer|autumn|fall|winter)|"
    r"(?:last|next) (?:week|weekend|month|year|night|spring|summer|autumn|fall|winter|time|term)|"
    r"\w+ (?:days?|weeks?|months?|years?) (?:ago|from now|later)|in (?:a|an|two|three|four|five|"
    r"six|\d+) (?:days?|weeks?|months?|years?|hours?)|"
    r"on the (?:\d+(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|"
    r"tenth|eleventh|twelfth|\w+teenth|twentieth|twenty-\w+|thirtieth)|the \d+(?:st|nd|rd|th)|"
    r"christmas|easter|new year|half past|\d{1,2}(?::\d\d)? ?(?:am|pm)\b|\b(?:19|20)\d\d\b|\d{1,2}:\d\d"
)

_PATTERNS: Final = tuple(
    (label, weight, _any(*patterns))
    for label, weight, patterns in (
        (
            "instruction",
            2.2,
            (
                r"\bfrom now on\b",
                r"\bgoing forward\b",
                r"^in (?:the )?future\b",
                r"^(?:please )?(?:always|never)\b",
                r"\bevery time (?:you|i)\b",
                r"\bwhenever you\b",
                r"\bdon't ever\b",
                r"^please (?:avoid|keep|use|stop|remember|stick|address|answer|reply|write in)\b",
                r"^(?:and )?remember (?:that|to|my|i)\b",
                r"\bcall me\b(?! (?:when|if|back|later|tomorrow|tonight|at|on))",
                r"\bi(?:'d| would) (?:like|prefer|rather) (?:you to|if you|that you|it if you)\b",
                r"\bi want you to (?:always|never|only|stop|keep|use|answer|reply|respond|call|write|speak|talk|avoid|"
                r"remember|address|be|act)\b(?!.*\b(?:it|this|that)\W*$)",
                r"^(?:please )?(?:stop|quit) \w+ing\b",
                r"^(?:please )?(?:do not|don't) (?:use|add|include|give|call|suggest|mention|recommend|put|write|send|"
                r"tell|ask|explain|start|end)\b",
                r"^(?:please )?(?:do not|don't) (?:touch|edit|modify|commit|push|delete|rename|mock|merge|"
                r"deploy|install|refactor|rewrite|overwrite|schedule) (?!(?:it|that|this|them|those|these|"
                r"anything|me)\b)\w",
                r"^(?:please )?(?:use|prefer|choose|pick) (?!(?:it|that|this)\b)[^.]*(?:,? not|,? never| over|"
                r" instead of| rather than) \w",
                r"^(?:please )?prefer \w+ \w+",
                r"^(?:please )?run (?!(?:it|that|this|away)\b)(?:\w+ ){1,4}(?:before|after|with|on every) \w",
                rf"^(?:please )?(?:answer|reply|respond|write|speak|talk) (?:\w+ )?(?:\w+ )?in {LANGUAGE_NAMES}\b",
                r"^(?!(?:i|we|he|she|they|you|the)\b)(?:\w+ )?(?:messages|comments|docs|answers|replies|emails) "
                rf"(?:only |always )?in {LANGUAGE_NAMES}\b",
                r"^bitte (?:kein\w*|nie|immer|nur|nicht) \w+ ?\w+",
                rf"\b(?:réponds|répondez|responde|respóndeme|contesta|rispondi|responda|antworte|schreib\w*|antwoord)"
                rf"(?:-moi| mir| me| mi)? (?:\w+ )?(?:auf|en|in|em|het) {LANGUAGE_NAMES}\b",
                r"^(?:bitte )?(?:immer|nie|niemals)\b(?!.*\b(?:ich|wir|er|sie)\b).*\wen\W*$",
                r"^(?:nutze?|verwende|utilise|usa|utilizza|gebruik) [^.]*\b(?:immer|nicht|statt|pas|toujours|no|"
                r"siempre|non|sempre|não|niet)\b",
                r"^no (?:more )?(?:emojis?|jargon|bullet|exclamation|apolog\w+)\b",
                r"\b(?:keep|make) (?:(?:your|the|all|it|them|every|each|my) )?(?:\w+ )?(?:answers?|repl(?:y|ies)|"
                r"responses?|under|below|short|brief|within)\b",
                r"\byou (?:should|must|may|can|have to) (?:always|never|only)\b",
                r"\b(?:standing|ground|house|hard) rules?\b",
                r"^rules?\b.*:",
                r"\bone rule\b",
                r"^(?:just )?for the record\b",
                r"^note(?: for| that|:)",
                r"\bplease (?:always|never)\b",
                r"\bi (?:always |only )?want (?:\w+ )?(?:answers|replies|metric|short|plain|prices|"
                r"the \w+ first)\b",
                r"\bnever (?:suggest|use|call|mention|write|put|send|give|include|recommend|assume)\b",
                r"\balways (?:use|give|write|put|tell|start|end|show|include|ask|round|quote|check|answer|reply|"
                r"run|make|save|add|keep|name|send)\b",
                r"\bab (?:jetzt|sofort)\b",
                r"^(?:bitte )?(?:antworte|verwende|nutze|nenn) ",
                r"\b(?:désormais|à partir de maintenant)\b",
                r"\bappelle-moi\b",
                r"\ba partir de ahora\b",
                r"\b(?:llámame|respóndeme)\b",
                r"\bd'ora in poi\b",
                r"\bchiamami\b",
                r"\ba partir de agora\b",
                r"\bme chame\b",
                r"\bvanaf nu\b",
                r"\bnoem me\b",
                "以后请",
                "从现在起",
                "请(?:总是|一直|不要|叫我)",
                "これから(?:は|も)",
                "(?:呼んで|しないで)ください",
            ),
        ),
        (
            "decision",
            1.5,
            (
                _I + r"(?:decided|chose|chosen|agreed|settled|opted|picked|resolved|voted|ruled out|gone with|"
                r"went with|going with|made up (?:my|our) mind)\b",
                r"\blet's (?:go with|settle|stick|say|do|make it|use)\b",
                r"\b(?:it's|that's) (?:settled|decided|final)\b",
                r"\bthe (?:decision|verdict|plan) is\b",
                r"\bdecision:",
                r"^(?:it's |that's |it is )?(?:decided|settled)[:,;–-]",
                r"\bchanged (?:my|our) minds?\b",
                r"\b(?:was|were|been|is) (?:agreed|decided|approved|postponed|cancel+ed|scrapped|merged|"
                r"signed off)\b",
                _I + r"(?:signed|accepted|turned (?:it|them|him|her|that)? ?down|handed in|resigned|quit|cancel+ed|"
                r"ditched|dropped|withdrew|withdrawn|committed)\b",
                r"\bwe(?:'re| are) (?:going with|dropping|keeping|switching|not doing)\b",
                r"\b(?:haben|habe) (?:\w+ )*(?:entschieden|beschlossen|vereinbart)\b",
                r"\b(?:avons|ai) (?:décidé|choisi)\b",
                r"\b(?:decidí|decidimos|hemos decidido|he decidido)\b",
                r"\b(?:abbiamo|ho) deciso\b",
                r"\b(?:decidi|decidimos|resolvi)\b",
                r"\b(?:heb|hebben) (?:\w+ )*besloten\b",
                "决定了?",
                "(?:決めた|決めました|ことにした|ことにしました)",
            ),
        ),
        (
            "preference",
            1.5,
            (
                _LIKED + r"(?:love|loved|like|liked|hate|hated|prefer|enjoy|adore|dislike|detest|despise|can't stand|"
                r"cannot stand|can't bear|don't (?:like|eat|drink|do|want|enjoy|mind|use|trust|believe)|avoid|"
                r"favou?r)\b(?! (?:it|that|this|you|her|him|them|to know|to think)\b)",
                r"\bmy (?:\w+ )?favou?rite\b",
                r"\bfavou?rite (?:\w+ ){1,3}is\b",
                _IAM + r"(?:not )?(?:a (?:big |huge )?fan of|into|allergic|fond of|obsessed with|addicted to|"
                r"scared of|afraid of|terrified of|vegetarian|vegan|a vegetarian|a vegan|pescatarian|gluten|"
                r"lactose|keen on|colou?r-?blind|partial to)\b",
                r"\b(?:allergic|allergy|intoleran\w+|vegetarian|vegan|coeliac|celiac|gluten-free|kosher|halal)\b",
                r"\b(?:celiac[oa]|celíac[oa]|cœliaque|zöliakie)\b",
                _I + r"rather\b",
                _I + r"(?:never|always|usually|only|rarely|hardly ever) (?:eat|drink|buy|wear|use|read|watch|take|"
                r"sleep|work|go|drive|fly|cook|order|answer|play|listen)\w*\b",
                r"\bi can't (?:eat|drink|have)\b",
                r"\bi(?:'ve)? never (?:liked|been a fan)\b",
                r"\bich (?:\w+ )?(?:mag|liebe|hasse|bevorzuge|esse (?:kein|gern|nie)\w*|trinke (?:kein|gern|"
                r"nie)\w*)\b",
                r"\bmein\w* lieblings",
                r"\blieblings\w+ ist\b",
                r"\bj(?:e |')(?:n')?(?:aime|adore|déteste|préfère|mange pas)\b",
                r"\bmon \w+ préféré|ma \w+ préférée",
                r"\b(?:me (?:gusta|gustan|encanta|encantan)|prefiero|odio|detesto|mi \w+ favorit[oa])\b",
                r"\b(?:mi piace|mi piacciono|preferisco|adoro|il mio \w+ preferito|la mia \w+ preferita)\b",
                r"\b(?:eu (?:gosto|adoro|odeio|prefiro)|gosto de|meu \w+ favorito)\b",
                r"\bik (?:hou van|haat|vind \w+ lekker)\b",
                r"\b(?:allergisch|allergique|alérgic[oa]|allergic[oa]|végétarien\w*|vegetariano|vegetarisch|"
                r"vegetarierin?)\b",
                "喜欢|讨厌|不吃|不喝|过敏|最爱",
                "が(?:大)?好き|が嫌い|アレルギー|苦手",
            ),
        ),
        (
            "identity",
            1.6,
            (
                _IAM + r"(?:an? (?!(?:bit|little|lot|mess|fool|idiot|genius|fan|while|week|day|disaster|ghost|"
                r"monster|terrible|bad|big|good|wreck|hundred|thousand|coward|hero|sucker)\b)\w+|from|"
                r"originally|turning|married|divorced|single|engaged|widowed|pregnant|retired|self-employed|"
                r"unemployed|based in|\d+\b|the (?:only|new|first|eldest|oldest|youngest|head|manager|owner)|"
                r"dyslexic|deaf|left-handed|bilingual|diabetic|asthmatic)",
                r"\bmy (?:full |real |middle |last |first |maiden )?(?:name|surname|nickname|job|title|role|"
                r"profession|birthday|phone|number|mobile|email|e-mail|address|postcode|age|nationality|"
                r"blood type|star sign|pronouns|account|username|time ?zone|native language|"
                r"mother tongue)(?: \w+)?(?:'s| is| was)\b",
                _I + r"(?:work|worked|working) (?:as|at|for|in|from|on|with)\b",
                _IAM + r"(?:working|living|studying|training|employed|teaching)\b",
                _I + r"(?:live(?! in (?:hope|fear|denial|peace|dread|the moment)\b)|"
                r"lived|grew up|was born|were born|studied|study|graduated|majored|speak|teach|"
                r"run an?|own an?|come from|used to (?:be|work|live|play|have|run|teach))\b",
                _I + r"(?:have|got) (?:an? )?(?:degree|phd|master|licen[cs]e|certificate|diabetes|asthma|adhd|"
                r"dyslexia)\b",
                r"\bich (?:bin (?!froh|müde|sicher|gerade|nicht sicher)|heiße|wohne|lebe|arbeite|komme aus|"
                r"studiere|wurde \w+ geboren)\b",
                r"\bmein\w* (?:name|beruf|geburtstag|adresse|telefonnummer) ist\b",
                r"\bje (?:suis (?!désolé|content|sûr|fatigué|là)|m'appelle|travaille|viens de|parle)\b|"
                r"\bj'(?:habite|étudie|ai \d+ ans)\b",
                r"\b(?:me llamo|soy (?!feliz)|vivo en|trabajo (?:en|como|de|para)|nací|tengo \d+ años|estudio)\b",
                r"\b(?:mi chiamo|abito a|vivo a|lavoro (?:come|in|per|a)|ho \d+ anni|sono (?:un|una|di|nato|"
                r"nata))\b",
                r"^sono (?!(?:stanc|felic|content|sicur|pront|seri|trist|qui|via|mort|pien)\w*\W*$)"
                r"\w+[aeio](?<!at[aeio])\W*$",
                r"^sou (?!(?:eu|feliz|assim)\b)\w+",
                r"\b(?:me chamo|eu sou|moro em|trabalho (?:em|como|na|no)|tenho \d+ anos)\b",
                r"\bik (?:ben (?!blij|moe)|heet|woon|werk|kom uit)\b|\bmijn naam is\b",
                "我(?:是(?!说)|叫|住在|在.{1,12}工作|来自|今年)",
                "我的(?:名字|生日|电话|工作|地址)",
                "(?:私|僕|俺)(?:は|の名前は)|住んでい|働いてい|と申します|と言います",
            ),
        ),
        (
            "plan",
            1.8,
            (
                r"\b(?:pay|paid|due|send|submit|hand in|return|renew|file|reply|rsvp|register|apply|deliver|sign)"
                rf"(?: [\w-]+){{0,4}} (?:by|before|until|no later than) (?:the )?(?:\d|{WHEN})",
                r"\b(?:i|we)(?:'ll| will) (?:fly|travel|move|marry|retire|graduate|visit|be (?:in|away|off))\b"
                rf"(?=.*\b(?:{WHEN})\b)",
                r"^(?!(?:it|that|this|there|he|she|they|who|what|nobody|everyone|everything|something|nothing|i|we|you|"
                r"the|christmas|summer|winter|spring|autumn)\b)[^\W\d_]+(?: and [^\W\d_]+)? "
                r"(?:is|are|isn't|aren't) (?:also |not )?(?:coming|joining)(?: (?:along|too|with us|on|at|to)\b|\W*$)",
            ),
        ),
        (
            "plan",
            1.15,
            (
                _I + r"(?:plan|planned|intend|hope|aim|booked|scheduled|arranged|signed up|registered|enrol+ed|"
                r"applied)\b(?! (?:you|it|that|so|he|she|they)\b)",
                _IAM + r"(?:planning|hoping|aiming|going to|about to|thinking of|saving|training for|due|supposed to|"
                r"meant to|booked|flying|leaving|moving|meeting|seeing|starting|taking|visiting|travel+ing|"
                r"driving|getting|having|sitting|off to|applying|looking for|doing|staying|hosting|running|"
                r"going|coming|picking|bringing|making|writing|building|learning)\b",
                r"\b(?:i|we)(?:'ll| will| shall|'ve got to| have to| need to| want to| must|'d like to|"
                r"'d love to| are to)\b",
                r"\b(?:appointment|deadline|interview|exam|flight|reservation|viewing|wedding|surgery|"
                r"operation|meeting|launch|release|trip)\b.*\b(?:is|'s|are|at|on)\b",
                r"\b(?:he|she|they|it)(?:'ll|'s going to|'re going to| will| is going to| are going to|"
                r"'re getting|'s getting| are getting|'s coming|'re coming)\b",
                r"\b(?:is|are|'s|'re) (?:due|scheduled|planned|booked|starting|coming|moving|getting|having|"
                r"opening|closing|leaving|arriving|set for|set to|going to)\b",
                r"\b(?:next (?:week|weekend|month|year|spring|summer|term|season|\w+day)|tomorrow)\b",
                r"\bwill (?:be|have|start|come|go|get|take|need|pay|send|meet|open|close|move|arrive|leave)\b",
                r"\b(?:ich|wir) (?:werde|werden|will|wollen|möchte|möchten|plane|planen|fliege|fahre|ziehe)\b",
                r"\b(?:je vais|nous allons|je compte|je voudrais|on va)\b",
                r"\b(?:voy a|vamos a|quiero|pienso|planeo)\b",
                r"\b(?:vado a|andiamo|voglio|ho intenzione)\b",
                r"\b(?:vou|vamos|quero|pretendo)\b",
                r"\b(?:ik ga|we gaan|ik wil)\b",
                "打算|计划|准备|将要|下周|明天|明年",
                "つもり|予定|来週|来月|明日",
            ),
        ),
        (
            "relationship",
            1.35,
            (
                rf"\bmy (?:\w+ )?(?:{KIN_WORDS})(?:'s)?\b",
                rf"\b(?:i|we)(?:'ve| have)?(?: got)? (?:an? |one |two |three |four )(?:\w+ )?(?:{KIN_WORDS})s?\b",
                rf"\b(?:an?|the|his|her|our) (?:\w+ )?(?:{KIN_WORDS})(?:s)? (?:called|named)\b",
                r"\b(?:called|named) [a-z]+",
                CHILDREN,
                r"\b(?:dad|mum|mom|grandma|grandpa|gran|nan)\b",
                r"\bmein\w* (?:frau|mann|mutter|vater|bruder|schwester|sohn|tochter|kinder|freund\w*|hund|"
                r"katze|chef\w*)\b",
                r"\b(?:mon|ma|mes) (?:mari|femme|mère|père|frère|sœur|fils|fille|enfants|ami\w*|chien|chat|"
                r"copain|copine|patron\w*)\b",
                r"\bmis? (?:esposa|esposo|marido|mujer|madre|padre|hermano|hermana|hijo|hija|hijos|amig[oa]|"
                r"perro|gato|jef[ea]|novi[oa])\b",
                r"\b(?:mia|mio|miei) (?:moglie|marito|madre|padre|fratello|sorella|figlio|figlia|figli|"
                r"amic[oa]|cane|gatto)\b",
                r"\b(?:meu|minha|meus) (?:marido|esposa|mulher|mãe|pai|irmão|irmã|filho|filha|filhos|amig[oa]|"
                r"cachorro|gato)\b",
                r"\bmijn (?:vrouw|man|moeder|vader|broer|zus|zoon|dochter|kinderen|vriend\w*|hond|kat|baas)\b",
                "我的?(?:妻子|老婆|丈夫|老公|妈妈|爸爸|哥哥|弟弟|姐姐|妹妹|儿子|女儿|朋友|狗|猫)",
                "(?:妻|夫|母|父|兄|弟|姉|妹|息子|娘|友達|犬|猫)(?:は|が|の)",
            ),
        ),
        (
            "state",
            1.8,
            (
                _LIKED + r"take (?:[\w-]+ ){1,4}(?:once|twice|daily|(?:\w+ )?times|every|each|"
                r"at night|in the morning|for my)\b",
                _LIKED + r"take \b.*\b\d+ ?mg\b",
                r"\b(?:ich nehme|je prends|tomo|prendo|ik neem)\b.*(?:\b(?:täglich|jeden|morgens|abends|mal am tag|"
                r"par jour|tous les|chaque|le (?:matin|soir)|al día|cada|todos|al giorno|ogni|por dia|"
                r"per dag|elke)\b|\d ?mg\b)",
                r"\bwe (?:\w+ly |only |always )?(?:store|deploy|host|format|name|version|ship|cache|target|support|"
                r"indent|lint|release|write|test|keep|log) (?:[\w-]+ ){1,4}(?:as|in|on|to|with|via)\b",
                r"\bmy (?:\w+ )?(?:editor|ide|shell|os|operating system|browser|stack|framework|bank|instrument|hobby|"
                r"medication|native tongue|home airport|car|school|university) (?:is|are) (?!(?:dead|broken|gone|down|"
                r"slow|not|so|too|full|empty|very|really|being|in|on|off|at|\w+ing)\b)",
                r"\b(?:i|we) use [\w.+#-]+\W*$(?<!it)(?<!that)(?<!this)(?<!it\.)(?<!that\.)(?<!this\.)(?<!them\.)",
            ),
        ),
        (
            "state",
            1.5,
            (
                _LIKED + r"(?:own|drive|play|use|collect|earn|rent|owe|weigh|sing|grow|commute|volunteer|"
                r"subscribe)\b(?! (?:it|that|this|to)\b)",
            ),
        ),
        (
            "event",
            1.2,
            (
                r"\b(?:i|we)(?:'ve| have) (?:\w+ly |just |already |been |never |not )?" + _PART + r"\b",
                r"\b(?:i|we) (?:\w+ly |just |also |then |even |never |didn't |only )?" + _PAST + r"\b",
                r"\b(?:i|we) (?:didn't|couldn't|wasn't|weren't|haven't|hadn't)\b",
                r"^" + _PAST + r"\b (?!to\b)",
                r"\b(?:he|she|they|it) (?:\w+ly |just |also |then |even |never )?" + _PAST + r"\b",
                r"\b(?:he|she|it|\w+)'s (?:just |already |been )?" + _PART + r"\b",
                r"\b(?:has|have|had) (?:just |already |never |also )?" + _PART + r"\b",
                r"^(?:the |my |our |his |her )?(?:\w+ ){1,3}" + _PAST + r"\b",
                r"\b(?:was|were) (?:born|built|founded|released|cancelled|\w+ed)\b",
                r"\b(?:yesterday|last (?:week|weekend|night|month|year|summer|\w+day)|ago|this morning)\b",
                r"\b(?:ich|wir) (?:war|waren|habe|haben|hatte|bin|sind) .*\b(?:ge\w+t|ge\w+en|\w+iert|gestern)\b",
                r"\b(?:j'ai|nous avons|je suis|on a) (?:\w+é|\w+i|\w+u|eu|été|fait|pris|mis)\w*\b",
                r"\b(?:compré|fui|fuimos|hice|hicimos|tuve|perdí|empecé|terminé|llegué|conocí|ayer)\b",
                r"\b(?:sono andat\w|ho (?:\w+ato|\w+uto|\w+ito|fatto|preso|perso)|ieri)\b",
                r"\b(?:fui|comprei|comecei|fiz|perdi|ontem)\b",
                r"\b(?:ik heb|we hebben|ik ben) .*\bge\w+\b",
                "昨天|去年|上周|上个月|刚刚|了。$",
                "昨日|先週|去年|(?:ました|だった|でした)。?$",
            ),
        ),
        (
            "state",
            1.0,
            (
                _I + r"(?:have|got|own|need|keep|use|drive|play|owe|earn|pay|weigh|rent|wear|know|go|do|take|start|"
                r"finish|sleep|train|swim|collect|grow|write|build|make|bake|sing|spend|get|share|carry|can|"
                r"can't|manage|feel|want)\b",
                r"\bmy \w+(?: \w+)? (?:is|are|has|was|were|costs?|weighs?|runs?|starts?|ends?|takes?|keeps?)\b",
                r"\bthere(?:'s| is| are|'re| was| were) (?:an?|one|two|three|no|\d+|some|another)\b",
                r"^(?:the|our|his|her|their|a|an) (?:[\w'-]+ ){1,5}(?:is|are|has|have|costs?|takes?|needs?|"
                r"runs?|goes|starts|ends|lives|works|comes|wants?|says)\b",
                r"\b(?:costs?|worth|weighs?|priced|totals?|amounts to)\b",
                r"\b(?:he|she|it|they)(?:'s| is| are|'re| has| have| works?| lives?| wants?| needs?| plays?|"
                r" says?| likes?| loves?| hates?| does| goes| runs?) (?:not |also |still |now )?\w+",
                r"\b[a-z]+'s (?:an?|the|in|at|on|from|my|our)\b",
                r"\b(?:is|are) (?:an?|the|in|at|on|from|my|our|\d+|called|named)\b",
                r"\bich habe\b",
                r"\bj'ai (?:un|une|deux|trois|des)\b",
                r"\btengo\b",
                r"\bho (?:un|una|due|tre)\b",
                r"\btenho\b",
                r"\bik heb\b",
                "我(?:有|在|的)",
                "持ってい|があります|がいます",
            ),
        ),
    )
)
