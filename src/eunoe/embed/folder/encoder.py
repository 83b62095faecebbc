"""An encoder out of a folder."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from eunoe.embed.contract import Vectors
from eunoe.embed.encoder import BATCH_TOKENS, Transformer, read_tokenizer
from eunoe.embed.folder.files import find_files, find_weights, unreadable
from eunoe.embed.folder.graph import Graph
from eunoe.embed.folder.identity import model_name, read_cache, read_content, write_cache
from eunoe.embed.folder.model_config import read_config
from eunoe.embed.word_vectors import is_word, similar_words
from eunoe.errors import EmbedderError
from eunoe.text.normalize import replace_surrogates

_MIN_CHARACTERS: Final = 1 << 15
_CHARACTERS_PER_TOKEN: Final = 16
"""Far more than a token has; spares the tokenizer the rest of a very long text."""
_WORD: Final = 5
"""A token that no tokenizer pads with: some models count their positions by the others alone."""
_CHECK_TOKENS: Final = 512
"""A longer text takes seconds and gigabytes with some models that could read it."""


class FolderEncoder(Transformer):
    """Sentence vectors of a model that lies in a folder. It is loaded at first use, and once when it is new here."""

    is_slow = True
    _load_hint = "fetch or export its files anew"
    similar_words = staticmethod(similar_words)
    is_word = staticmethod(is_word)

    def __init__(self, path: str, threads: int | None = None) -> None:
        super().__init__(threads)
        self._files = find_files(path)
        self._config = config = read_config(self._files.folder)
        self._max_tokens = config.max_tokens
        files = [self._files.graph, self._files.tokenizer, *(file for step in config.steps for file in step.files)]
        content = read_cache(files)
        self._content = content or read_content([*files, *find_weights(self._files.graph)])
        self.name = model_name(config.label, self._content.digest, config.text)
        if content is None:
            self._check()
            write_cache(self._files.graph, self._content)

    def _check(self) -> None:
        """Run it once: what is wrong with a model that is new here is said at once, not when a text comes."""
        graph: Graph = self._load().session
        # Of the graph: another encoder of the same model may have opened it.
        length = min(self._max_tokens, graph.fixed_tokens or _CHECK_TOKENS, _CHECK_TOKENS)
        try:
            graph.vectors(np.full((1, length), _WORD, np.int64))
        except EmbedderError as error:
            cure = f"put a lower max_seq_length into {self._files.folder / 'sentence_bert_config.json'}"
            raise EmbedderError(f"{error}; it cannot take {length} tokens: {cure}") from error

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, self._config.text_prompt)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self._embed([text], self._config.question_prompt)[0]
        return row

    def _embed(self, texts: Sequence[str], prompt: str) -> Vectors:
        model = self._load()
        graph: Graph = model.session
        before, after = self._prompt_tokens(prompt)
        ids = [self._text_ids(prompt, text, before + after) for text in texts]
        rows = np.zeros((len(texts), graph.dimensions), np.float32)
        infer = partial(graph.vectors, skip=before if prompt and self._config.skips_prompt else 0)
        return self._run_batches(ids, rows, infer, 1 if graph.is_alone else BATCH_TOKENS)

    def _prompt_tokens(self, prompt: str) -> tuple[int, int]:
        """How many tokens every text has before and after its own."""
        marks = self._load().tokenizer.encode(prompt.rstrip()).special_tokens_mask
        after = next((place for place, mark in enumerate(reversed(marks)) if not mark), len(marks))
        return len(marks) - after, after

    def _text_ids(self, prompt: str, text: str, common: int) -> list[int]:
        """The token ids of a text behind a prompt; none if the tokenizer knows less than half of it."""
        model = self._load()
        readable = replace_surrogates(text.strip()[: max(_MIN_CHARACTERS, _CHARACTERS_PER_TOKEN * self._max_tokens)])
        readable = readable.lower() if self._config.is_lower_case else readable
        ids: list[int] = model.tokenizer.encode(prompt + readable).ids if readable else []
        return ids if 2 * ids.count(model.unknown) < len(ids) - common else []

    def _open(self) -> tuple[Any, Any]:
        if not self._content.is_current:
            raise EmbedderError(f"the model in {self._files.folder} has changed since it was opened: open it again")
        tokenizer = _open_tokenizer(self._files.tokenizer)
        graph = Graph(self._files.graph, self._config, tokenizer.get_vocab_size())
        self._max_tokens = min(self._max_tokens, graph.fixed_tokens or self._max_tokens)
        return tokenizer, graph


def _open_tokenizer(path: Path) -> Any:
    try:
        return read_tokenizer(path)
    except Exception as error:
        raise unreadable(path, error) from error
