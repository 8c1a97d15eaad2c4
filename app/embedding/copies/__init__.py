"""Where a row may be read besides its owner: the device cache and the staleness-bounded buffer, with what decides about
them (hotness, the traffic model), and the reader that puts a batch together.

It may import gradients/ (to sum those of cached rows) and rows/. It never sends a gradient to another rank.
"""
