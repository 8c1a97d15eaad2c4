"""Sparse optimizers, which update the rows that have a gradient: a file for each rule, and the table of them."""
