"""A digest of a text: by it an index knows, in every process, that it has read the text before."""

from hashlib import blake2b


def text_digest(text: str) -> int:
    """A number of 64 bits, never 0."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True) or 1
