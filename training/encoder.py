"""The encoder while it is trained: BERT, the mean of its token states, unit length."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

MAX_TOKENS = 256
HEADS = 12
WIDTH = 384

_TOKENS: dict[tuple[str, str], np.ndarray] = {}
"""Texts that were read before; all models here read with the same tokenizer."""

# Its plans are made anew for each shape, of which there are many here.
torch.backends.cuda.enable_cudnn_sdp(False)


class Block(nn.Module):
    """One layer; its parts are named as in the weights of BERT."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        linear = nn.Linear
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict({name: linear(WIDTH, WIDTH) for name in ("query", "key", "value")}),
                "output": nn.ModuleDict({"dense": linear(WIDTH, WIDTH), "LayerNorm": nn.LayerNorm(WIDTH, 1e-12)}),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": linear(WIDTH, 4 * WIDTH)})
        self.output = nn.ModuleDict({"dense": linear(4 * WIDTH, WIDTH), "LayerNorm": nn.LayerNorm(WIDTH, 1e-12)})
        self.dropout = dropout

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        out = self.attention["output"]
        hidden = out["LayerNorm"](hidden + self._drop(out["dense"](self._attend(hidden, mask))))
        wide = functional.gelu(self.intermediate["dense"](hidden))
        return self.output["LayerNorm"](hidden + self._drop(self.output["dense"](wide)))

    def _attend(self, hidden: Tensor, mask: Tensor) -> Tensor:
        own = self.attention["self"]
        heads = [own[name](hidden).unflatten(-1, (HEADS, -1)).transpose(1, 2) for name in ("query", "key", "value")]
        return functional.scaled_dot_product_attention(*heads, attn_mask=mask).transpose(1, 2).flatten(2)

    def _drop(self, hidden: Tensor) -> Tensor:
        return functional.dropout(hidden, self.dropout, self.training)


class Encoder(nn.Module):
    def __init__(self, weights: dict[str, Tensor], tokenizer: Path, dropout: float = 0.1) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(30522, WIDTH),
                "position_embeddings": nn.Embedding(512, WIDTH),
                "token_type_embeddings": nn.Embedding(2, WIDTH),
                "LayerNorm": nn.LayerNorm(WIDTH, 1e-12),
            }
        )
        layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Block(dropout) for _ in range(layers))})
        self.dropout = dropout
        # In half precision, which is how the start is carried about: training begins at the same numbers everywhere.
        used = {name: value for name, value in weights.items() if name.startswith(("embeddings.", "encoder."))}
        self.load_state_dict({name: value.half().float() for name, value in used.items() if "_ids" not in name})
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def tokens(self, text: str, beside: str = "") -> np.ndarray:
        key = (text, beside)
        if key not in _TOKENS:
            _TOKENS[key] = np.array(self._tokenizer.encode(text, beside or None).ids)
        return _TOKENS[key]

    def forward(self, texts: Sequence[str], budget: int = 65536) -> Tensor:
        """Unit vectors of texts."""
        return functional.normalize(self.pooled([self.tokens(text) for text in texts], budget).float(), dim=-1)

    def pooled(self, ids: Sequence[np.ndarray], budget: int = 65536) -> Tensor:
        """The means of the token states, in groups of like length so that little is padding."""
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        parts, start = [], 0
        while start < len(order):
            size = 1
            while start + size < len(order) and (size + 1) * len(ids[order[start + size]]) <= budget:
                size += 1
            parts.append(self._means([ids[row] for row in order[start : start + size]]))
            start += size
        place = torch.empty(len(order), dtype=torch.long)
        place[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(parts)[place.to(parts[0].device)]

    def _means(self, ids: list[np.ndarray]) -> Tensor:
        longest = -(-max(map(len, ids)) // 8) * 8
        padded, there = np.zeros((len(ids), longest), np.int64), np.zeros((len(ids), longest), np.bool_)
        for row, each in enumerate(ids):
            padded[row, : len(each)] = each
            there[row, : len(each)] = True
        device = self.embeddings["word_embeddings"].weight.device
        mask = torch.from_numpy(there).to(device)
        states = self._states(torch.from_numpy(padded).to(device), mask)
        return (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)

    def _states(self, ids: Tensor, mask: Tensor) -> Tensor:
        parts = self.embeddings
        places = parts["position_embeddings"].weight[: ids.shape[1]]
        hidden = parts["word_embeddings"](ids) + parts["token_type_embeddings"].weight[0] + places
        hidden = functional.dropout(parts["LayerNorm"](hidden), self.dropout, self.training)
        shown = mask[:, None, None, :].expand(-1, -1, ids.shape[1], -1)
        for layer in self.encoder["layer"]:
            hidden = layer(hidden, shown)
        return hidden

    def set_dropout(self, dropout: float) -> None:
        self.dropout = dropout
        for layer in self.encoder["layer"]:
            layer.dropout = dropout

    def freeze(self, layers: int) -> None:
        """Leave the words and so many layers as they are."""
        for part in (self.embeddings, *self.encoder["layer"][:layers]):
            part.requires_grad_(False)

    def state(self) -> dict[str, Tensor]:
        return {name: value.detach().cpu().clone() for name, value in self.state_dict().items()}
