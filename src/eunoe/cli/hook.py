"""`eunoe hook`: what an assistant's hook does, for trying it out."""

from typing import Annotated

import typer

from eunoe.cli.command import Call, MisuseError, command
from eunoe.cli.options import argument

EventArgument = Annotated[str, argument("EVENT", "start, prompt, answer, compaction or end.")]
AssistantOption = Annotated[str, typer.Option("--assistant", metavar="NAME", help="Whose hook it is.")]
HookScopeOption = Annotated[
    str, typer.Option("--scope", metavar="SCOPE", help="Whose memory; else EUNOE_SCOPE, or you.")
]


@command("eunoe hook start --assistant claude-code < event.json", without=("embedder", "json"))
def hook(call: Call, event: EventArgument, assistant: AssistantOption, scope: HookScopeOption = "") -> None:
    """Do what an assistant's hook does, with the JSON that it gives on standard input.

    It always leaves with 0. Installed hooks do the same within 300 ms, since they do not load the command line.
    """
    from eunoe.assistants import hook as hook_module
    from eunoe.assistants.catalog import find_assistant
    from eunoe.assistants.installation import make_options

    if event not in hook_module.EVENTS:
        raise MisuseError(f"no event {event!r}: there are {', '.join(hook_module.EVENTS)}")
    options = make_options(call.options.store, scope=scope)
    name = find_assistant(assistant).name
    hook_module.main([event, "--assistant", name, "--store", str(options.store), "--scope", options.scope])
