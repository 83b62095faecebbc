"""The node that asks a language model."""

from typing import Final

from eunoe.apps.discussion.workflow.chat import conversation, plain_text, system_text, transcript
from eunoe.apps.discussion.workflow.node import MODEL_KEYS, node
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.values import COUNT_KEYS
from eunoe.errors import WorkflowError

_LAST_MESSAGES_KEY: Final = "lastMessagesToSendInsteadOfPrompt"
_LAST_MESSAGES: Final = 5


@node("Standard", keys=(*MODEL_KEYS, *COUNT_KEYS, _LAST_MESSAGES_KEY), needs_model=True, takes_in=True)
def standard(call: NodeCall) -> str:
    """Ask a language model with the prompt, or without one with the last messages of the chat."""
    prompt = call.render("prompt")
    system = call.render("systemPrompt")
    if prompt.strip():
        return call.ask(prompt, system)
    return call.ask(_last_messages(call), system or system_text(call.messages))


def _last_messages(call: NodeCall) -> str:
    count = call.number(_LAST_MESSAGES_KEY, _LAST_MESSAGES)
    messages = conversation(call.messages)[-count:] if count > 0 else []
    if not messages:
        raise WorkflowError("it has no prompt, and there are no messages to send in its place")
    return plain_text(messages) if len(messages) == 1 else transcript(messages)
