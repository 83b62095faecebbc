"""What an entity graph holds, for comparing two of them."""

from eunoe.index.graph import EntityGraph


def graph_contents(graph: EntityGraph) -> dict[int, tuple[dict[str, float], list[tuple[list[str], list[int]]]]]:
    """Each passage's entities with weights, and each of its sentences' entities and terms."""
    contents = {}
    for seq, row in graph._rows.items():
        spans = graph._spans(row)
        mentions, words = spans["mentions"], spans["words"]
        sentences = []
        for number in range(spans["sentences"].start, spans["sentences"].stop):
            entities = graph.mentions["entity"][mentions][graph.mentions["sentence"][mentions] == number]
            terms = graph.words["term"][words][graph.words["sentence"][words] == number]
            sentences.append(([graph.keys[entity] for entity in entities.tolist()], terms.tolist()))
        contents[seq] = (graph.entities_of(seq), sentences)
    return contents
