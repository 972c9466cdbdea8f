"""GCT's training step in PyTorch: the peer of `cargo xtask bench train`.

`padded` is what most people write: every encounter of a batch padded to its longest. `expert` sorts encounters into batches of
like length, keeps one row per real node for everything but attention, and uses the fused Adam; with `--compile` it also goes
through `torch.compile`, which needs a C++ compiler.

    python reference/train_pytorch.py synthetic prior.parquet --task graph_reconstruction --style padded
"""

import argparse
import json
import time

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, BLOCKS, BATCH = 128, 3, 32


def load(folder, prior_file, count, label="d1_m1"):
    """Ids, P, true adjacency and a label of the first encounters, whose they are and when they began."""
    vocabulary = pq.read_table(f"{folder}/vocabulary.parquet", columns=["kind"]).column("kind").to_pylist()
    sizes = [vocabulary.count(kind) for kind in ("diagnosis", "treatment", "lab")]
    first = {"diagnosis": 1, "treatment": 1 + sizes[0], "lab": 1 + sizes[0] + sizes[1]}
    table = pq.read_table(prior_file)
    columns = [table.column(name).to_pylist() for name in ("given_kind", "given_id", "kind", "id", "probability")]
    prior = {(first[gk] + gi, first[k] + i): p for gk, gi, k, i, p in zip(*columns)}
    examples = []
    for row in pq.read_table(f"{folder}/encounters").slice(0, count).to_pylist():
        ids, kinds = [0], [0]
        for depth, kind in enumerate(("diagnosis", "treatment", "lab"), start=1):
            ids += [first[kind] + code for code in row[kind]]
            kinds += [depth] * len(row[kind])
        n, kinds, place = len(ids), np.array(kinds), {code: node for node, code in enumerate(ids)}
        p, adjacency = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
        for i in range(n):
            for j in range(n):
                if i == j or {kinds[i], kinds[j]} == {0, 1}:
                    p[i, j] = 0.5
                elif abs(kinds[i] - kinds[j]) == 1:
                    p[i, j] = prior.get((ids[i], ids[j]), 0.0)
        adjacency[0, kinds == 1] = adjacency[kinds == 1, 0] = 1.0
        for cause, effect in (("diagnosis", "treatment"), ("treatment", "lab")):
            for edge in row[f"{cause}_{effect}"]:
                i, j = place[first[cause] + edge[cause]], place[first[effect] + edge[effect]]
                adjacency[i, j] = adjacency[j, i] = 1.0
        examples.append({
            "ids": torch.tensor(ids),
            "kinds": torch.tensor(kinds),
            "prior": torch.tensor(p / p.sum(1, keepdims=True)),
            "adjacency": torch.tensor(adjacency),
            "label": float(row[label]),
            "subject": row["subject_id"],
            "start": row["start"],
        })
    return examples, sum(sizes) + 2


def collate(batch):
    """Everything padded to the longest."""
    n = max(len(e["ids"]) for e in batch)
    square = torch.zeros(2, len(batch), n, n)
    ids, kinds = torch.zeros(len(batch), n, dtype=torch.long), torch.full((len(batch), n), -9)
    for b, e in enumerate(batch):
        k = len(e["ids"])
        ids[b, :k], kinds[b, :k] = e["ids"], e["kinds"]
        square[0, b, :k, :k], square[1, b, :k, :k] = e["prior"], e["adjacency"]
    real = kinds >= 0
    apart = (kinds[:, :, None] - kinds[:, None, :]).abs()
    same = torch.eye(n, dtype=torch.bool)
    allowed = (((apart == 1) & real[:, :, None] & real[:, None, :]) | same)
    pairs = real[:, :, None] & real[:, None, :] & ~same
    return {
        "ids": ids,
        "real": real,
        "mask": torch.zeros(len(batch), n, n).masked_fill(~allowed, -1e9),
        "pairs": pairs,
        "prior": square[0],
        "adjacency": square[1],
        "label": torch.tensor([e["label"] for e in batch]),
        "rows": real.flatten().nonzero().squeeze(1),
    }


class Block(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.first = first
        self.projection = nn.Linear(WIDTH, WIDTH if first else 3 * WIDTH, bias=False)
        self.hidden, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, eps=1e-12) for _ in range(2))
        self.dropouts = nn.ModuleList([nn.Dropout(0.3), nn.Dropout(0.1)])

    def attention(self, query, key, batch):
        return torch.softmax(query @ key.transpose(1, 2) / WIDTH**0.5 + batch["mask"], -1)

    def mlp(self, x, mixed):
        x = self.norms[0](x + mixed)
        return self.norms[1](x + self.dropouts[1](self.out(self.dropouts[0](F.relu(self.hidden(x))))))


class Gct(nn.Module):
    def __init__(self, rows, packed):
        super().__init__()
        self.packed = packed
        self.embedding = nn.Embedding(rows, WIDTH)
        self.blocks = nn.ModuleList(Block(k == 0) for k in range(BLOCKS))
        self.label = nn.Linear(WIDTH, 1)
        self.scale, self.bias = nn.Parameter(torch.tensor(WIDTH**-0.5)), nn.Parameter(torch.tensor(-3.0))

    def encode(self, batch):
        """The vectors of all nodes of padded encounters, and in training the divergence of their attention."""
        shape = (*batch["ids"].shape, WIDTH)
        rows = batch["rows"]

        def spread(x):
            """Rows of real nodes to padded encounters, for attention."""
            if not self.packed:
                return x
            return torch.zeros(shape[0] * shape[1], x.shape[-1]).index_copy(0, rows, x).view(*shape[:2], -1)

        def gather(x):
            return x.reshape(shape[0] * shape[1], -1)[rows] if self.packed else x

        ids = batch["ids"].flatten()[rows] if self.packed else batch["ids"]
        x, before, kl = self.embedding(ids), batch["prior"], 0.0
        for block in self.blocks:
            projected = spread(block.projection(x))
            if block.first:
                attention, value = batch["prior"], projected
            else:
                query, key, value = projected.split(WIDTH, -1)
                attention = block.attention(query, key, batch)
            if self.training and not block.first:
                logs = torch.log(before + 1e-12) - torch.log(attention + 1e-12)
                kl = kl + ((before * logs).sum(-1) * batch["real"]).sum() / batch["real"].sum()
            x, before = block.mlp(x, gather(attention @ value)), attention
        return spread(x), kl

    def forward(self, batch, task):
        x, kl = self.encode(batch)
        if task == "graph_reconstruction":
            logits = self.scale * (x @ x.transpose(1, 2)) + self.bias
            losses = F.binary_cross_entropy_with_logits(logits, batch["adjacency"], reduction="none")
            loss = (losses * batch["pairs"]).sum() / batch["pairs"].sum()
        else:
            loss = F.binary_cross_entropy_with_logits(self.label(x[:, 0]).squeeze(1), batch["label"])
        return loss + 0.02 * kl / (BLOCKS - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("prior")
    parser.add_argument("--task", choices=["graph_reconstruction", "visit_label"], required=True)
    parser.add_argument("--style", choices=["padded", "expert"], required=True)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--encounters", type=int, default=1600)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    examples, rows = load(args.folder, args.prior, args.encounters)
    if args.style == "expert":
        examples.sort(key=lambda e: len(e["ids"]))
    batches = [collate(examples[i : i + BATCH]) for i in range(0, len(examples), BATCH)]
    model = Gct(rows, packed=args.style == "expert")
    if args.compile:
        model.forward = torch.compile(model.forward, dynamic=True)
    adam = torch.optim.Adam(model.parameters(), lr=5e-4, fused=args.style == "expert")

    def train():
        model.train()
        for batch in batches:
            adam.zero_grad()
            loss = model(batch, args.task)
            loss.backward()
            adam.step()

    def evaluate():
        model.eval()
        with torch.inference_mode():
            for batch in batches:
                model(batch, args.task)

    def rate(run):
        run()
        times = []
        for _ in range(5):
            start = time.time()
            run()
            times.append(time.time() - start)
        return len(examples) / min(times)

    print(json.dumps({"train": rate(train), "evaluate": rate(evaluate)}))


if __name__ == "__main__":
    main()
