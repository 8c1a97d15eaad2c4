"""The embedding table: where rows live, how they are fetched, and how their gradients come home."""
