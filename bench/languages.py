"""Does a question in another language find an English turn? The same questions are asked in four languages."""

from dataclasses import replace
from pathlib import Path

from bench import Progress, Result
from bench.conversations import ODD_DATA, GoldConversation, load_conversations, read_json
from bench.metrics import score_views
from bench.recall import measure_recall
from eunoe.cli.display import View
from eunoe.errors import InputError
from eunoe.model.arguments import RecipeName

BUILT_IN = Path(__file__).with_name("languages.json")
"""Questions about the conversations in the package, put into other languages by hand."""
LANGUAGES = {"en": "English", "de": "German", "es": "Spanish", "fr": "French"}

Translations = dict[tuple[str, str], dict[str, str]]
"""By conversation and English question, the question in each language."""


def measure(
    path: str | Path | None = None,
    *,
    recipe: RecipeName | int = "default",
    embedder: str = "auto",
    progress: Progress | None = None,
) -> Result:
    """Measure the questions of one file, or those in the package; percentages from 0 to 100."""
    result = measure_recall(translate_conversations(path), recipe=recipe, embedder=embedder, progress=progress)
    return {
        "by_language": {name: result["by_kind"][name] for name in LANGUAGES.values()},
        "questions": result["questions"] // len(LANGUAGES),
        "embedder": result["embedder"],
        "recipe": result["recipe"],
    }


def translate_conversations(path: str | Path | None = None) -> list[GoldConversation]:
    """The conversations that are asked, with each question in each language; its kind is the language."""
    translations = _load_translations(path or BUILT_IN)
    conversations = [_translate(conversation, translations) for conversation in load_conversations()]
    asked = [conversation for conversation in conversations if conversation.questions]
    count = sum(len(conversation.questions) for conversation in asked) // len(LANGUAGES)
    if not count or count < len(translations):
        raise InputError(f"{count} of {len(translations)} questions are ones of the conversations in the package")
    return asked


def _load_translations(path: str | Path) -> Translations:
    data = read_json(path)
    try:
        return {
            (each["conversation"], each["en"]): {code: each[code] for code in LANGUAGES} for each in data["questions"]
        }
    except ODD_DATA as error:
        raise InputError(f"{path} cannot be asked: it has another shape") from error


def _translate(conversation: GoldConversation, translations: Translations) -> GoldConversation:
    questions = [
        replace(question, id=f"{question.id}-{code}", text=text, kind=LANGUAGES[code])
        for question in conversation.questions
        for code, text in translations.get((conversation.id, question.text), {}).items()
    ]
    return replace(conversation, questions=tuple(questions))


def rows(result: Result) -> list[View]:
    rows = {
        name: {"asked": scores["questions"], "recall@5": scores["recall@5"], "recall@10": scores["recall@10"]}
        for name, scores in result["by_language"].items()
    }
    return score_views(f"English turns, recipe {result['recipe']}, embedder {result['embedder']}", [rows])
