"""The encoder while it is trained: BERT, the mean of its token states, unit length."""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch.nn import functional
from transformers import BertConfig, BertModel

LONGEST = 256
SHAPE = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
    "layer_norm_eps": 1e-12,
}


class Encoder(torch.nn.Module):
    def __init__(self, weights: dict, tokenizer: Path, dropout: float = 0.1, layers: int = 6) -> None:
        super().__init__()
        config = BertConfig(
            **SHAPE | {"num_hidden_layers": layers},
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            attn_implementation="sdpa",
        )
        self.bert = BertModel(config, add_pooling_layer=False)
        # In half precision, which is how the start is carried about: training begins at the same numbers everywhere.
        state = {name: value.half().float() for name, value in weights.items() if "position_ids" not in name}
        missing = self.bert.load_state_dict(state, strict=False).missing_keys
        assert not [name for name in missing if "position_ids" not in name], missing
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LONGEST)
        self._known: dict[str, list[int]] = {}

    def tokens(self, text: str) -> list[int]:
        if text not in self._known:
            self._known[text] = self._tokenizer.encode(text).ids
        return self._known[text]

    def forward(self, texts: Sequence[str], budget: int = 16384) -> torch.Tensor:
        """Unit vectors of texts, in groups of like length so that little is padding."""
        ids = [self.tokens(text) for text in texts]
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        parts, start = [], 0
        while start < len(order):
            size = 1
            while start + size < len(order) and (size + 1) * len(ids[order[start + size]]) <= budget:
                size += 1
            parts.append(self._mean([ids[row] for row in order[start : start + size]]))
            start += size
        place = torch.empty(len(order), dtype=torch.long)
        place[torch.tensor(order)] = torch.arange(len(order))
        return functional.normalize(torch.cat(parts)[place.to(parts[0].device)].float(), dim=-1)

    def _mean(self, ids: list[list[int]]) -> torch.Tensor:
        longest = max(map(len, ids))
        device = self.bert.embeddings.word_embeddings.weight.device
        padded = torch.tensor([each + [0] * (longest - len(each)) for each in ids], device=device)
        mask = torch.tensor([[1] * len(each) + [0] * (longest - len(each)) for each in ids], device=device)
        states = self.bert(input_ids=padded, attention_mask=mask).last_hidden_state
        return (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)

    def state(self) -> dict[str, torch.Tensor]:
        return {name: value.detach().cpu().clone() for name, value in self.bert.state_dict().items()}


def start(folder: Path) -> dict[str, torch.Tensor]:
    """The weights to begin with, those of all-MiniLM-L6-v2."""
    return load_file(folder / "model.safetensors")
