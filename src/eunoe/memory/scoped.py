"""ScopedMemory: the everyday verbs of a memory with their scope filled in."""

from eunoe.memory.blocking import Memory
from eunoe.memory.bound import BoundMemory, scoped_verb


class ScopedMemory(BoundMemory[Memory]):
    """The everyday verbs of a memory, bound to one scope."""

    __slots__ = ()

    observe = scoped_verb(Memory.observe)
    remember = scoped_verb(Memory.remember)
    remember_many = scoped_verb(Memory.remember_many)
    recall = scoped_verb(Memory.recall)
    context = scoped_verb(Memory.context)
    look_up = scoped_verb(Memory.look_up)
    get = scoped_verb(Memory.get)
    get_many = scoped_verb(Memory.get_many)
    list = scoped_verb(Memory.list)
    view = scoped_verb(Memory.view)
    by_files = scoped_verb(Memory.by_files)
    history = scoped_verb(Memory.history)
    update = scoped_verb(Memory.update)
    expire = scoped_verb(Memory.expire)
    retract = scoped_verb(Memory.retract)
    pin = scoped_verb(Memory.pin)
    review = scoped_verb(Memory.review)
    preview = scoped_verb(Memory.preview)
    forget = scoped_verb(Memory.forget)
    form = scoped_verb(Memory.form)
