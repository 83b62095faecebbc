"""A plugin of pytest: hides 10xgraph, as if only 10xscale-agentflow were installed."""

import sys

sys.modules["tenxgraph"] = None  # type: ignore[assignment]
