"""Long texts, shortened."""


def clip(text: str, max_characters: int, head: float = 0.25) -> str:
    """Cut out the middle of a text, and say how many characters are left out. The end, where errors stand, is longer.

    >>> clip("a" * 10 + "b" * 100, 40)
    'aaaaaaaaaa\\n[... 70 characters left out ...]\\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    left_out = len(text) - max_characters
    if left_out <= 0:
        return text
    first = int(max_characters * head)
    return f"{text[:first]}\n[... {left_out:,} characters left out ...]\n{text[first + left_out :]}"


def last_lines(text: str, count: int) -> list[str]:
    """Return the last lines that are not blank.

    >>> last_lines("one\\n\\n two \\nthree\\n", 2)
    ['two', 'three']
    """
    return [line.strip() for line in text.splitlines() if line.strip()][-count:]
