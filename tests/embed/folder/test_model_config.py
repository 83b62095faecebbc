"""What the config files of a folder say."""

from pathlib import Path

import pytest
from tests.embed.folder.models import modules, write_json

from eunoe.embed.folder import read_config

NO_PROMPTS = {"prompts": {"query": "", "document": ""}, "default_prompt_name": None}
"""What sentence-transformers writes for a model that has none."""


def prompts(folder: Path, stated: dict[str, object] | None = None, name: str = "") -> tuple[str, str]:
    if stated is not None:
        write_json(folder / "config_sentence_transformers.json", stated)
    write_json(folder / "config.json", {"_name_or_path": name})
    config = read_config(folder)
    return config.question_prompt, config.text_prompt


class TestPrompts:
    @pytest.mark.parametrize(
        ("stated", "expected"),
        [
            ({"prompts": {"query": "q: ", "document": "d: "}}, ("q: ", "d: ")),
            ({"prompts": {"query": "q: ", "passage": "p: "}}, ("q: ", "p: ")),
            ({"prompts": {"retrieval.query": "q: ", "retrieval.passage": "p: "}}, ("q: ", "p: ")),
            ({"prompts": {"s2p_query": "q: ", "s2s_query": "s: "}}, ("q: ", "")),
            ({"prompts": {"query": "q: ", "other": "o: "}, "default_prompt_name": "other"}, ("q: ", "o: ")),
            ({"prompts": {"clustering": "c: "}}, ("", "")),
            ({"prompts": None}, ("", "")),
            (NO_PROMPTS, ("", "")),
            ({}, ("", "")),
        ],
    )
    def test_those_that_the_folder_names(
        self, stated: dict[str, object], expected: tuple[str, str], tmp_path: Path
    ) -> None:
        assert prompts(tmp_path / "model", stated) == expected

    @pytest.mark.parametrize("stated", [None, {}, NO_PROMPTS])
    @pytest.mark.parametrize("name", ["multilingual-e5-small", "e5-small-v2", "E5_base", "models--intfloat--e5-large"])
    def test_those_of_e5_by_the_name_of_the_folder_or_in_the_config(
        self, name: str, stated: dict[str, object] | None, tmp_path: Path
    ) -> None:
        assert prompts(tmp_path / name, stated) == ("query: ", "passage: ")
        assert prompts(tmp_path / "model", stated, name=f"intfloat/{name}") == ("query: ", "passage: ")

    @pytest.mark.parametrize("name", ["model-5e5", "bge-small", "e5b2f1", "mine5"])
    def test_another_name_has_none(self, name: str, tmp_path: Path) -> None:
        assert prompts(tmp_path / name) == ("", "")

    def test_what_the_folder_of_an_e5_says_goes_first(self, tmp_path: Path) -> None:
        assert prompts(tmp_path / "e5-mine", {"prompts": {"query": "ask: "}}) == ("ask: ", "")

    def test_e5_that_takes_instructions(self, tmp_path: Path) -> None:
        question, text = prompts(tmp_path / "multilingual-e5-large-instruct")
        assert question.startswith("Instruct: ")
        assert question.endswith("\nQuery: ")
        assert text == ""

    def test_the_cache_of_the_hub_names_the_model_two_levels_up(self, tmp_path: Path) -> None:
        folder = tmp_path / "models--intfloat--multilingual-e5-small" / "snapshots" / "614241f622f5"
        assert prompts(folder) == ("query: ", "passage: ")
        (tmp_path / "link").symlink_to(folder, target_is_directory=True)
        assert prompts(tmp_path / "link") == ("query: ", "passage: ")


class TestPooling:
    def test_the_mean_where_nothing_is_said(self, tmp_path: Path) -> None:
        assert read_config(tmp_path).modes == ("mean",)

    def test_it_is_read_from_where_the_modules_say(self, tmp_path: Path) -> None:
        steps = [*modules(), {"type": "sentence_transformers.sentence_transformer.modules.Pooling", "path": "pool"}]
        write_json(tmp_path / "modules.json", steps)
        write_json(tmp_path / "pool" / "config.json", {"pooling_mode": "lasttoken"})
        write_json(tmp_path / "1_Pooling" / "config.json", {"pooling_mode": "max"})
        assert read_config(tmp_path).modes == ("lasttoken",)

    def test_none_of_all_is_the_mean(self, tmp_path: Path) -> None:
        write_json(tmp_path / "1_Pooling" / "config.json", {"pooling_mode_cls_token": False})
        assert read_config(tmp_path).modes == ("mean",)


class TestLength:
    @pytest.mark.parametrize(
        ("configs", "limit"),
        [
            ({}, 512),
            ({"config": {"max_position_embeddings": 8192}}, 8192),
            ({"config": {"max_position_embeddings": 514, "model_type": "xlm-roberta", "pad_token_id": 1}}, 512),
            ({"config": {"max_position_embeddings": 512}, "sentence_bert_config": {"max_seq_length": 256}}, 256),
            ({"config": {"max_position_embeddings": 512}, "sentence_bert_config": {"max_seq_length": None}}, 512),
            ({"sentence_bert_config": {"max_seq_length": 512}, "tokenizer_config": {"model_max_length": 128}}, 512),
            ({"tokenizer_config": {"model_max_length": 1000000000000000019884624838656}}, 512),
        ],
    )
    def test_the_longest_input(self, configs: dict[str, object], limit: int, tmp_path: Path) -> None:
        for name, value in configs.items():
            write_json(tmp_path / f"{name}.json", value)
        assert read_config(tmp_path).max_tokens == limit
