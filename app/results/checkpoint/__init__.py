"""Checkpoints: whole or absent, resumable on the same ranks bit for bit and on any other number of ranks.

checkpoints/step-N/ holds rows-R.h5 of every rank (shard.py), model.h5 (model_file.py), and manifest.json with checksums
and the position (manifest.py). It is written as a hidden folder that is renamed when everything, the manifest last, is
on disk (save.py); which of a run's folders to go on from is folders.py's business. Arrays in, arrays out: these files
know nothing of trainers, and app/training/restore.py puts the arrays in place.
"""
