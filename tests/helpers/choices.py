"""What the program offers, so that every test over all of it takes in what is added."""

from __future__ import annotations

from typing import Any, get_args

from glpilot.app.config.keys import list_keys
from glpilot.app.embedding.rows.optimizers.sparse_optimizer import RULES

FIELDS: dict[str, Any] = dict(list_keys())
OPTIMIZERS = list(RULES)
MODELS = list(get_args(FIELDS["model.name"].annotation))
