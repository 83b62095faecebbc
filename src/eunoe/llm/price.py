"""What calls cost: by prices that were given, else by the price list of genai-prices where that is installed."""

import math
import os
from importlib.util import find_spec
from typing import NamedTuple

from eunoe.errors import LlmError


class Price(NamedTuple):
    """The price of a million tokens read and of a million written."""

    input: float
    output: float


def configured_price(text: str | None = None) -> Price | None:
    """Return the price in a setting, else in the environment, else None.

    >>> configured_price("0.25/2")
    Price(input=0.25, output=2.0)
    """
    text = text or os.environ.get("EUNOE_LLM_PRICE")
    if not text:
        return None
    try:
        price = Price(*map(float, text.split("/")))
    except (ValueError, TypeError):
        price = Price(-1, -1)
    if not all(math.isfinite(part) and part >= 0 for part in price):
        raise LlmError(f"The price {text!r} must be written IN/OUT, the prices of a million tokens, such as 0.25/2")
    return price


def call_cost(price: Price | None, provider: str, model: str, input_tokens: int, output_tokens: int) -> float:
    """Return what a call costs by a price, else by the list; 0 where there is no list, or the model is not in it."""
    if price:
        return (input_tokens * price.input + output_tokens * price.output) / 1_000_000
    if not provider or find_spec("genai_prices") is None:
        return 0.0
    from genai_prices import Usage, calc_price

    try:
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        return float(calc_price(usage, model, provider_id=provider).total_price)
    except LookupError:
        return 0.0
