"""The learnable rows: where they live, where else they may be read, and how their gradients come home.

Three rooms, each of which may import those after it: copies/, gradients/, rows/. Here, above them, stand the table that
puts them together (table.py) and the value that says which techniques are on (techniques.py). They may import runtime/ and
data/; they never read the config, a graph or a model, and never write files.
"""
