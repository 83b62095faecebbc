"""`eunoe doctor`: says what is wrong with the store, the server, the models and the assistants, and what to do."""

from collections import Counter

from eunoe.cli.command import Call, Reply, command
from eunoe.cli.display.output import quantity
from eunoe.cli.display.views import Grid


@command("eunoe doctor", without=("embedder",))
def doctor(call: Call) -> Reply:
    """Say what is wrong with any of it, and what to do. Nothing is changed.

    It leaves with 1 if there is a problem. Warnings are no problems.
    """
    from eunoe.assistants.assistant_checks import check_assistants
    from eunoe.assistants.server_checks import check_mcp, check_server
    from eunoe.assistants.store_checks import check_llm, check_store
    from eunoe.assistants.store_file import store_file

    store = store_file(call.options.store)
    findings = [*check_store(store), *check_llm(), *check_server(store), *check_mcp(), *check_assistants(store)]
    rows = [(each.state, each.subject, each.text, each.advice) for each in findings]
    counts = Counter(each.state for each in findings)
    summary = f"{quantity(counts['problem'], 'problem')}, {quantity(counts['warning'], 'warning')}"
    return Reply(
        [each._asdict() for each in findings],
        Grid(("state", "what", "how it stands", "what to do"), rows),
        notes=[summary],
        code=1 if counts["problem"] else 0,
    )
