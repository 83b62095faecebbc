"""The log of a discussion: messages word for word, and how a request is compared with them."""
