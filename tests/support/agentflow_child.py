"""A process that stores under one memory key, over and over, and says which id that had."""

from __future__ import annotations

import json
import sys

import eunoe
from eunoe.hosts.agentflow import EunoeStore

path, name = sys.argv[1:]
with eunoe.open(path, embedder="none", form=False) as memory:
    store = EunoeStore(memory)
    print("ready", flush=True)
    sys.stdin.readline()
    config = {"user_id": "anna"}
    ids = {store.store(config, f"{name} {n}", metadata={"memory_key": "k"}, memory_id=f"{name}{n}") for n in range(10)}
    (id,) = ids
    print(json.dumps(id))
