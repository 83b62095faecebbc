"""Processes that write, recall and forget beside each other: none takes the work of another for a new file."""

import subprocess
import sys

import eunoe

PROCESSES = 4
ROUNDS = 4
WRITES = 17
WORKER = f"""
import sys
import eunoe

path, who = sys.argv[1:]
for turn in range({ROUNDS}):
    with eunoe.open(path, embedder="none", form=False) as memory:
        for number in range({WRITES}):
            memory.observe(f"user=u{{who}}", f"text {{turn}} {{number}} of {{who}} " * 20)
            receipt = memory.remember("user=all", f"fact {{turn}} {{number}} of {{who}}")
            memory.recall("user=all", "fact")
            if number % 8 == 0:
                memory.forget("user=all", receipt.id)
"""


def test_processes_that_checkpoint_at_once_are_not_taken_for_a_new_file(tmp_path):
    path = tmp_path / "memory.db"
    commands = [[sys.executable, "-c", WORKER, str(path), str(number)] for number in range(PROCESSES)]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    assert [worker.communicate()[1] for worker in workers] == [""] * PROCESSES
    with eunoe.open(path, embedder="none", form=False) as memory:
        assert memory.status().messages == PROCESSES * ROUNDS * WRITES
        assert memory.admin.check()
