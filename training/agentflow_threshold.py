"""What Agentflow's memory manager recalls at several thresholds, over the conversations in the package."""

import asyncio
from statistics import mean

from bench.conversations import GoldConversation, load_conversations

import eunoe
from eunoe.hosts.agentflow import EunoeStore, MemoryManager

THRESHOLDS = (0.0, 0.3, 0.5, 0.7)


async def store_turns(store: EunoeStore, conversation: GoldConversation) -> dict[str, str]:
    """Store each turn as a memory, and give the ids of the turns by those of the memories."""
    texts = [f"{turn.speaker}: {turn.text}" for turn in conversation.turns]
    ids = await store.abatch_store({"user_id": conversation.id}, texts)
    return {memory_id: turn.id for memory_id, turn in zip(ids, conversation.turns, strict=True)}


async def measure(threshold: float, store: EunoeStore, turn_ids: dict[str, str]) -> str:
    """Ask each question of its own conversation, and of the next one, which cannot answer it."""
    manager, conversations = MemoryManager(store, relevance_threshold=threshold), load_conversations()
    shares, counts, foreign = [], [], []
    for conversation, other in zip(conversations, [*conversations[1:], conversations[0]], strict=True):
        for question in conversation.questions:
            memories = await manager.retrieve_context({"user_id": conversation.id}, question.text)
            found = {turn_ids[memory.id] for memory in memories} & {*question.gold}
            shares.append(len(found) / len({*question.gold}))
            counts.append(len(memories))
            foreign.append(bool(await manager.retrieve_context({"user_id": other.id}, question.text)))
    right = mean(share > 0 for share in shares)
    figures = f"recall {mean(shares):.1%}, right {right:.1%}, shown {mean(counts):.2f}, foreign {mean(foreign):.1%}"
    return f"{threshold}: {figures}"


async def main() -> None:
    with eunoe.open(":memory:") as memory:
        store, turn_ids = EunoeStore(memory), dict[str, str]()
        for conversation in load_conversations():
            turn_ids |= await store_turns(store, conversation)
        memory.flush()
        for threshold in THRESHOLDS:
            print(await measure(threshold, store, turn_ids))


if __name__ == "__main__":
    asyncio.run(main())
