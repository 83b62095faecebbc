"""The nouns. Pure: nothing here reads, writes or imports anything heavy."""

from eunoe.model.atom import Atom
from eunoe.model.message import Message, MessageLike
from eunoe.model.result import ForgetReport, Hit, ImportReport, Item, Page, Reason, Receipt, Status
from eunoe.model.scope import Scope, ScopeLike
from eunoe.model.time import TimeLike

__all__ = [
    "Atom",
    "ForgetReport",
    "Hit",
    "ImportReport",
    "Item",
    "Message",
    "MessageLike",
    "Page",
    "Reason",
    "Receipt",
    "Scope",
    "ScopeLike",
    "Status",
    "TimeLike",
]
