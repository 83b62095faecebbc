"""A text that is long enough to have parts."""

FILLER = (
    "The meeting went over the usual points about the budget for the autumn and the plans for the new offices. "
    "Several people spoke about the heating and about who orders the paper for the printers on the second floor. "
)


def long_text(middle: str) -> str:
    return FILLER * 9 + middle + " " + FILLER * 3
