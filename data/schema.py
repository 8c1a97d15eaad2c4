"""The names and versions of everything in our HDF5 files, spelled here and nowhere else.

Every file carries three attributes at its root: FORMAT (what kind of file it is), FORMAT_VERSION, and
PROGRAM. `hdf5.open_file` refuses a file whose first two do not fit.
"""

FORMAT = "format"
FORMAT_VERSION = "format_version"
PROGRAM = "program"

CHECKSUM = "checksum"  # attribute of a dataset of strings: hex digest of them all

GRAPH_FORMAT = "glpilot.graph"
PART_FORMAT = "glpilot.part"
ROWS_FORMAT = "glpilot.checkpoint.rows"
MODEL_FORMAT = "glpilot.checkpoint.model"
EMBEDDINGS_FORMAT = "glpilot.embeddings"
HOTNESS_FORMAT = "glpilot.hotness"
VERSIONS = {
    GRAPH_FORMAT: 1,
    PART_FORMAT: 1,
    ROWS_FORMAT: 1,
    MODEL_FORMAT: 1,
    EMBEDDINGS_FORMAT: 1,
    HOTNESS_FORMAT: 1,
}

# The structure: in-edges in compressed sparse column form.
INDPTR = "indptr"  # int64 [num_nodes + 1]
INDICES = "indices"  # int32 or int64 [num_edges]: the source node of every in-edge

# What is known of nodes; row i belongs to node i of the file.
LABELS = "labels"  # int32 [num_nodes], -1 where unknown; or uint8 [num_nodes, num_classes] for several labels
CLASS_NAMES = "class_names"  # UTF-8 strings [num_classes]
TRAIN_MASK = "train_mask"  # bool [num_nodes]
VAL_MASK = "val_mask"  # bool [num_nodes]
TEST_MASK = "test_mask"  # bool [num_nodes]
FEATURES = "features"  # float32 [num_nodes, num_features], optional
EMBEDDINGS = "embeddings"  # float32 [num_nodes, dim], optional: rows to start the training from
ORIGINAL_IDS = "original_ids"  # int64 or UTF-8 strings [num_nodes]: the ids that the user knows
GRAPH_NIDS = "graph_nids"  # int64 [num_nodes_local], in part files: the node's row in graph.h5

# Attributes of graph and part files.
DIRECTED = "directed"  # bool: edges keep the direction they were given with
GRAPH_HASH = "graph_hash"  # hex digest of structure, labels and masks
IMPORT = "import"  # UTF-8 JSON, optional, graph files only: what `glpilot import` understood of what it read
PART_ID = "part_id"
NUM_PARTS = "num_parts"
START_NID = "start_nid"  # the part owns the nids START_NID … START_NID + num_nodes_local - 1

# Hotness.
ACCESS_RATES = "access_rates"  # float32 [num_nodes]: how often a step of one rank reads each row
NUM_RANKS = "num_ranks"  # attribute

# Checkpoints.
ROWS = "rows"  # float32 [num_rows, dim]
COUNTS = "update_counts"  # int32 [num_rows]
STATE = "optimizer_state"  # float32 [num_rows, width that depends on the optimizer]
BUFFER = "buffer"  # group: copies of other hosts' rows, see StalenessBuffer.state
WINDOW = "window"  # group: gradients that wait to be sent, see GradientWindow.state
PREFETCHED = "prefetched"  # group: rows read for the next step
ROW_LR = "row_lr"  # attribute: learning rate of the last step
TECHNIQUES = "techniques"  # attribute: hex digest of what decides where copies and gradients wait
NUM_STEPS = "num_steps"  # attribute of COUNTED
COUNTED = "counted_accesses"  # int32 [num_nodes]: of the steps since the hot rows were chosen
PARAMETERS = "parameters"  # group: one dataset for each of the model's tensors
OPTIMIZER = "optimizer"  # group: one group a parameter, by its number
OUTPUTS = "outputs"  # float32 [num_nodes, num_classes]: the GNN's logits, in exported files
