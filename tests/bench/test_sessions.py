"""The sessions bench: all of a user is found, however many sessions it is spread over."""

from bench import sessions as sessions_bench


def test_a_run_compares_numbers_of_sessions() -> None:
    said: list[str] = []
    result = sessions_bench.measure([1, 30], 1000, said.append)
    assert result["times_one"][1] == {"first": 1.0, "later": 1.0}
    assert all(result["sessions"][count][name] > 0 for count in (1, 30) for name in ("first", "later"))
    assert "1,000 memories" in str(sessions_bench.rows(result)[0])
    assert said[-1] == "asking 30 sessions, round 5 of 5"
