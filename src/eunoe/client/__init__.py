"""A memory behind an address: the verbs of `Memory` over HTTP."""
