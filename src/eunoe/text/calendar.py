"""Words for times, in the languages whose dates are read."""

from __future__ import annotations

from typing import Final


def word_set(words: str) -> frozenset[str]:
    """Words written one after the other."""
    return frozenset(words.split())


MONTHS: Final[dict[str, int]] = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari",
            "february feb februar février fevrier febrero febbraio fevereiro februari",
            "march mar märz maerz mars marzo março marco maart",
            "april apr avril abril aprile",
            "may mai mayo maggio maio mei",
            "june jun juni juin junio giugno junho",
            "july jul juli juillet julio luglio julho",
            "august aug août aout agosto augustus",
            "september sep sept septembre septiembre settembre setembro",
            "october oct oktober octobre octubre ottobre outubro",
            "november nov novembre noviembre novembro",
            "december dec dezember décembre decembre diciembre dicembre dezembro",
        ),
        start=1,
    )
    for name in names.split()
}

SURE_MONTHS: Final = word_set(
    "january february july september october november december januar februar februari juli oktober dezember "
    "janvier février juillet août septembre octobre novembre décembre enero febrero julio septiembre octubre "
    "noviembre diciembre gennaio febbraio luglio settembre ottobre dicembre janeiro fevereiro julho setembro "
    "outubro novembro dezembro januari augustus"
)
"""Month names that mean nothing else; the others count only beside a number or after one of MONTH_LEADS."""

MONTH_LEADS: Final = word_set(
    "in during since early mid late last next this of until till by through end beginning start from between "
    "im seit ab bis mitte anfang ende en depuis em di da del de do desde sinds eind begin le"
)

WEEKDAYS: Final[dict[str, int]] = {
    name: number
    for number, names in enumerate(
        (
            "monday montag lundi lunes lunedì lunedi segunda-feira maandag",
            "tuesday dienstag mardi martes martedì martedi terça-feira dinsdag",
            "wednesday mittwoch mercredi miércoles miercoles mercoledì mercoledi quarta-feira woensdag",
            "thursday donnerstag jeudi jueves giovedì giovedi quinta-feira donderdag",
            "friday freitag vendredi viernes venerdì venerdi sexta-feira vrijdag",
            "saturday samstag sonnabend samedi sábado sabado sabato zaterdag",
            "sunday sonntag dimanche domingo domenica zondag",
        )
    )
    for name in names.split()
}

SEASONS: Final[dict[str, int]] = {
    "spring": 3, "frühling": 3, "frühjahr": 3, "printemps": 3, "primavera": 3, "lente": 3,
    "summer": 6, "sommer": 6, "été": 6, "verano": 6, "estate": 6, "verão": 6, "zomer": 6,
    "autumn": 9, "fall": 9, "herbst": 9, "automne": 9, "otoño": 9, "autunno": 9, "outono": 9, "herfst": 9,
    "winter": 12, "hiver": 12, "invierno": 12, "inverno": 12,
}  # fmt: skip
"""The first of a season's three months, in the northern year."""

HOLIDAYS: Final[dict[str, tuple[int, int, int]]] = {
    "christmas": (12, 20, 8), "xmas": (12, 20, 8), "weihnachten": (12, 20, 8), "noël": (12, 20, 8),
    "navidad": (12, 20, 8), "natale": (12, 20, 8), "natal": (12, 20, 8), "kerstmis": (12, 20, 8),
    "new year": (12, 30, 4), "new year's": (12, 30, 4), "new year's eve": (12, 31, 1), "silvester": (12, 31, 1),
    "halloween": (10, 30, 3), "valentine's": (2, 13, 3), "valentine's day": (2, 13, 3),
    "thanksgiving": (11, 21, 9), "independence day": (7, 3, 3),
}  # fmt: skip
"""Month, day and number of days."""

NUMBERS: Final[dict[str, int]] = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "couple": 2, "few": 3, "several": 4,
}  # fmt: skip

ORDINALS: Final[dict[str, int]] = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}

DAYS_OFF: Final[dict[str, int]] = {
    "today": 0, "tonight": 0, "this morning": 0, "this evening": 0, "this afternoon": 0, "heute": 0, "hoy": 0,
    "oggi": 0, "hoje": 0, "vandaag": 0, "aujourd'hui": 0,
    "yesterday": -1, "last night": -1, "gestern": -1, "ayer": -1, "ieri": -1, "ontem": -1, "gisteren": -1,
    "the day before yesterday": -2, "vorgestern": -2, "anteayer": -2, "avant-hier": -2, "eergisteren": -2,
    "tomorrow": 1, "mañana": 1, "domani": 1, "amanhã": 1, "demain": 1,
    "the day after tomorrow": 2, "übermorgen": 2,
}  # fmt: skip

LAST: Final = (
    "last|past|previous|letzte[nrsm]?|vergangene[nrsm]?|vorige[nrsm]?|afgelopen|vorige|dernier|dernière|pasad[oa]|"
    "scors[oa]|passad[oa]"
)
UNITS: Final[dict[str, str]] = {
    "day": "day", "tag": "day", "tage": "day", "tagen": "day", "jour": "day", "jours": "day", "días": "day",
    "giorni": "day", "dias": "day", "dagen": "day",
    "week": "week", "woche": "week", "wochen": "week", "semaine": "week", "semaines": "week", "semana": "week",
    "semanas": "week", "settimana": "week", "settimane": "week", "weken": "week",
    "month": "month", "monat": "month", "monate": "month", "monaten": "month", "mois": "month", "mes": "month",
    "meses": "month", "mese": "month", "mesi": "month", "mês": "month", "maand": "month", "maanden": "month",
    "year": "year", "jahr": "year", "jahre": "year", "jahren": "year", "année": "year", "ans": "year",
    "año": "year", "años": "year", "anno": "year", "anni": "year", "ano": "year", "anos": "year", "jaar": "year",
    "weekend": "weekend", "wochenende": "weekend", "quarter": "quarter", "quartal": "quarter",
}  # fmt: skip
