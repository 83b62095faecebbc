"""What calls cost: by prices that were given, else by the price list of genai-prices where that is installed."""

from __future__ import annotations

import math
import os
from importlib.util import find_spec
from typing import NamedTuple

from eunoe.errors import LlmError


class Price(NamedTuple):
    """The price of a million tokens read and of a million written."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


def read(text: str) -> Price:
    """A price as it is written in settings.

    >>> read("0.25/2")
    Price(input=0.25, output=2.0)
    """
    try:
        price = Price(*map(float, text.split("/")))
    except (ValueError, TypeError):
        price = Price(-1, -1)
    if not all(math.isfinite(part) and part >= 0 for part in price):
        raise LlmError(f"The price {text!r} must be written IN/OUT, the prices of a million tokens, such as 0.25/2")
    return price


def given(text: str | None) -> Price | None:
    """The price in a setting, else in the environment, else None."""
    text = text or os.environ.get("EUNOE_LLM_PRICE")
    return read(text) if text else None


def listed(provider: str, model: str, input_tokens: int, output_tokens: int) -> float:
    """What a call costs by the price list; 0 where there is no list, or the model is not in it."""
    if not provider or find_spec("genai_prices") is None:
        return 0.0
    from genai_prices import Usage, calc_price

    try:
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        return float(calc_price(usage, model, provider_id=provider).total_price)
    except LookupError:
        return 0.0
