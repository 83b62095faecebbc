"""Texts inside XML tags: contexts and prompts quote what people wrote."""

import re
from html import escape
from typing import Final

_NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape_xml(text: str) -> str:
    """Return a text as it can stand between tags: nothing in it opens or closes one.

    >>> escape_xml("a < b & c")
    'a &lt; b &amp; c'
    """
    return escape(_NOT_IN_XML.sub("\ufffd", text), quote=False)


def quote_xml(text: str) -> str:
    """Return a text on one line, as the value of an attribute.

    >>> print(quote_xml('the "old" one'))
    "the &quot;old&quot; one"
    """
    return '"{}"'.format(" ".join(escape_xml(text).split()).replace('"', "&quot;"))
