"""The learnable rows: where they live, where else they may be read, and how their gradients come home.

Three rooms: copies/, gradients/ and rows/, each of which may import those after it. Here, above them, stand the table
that puts them together (table.py) and the value that says which techniques are on (techniques.py), which may import all
three and runtime/. Nothing in embedding/ reads the config, a graph or a model, or writes a file.
"""
