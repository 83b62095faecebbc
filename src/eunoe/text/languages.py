# ruff: noqa: RUF001
"""Languages as data: stop words, scripts, and the words that only frame a question."""

from __future__ import annotations

from typing import Final

from eunoe.text.calendar import MONTHS, SEASONS, UNITS, WEEKDAYS, word_set

_STOPS: Final[dict[str, str]] = {
    "english": """
        a an the this that these those i me my mine we us our ours you your yours he him his she her hers it
        its they them their theirs who whom whose what which when where why how am is are was were be been
        being do does did doing done have has had having will would shall should can could may might must
        and or but if then than so as of at by for with about into to from in on onto out off over under
        again once here there all any both each few more most other some such no nor not only own same too
        very just also up down s t d ll m re ve don dont didnt doesnt isnt wasnt arent wont cant couldnt
        wouldnt im ive thats theres whats didn doesn isn wasn aren won couldn wouldn shouldn hasn haven hadn
        ain let get got between during before after above below while because until against through ever
    """,
    "german": """
        der die das den dem des ein eine einer eines einem einen und oder aber nicht ist sind war waren bin
        bist sei ich du er sie es wir ihr mich dich mir dir ihm ihn uns euch ihnen mein meine dein deine
        sein seine unser was wer wie wo wann warum welche welcher welches mit von zu zum zur auf für fur in
        im an am bei nach aus über uber unter vor durch um als auch noch nur schon so wenn dass daß hat habe
        haben hatte hatten wird werden wurde kann können konnen muss will sich man kein keine ja doch
    """,
    "french": """
        le la les un une des du de d l et ou mais ne pas est sont était etait été ete suis es je tu il elle
        nous vous ils elles me te se mon ma mes ton ta tes son sa ses notre votre leur leurs que qui quoi
        quel quelle quand où comment pourquoi combien dans sur sous avec pour par en au aux ce cet cette ces
        ai as a ont avait avoir être etre fait plus moins aussi c j n s t m qu y si
    """,
    "spanish": """
        el la los las un una unos unas y o pero no es son era fue fueron ser estar está esta están estaba
        soy eres yo tú tu él ella nosotros ustedes ellos ellas me te se mi mis su sus nuestro qué que quién
        quien cuál cual cuándo cuando dónde donde cómo como por para con sin en de del al a ha han he había
        hay más mas muy lo le les ya si sí este esto ese eso
    """,
    "italian": """
        il lo la i gli le un uno una e o ma non è sono era erano essere sei io tu lui lei noi voi loro mi ti
        si ci vi mio mia tuo suo sua nostro che chi cosa quale quando dove come perché perche con per in su
        di del della dei delle da dal al alla a ha hanno ho aveva più piu anche questo questa quello quella
        ne se
    """,
    "portuguese": """
        o a os as um uma uns umas e ou mas não nao é são sao era foi foram ser estar está estava sou eu tu
        ele ela nós vocês voce você eles elas me te se meu minha seu sua nosso que quem qual quando onde
        como porque por para com sem em no na nos nas de do da dos das ao à tem têm tinha há mais muito já
        isso este essa
    """,
    "dutch": """
        de het een en of maar niet is zijn was waren ben bent ik jij je hij zij ze wij we jullie mij me jou
        hem haar ons hun mijn jouw uw wat wie welke wanneer waar hoe waarom met van te tot op voor in aan
        bij naar uit over onder door om als ook nog al zo dat die dit deze heeft heb hebben had wordt werd
        kan moet wil geen er
    """,
    "swedish": """
        och att det som en ett den är var jag du han hon vi ni de på av för med till i om inte har hade kan
        ska vad vem när hur varför men så sig min din sin från
    """,
    "danish": """
        og at det som en et den er var jeg du han hun vi i de på af for med til om ikke har havde kan skal
        hvad hvem hvornår hvor hvordan hvorfor men så sig min din sin fra
    """,
    "norwegian": """
        og å det som en et den er var jeg du han hun vi dere de på av for med til i om ikke har hadde kan
        skal hva hvem når hvor hvordan hvorfor men så seg min din sin fra
    """,
    "finnish": """
        ja on oli ei en et se hän minä sinä me te he että mikä kuka milloin missä miten miksi kun niin mutta
        tai myös joka ovat olen
    """,
    "hungarian": """
        a az és hogy nem is egy van volt én te mi ti ez azt mit ki mikor hol hogyan miért meg már csak
        de ha
    """,
    "romanian": """
        și si este sunt era eu tu el ea noi voi ei un o al ale de la cu în in pe din pentru nu ce cine când
        unde cum care mai sau dar să sa fost
    """,
    "turkish": """
        ve bir bu şu o için ile de da mi mı ne kim zaman nerede nasıl neden ben sen biz siz onlar değil var
        yok çok ama gibi daha
    """,
    "polish": """
        i w na z do nie to jest są był była było się że o jak ale po co kto kiedy gdzie dlaczego czy ja ty
        on ona my wy oni mój twój jego jej dla od za przez
    """,
    "russian": """
        и в на не с что это как а то я ты он она мы вы они но к по за из у от до для о же бы был была было
        были быть есть мне меня тебя его её ее их нам вам кто где когда почему какой какая какие чем при так
        да нет мой твой свой
    """,
    "greek": """
        και το η ο τα οι του της των να με για από απο στο στη στην είναι ειναι δεν που τι ποιος ποτε πότε
        πώς πως θα μου σου μας σας
    """,
    "arabic": """
        في من على إلى الى عن مع هذا هذه ذلك التي الذي ما ماذا متى أين اين كيف لماذا هل هو هي أنا انا أنت نحن
        كان كانت لا لم لن و أو او أن ان
    """,
    "hindi": """
        है हैं था थी थे का की के में से को पर और या नहीं यह वह क्या कौन कब कहाँ कैसे क्यों मैं तुम हम आप ने
        भी
    """,
    "hebrew": """
        של את על עם זה זאת הוא היא אני אתה אנחנו לא כן מה מי מתי איפה איך למה היה הייתה גם או אם כי
    """,
}

LANGUAGES: Final = tuple(_STOPS)
"""English first: it wins a tie and stands in when a text has no vote."""

STOPS: Final = {language: frozenset(words.split()) for language, words in _STOPS.items()}

SCRIPTS: Final = (
    ("\u0400", "\u052f", "russian"),
    ("\u0370", "\u03ff", "greek"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0590", "\u05ff", "hebrew"),
)
"""First and last letter of a script, and the language its words are stemmed in."""

FRAME: Final = word_set(
    """
    kind type sort date long many much happen happened original originally current currently compare compared
    develop developed final finally present name mention mentioned describe discuss say said talk tell told
    think thought likely probably list history order sequence exact exactly specific various different recent
    recently time day year month occur related relate according chronological latest earlier later now still
    event certain explain reason cause involve involved state ask asked give gave go went take make made use
    used way ways thing things number amount item items example session conversation chat first last
    """
)
"""Words that say what is asked rather than what about: they count for less in a question."""

TIME_WORDS: Final = word_set(
    """
    yesterday today tonight tomorrow ago last next weekend week weeks month months year years day days hour
    hours minute minutes recently since morning evening night soon birthday anniversary gestern heute morgen
    letzten nächste hier demain ayer mañana ieri domani ontem amanhã gisteren vandaag
    """
) | (MONTHS.keys() | WEEKDAYS.keys() | SEASONS.keys() | UNITS.keys()) - {"may", "march", "mar", "fall", "estate", "sat"}

NUMBER_WORDS: Final = word_set(
    """
    one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand
    dozen half once twice couple first second third zwei drei vier fünf deux trois quatre dos tres due tre dois
    """
)
