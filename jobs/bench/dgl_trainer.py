"""DGL's own distributed trainer with a learnable DistEmbedding, for comparison. Started by compare.py.

GraphSAGE (mean, two layers), SparseAdam or SparseAdagrad on the embedding, Adam on the model, Gloo between trainers.
Prints a line per epoch (seconds and stages), and the test accuracy of this rank's share on sampled neighbourhoods.

Two facts cost time to find out: the sparse optimizer needs its own zero_grad() each step, or it pushes every earlier
batch again; the initialiser must be defined before initialize(), since the server unpickles it.
"""

import argparse
import time

import dgl
import dgl.nn.pytorch as dglnn
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--ip_config", required=True)
parser.add_argument("--part_config", required=True)
parser.add_argument("--classes", type=int, default=16)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch", type=int, default=1000, help="seeds per trainer and step")
parser.add_argument("--dim", type=int, default=64)
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--fanouts", default="10,5", help="input layer first")
parser.add_argument("--optimizer", choices=["adam", "adagrad"], default="adam", help="of the rows")
arguments = parser.parse_args()
torch.set_num_threads(1)


def init(shape, dtype):
    t = torch.zeros(shape, dtype=dtype)
    nn.init.uniform_(t, -0.05, 0.05)
    return t


dgl.distributed.initialize(arguments.ip_config)
dist.init_process_group("gloo")
g = dgl.distributed.DistGraph("bench", part_config=arguments.part_config)
book = g.get_partition_book()
train = dgl.distributed.node_split(g.ndata["train_mask"], book, force_even=True)
test = dgl.distributed.node_split(g.ndata["test_mask"], book, force_even=True)[:20000]
labels = g.ndata["labels"]
rank = dist.get_rank()


class SAGE(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            [
                dglnn.SAGEConv(arguments.dim, arguments.hidden, "mean"),
                dglnn.SAGEConv(arguments.hidden, arguments.classes, "mean"),
            ]
        )

    def forward(self, blocks, x):
        x = F.relu(self.layers[0](blocks[0], x))
        return self.layers[1](blocks[1], x)


emb = dgl.distributed.DistEmbedding(g.num_nodes(), arguments.dim, name="emb", init_func=init)
model = nn.parallel.DistributedDataParallel(SAGE())
opt = torch.optim.Adam(model.parameters(), lr=0.003)
sparse_optimizers = {"adam": dgl.distributed.optim.SparseAdam, "adagrad": dgl.distributed.optim.SparseAdagrad}
emb_opt = sparse_optimizers[arguments.optimizer]([emb], lr=0.01)
sampler = dgl.dataloading.NeighborSampler([int(x) for x in arguments.fanouts.split(",")])
loader = dgl.dataloading.DistNodeDataLoader(g, train, sampler, batch_size=arguments.batch, shuffle=True)


def lap(name):
    """Add the seconds since the last lap to a stage."""
    global t
    now = time.time()
    stage[name] += now - t
    t = now


for epoch in range(arguments.epochs):
    stage = dict(sample=0.0, load=0.0, forward=0.0, backward=0.0, update=0.0)
    start = t = time.time()
    total, steps, rows = 0.0, 0, 0
    with model.join():
        for inputs, seeds, blocks in loader:
            y = labels[seeds].long()
            lap("sample")
            x = emb(inputs)
            lap("load")
            loss = F.cross_entropy(model(blocks, x), y)
            lap("forward")
            opt.zero_grad()
            emb_opt.zero_grad()
            loss.backward()
            lap("backward")
            emb_opt.step()
            opt.step()
            lap("update")
            total += loss.item()
            steps += 1
            rows += len(inputs)
    if rank == 0:
        stages = {k: round(v, 2) for k, v in stage.items()}
        print(
            f"epoch {epoch} {time.time() - start:.2f}s steps {steps} rows/step {rows // steps} "
            f"loss {total / steps:.4f} {stages}",
            flush=True,
        )

model.eval()
correct = seen = 0
with torch.no_grad():
    for inputs, seeds, blocks in dgl.dataloading.DistNodeDataLoader(
        g, test, sampler, batch_size=arguments.batch, shuffle=False
    ):
        y = labels[seeds].long()
        correct += (model.module(blocks, emb(inputs)).argmax(1) == y).sum().item()
        seen += len(y)
print(f"rank {rank} test accuracy {correct / seen:.4f}", flush=True)
dist.barrier()
