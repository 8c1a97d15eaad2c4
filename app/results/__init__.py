"""What a run leaves in its folder: config, metrics, checkpoints, hotness, summary and its table, exported rows.

It may import the values that it keeps from copies/ and rows/ of embedding/, and graph/, runtime/, config/ and data/. It
takes and gives plain values and arrays: it never calls a trainer, a model or a sampler, and sends no row to another
rank. Only here is a run's folder read and written.
"""
