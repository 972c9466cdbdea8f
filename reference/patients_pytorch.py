"""GCT over visits and nn.GRU over patients in PyTorch: the peer of `cargo xtask bench patients`.

The encoder is that of train_pytorch.py, and the rest is `crates/gct/src/model/aggregator.rs`: the vector of a visit, with two
tables of times added, goes through a GRU from the oldest visit to the one asked about. Every visit is asked about once, and the
time from a visit to the question is part of the model, so each question has a sequence of its own; the visits in it are encoded
once, both ways.

`padded` is what most people write: a batch is a tensor of patients by visits by nodes, with as many visits as its largest patient
and as many nodes as its longest visit, and sequences are padded as well. `expert` sorts patients into batches of like length,
encodes no visit that is not there and keeps one row per real node for everything but attention, packs sequences, uses the fused
Adam, and evaluates larger batches if that is faster; with `--compile` the encoder goes through `torch.compile`.

    python reference/patients_pytorch.py visits prior.parquet --style padded
"""

import argparse
import itertools
import json
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_sequence

from train_pytorch import BATCH, BLOCKS, WIDTH, Gct, collate, load

# Visits that a question sees, and buckets of times, as in `crates/gct/src/history.rs`.
VISITS, BUCKETS = 20, 18

NOBODY = {"ids": torch.empty(0, dtype=torch.long), "kinds": torch.empty(0, dtype=torch.long), "label": 0.0}
NOBODY |= {"prior": torch.empty(0, 0), "adjacency": torch.empty(0, 0)}


def bucket(later, earlier):
    """One for times that are not known, one for less than a day, and one for each doubling of the days."""
    return 0 if earlier is None else min(1 + (later - earlier).days.bit_length(), BUCKETS - 1)


def questions(patient, first):
    """For each visit of a patient, the oldest visit first: which visits are seen, and the buckets of their times."""
    for asked in range(len(patient)):
        seen = range(max(0, asked + 1 - VISITS), asked + 1)
        starts = [patient[visit]["start"] for visit in seen]
        since = [bucket(start, before) for start, before in zip(starts, [None, *starts])]
        ago = [bucket(starts[-1], start) for start in starts]
        yield torch.tensor([[first + visit for visit in seen], since, ago]).T


def batches(patients, packed, size):
    """Whole patients with at least so many visits."""
    batch = []
    for patient in patients:
        batch.append(patient)
        if sum(map(len, batch)) >= size:
            yield together(batch, packed)
            batch = []
    if batch:
        yield together(batch, packed)


def together(patients, packed):
    """The visits of some patients, and all questions about them."""
    most = max(map(len, patients))
    rows = patients if packed else [patient + [NOBODY] * (most - len(patient)) for patient in patients]
    firsts = itertools.accumulate(map(len, rows), initial=0)
    steps = [sequence for patient, first in zip(patients, firsts) for sequence in questions(patient, first)]
    lengths = torch.tensor([len(sequence) for sequence in steps])
    steps = pad_sequence(steps, batch_first=True)
    return {
        "visits": collate([visit for row in rows for visit in row]),
        "steps": pack_padded_sequence(steps, lengths, batch_first=True, enforce_sorted=False) if packed else steps,
        "lengths": lengths,
        "asked": steps[torch.arange(len(lengths)), lengths - 1],
        "label": torch.tensor([visit["label"] for patient in patients for visit in patient]),
    }


class Patients(nn.Module):
    def __init__(self, rows, packed):
        super().__init__()
        self.encoder = Gct(rows, packed)
        self.since, self.ago = nn.Embedding(BUCKETS, WIDTH), nn.Embedding(BUCKETS, WIDTH)
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def logits(self, batch):
        """That of each question, and the divergence of attention."""
        nodes, kl = self.encoder.encode(batch["visits"])
        visits = nodes[:, 0]

        def vectors(steps):
            visit, since, ago = steps.unbind(-1)
            return visits[visit] + self.since(since) + self.ago(ago)

        steps = batch["steps"]
        if isinstance(steps, PackedSequence):
            state = self.gru(PackedSequence(vectors(steps.data), *steps[1:]))[1][0]
        else:
            states = self.gru(vectors(steps))[0]
            state = states[torch.arange(len(states)), batch["lengths"] - 1]
        return self.encoder.label(vectors(batch["asked"]) + state).squeeze(1), kl

    def forward(self, batch):
        logits, kl = self.logits(batch)
        return F.binary_cross_entropy_with_logits(logits, batch["label"]) + 0.02 * kl / (BLOCKS - 1)


def rate(visits, run, rounds=2):
    """The best of some rounds, after one to warm up."""
    run()
    times = []
    for _ in range(rounds):
        start = time.time()
        run()
        times.append(time.time() - start)
    return visits / min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("prior")
    parser.add_argument("--style", choices=["padded", "expert"], required=True)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--visits", type=int, default=800)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    examples, rows = load(args.folder, args.prior, args.visits, "later")
    patients = [list(visits) for _, visits in itertools.groupby(examples, key=lambda visit: visit["subject"])]
    packed = args.style == "expert"
    if packed:
        patients.sort(key=lambda patient: max(len(visit["ids"]) for visit in patient))
    model = Patients(rows, packed)
    if args.compile:
        model.encoder.encode = torch.compile(model.encoder.encode, dynamic=True)
    adam = torch.optim.Adam(model.parameters(), lr=5e-4, fused=packed)
    of_batch = list(batches(patients, packed, BATCH))

    def train():
        model.train()
        for batch in of_batch:
            adam.zero_grad()
            model(batch).backward()
            adam.step()

    def evaluate(batches):
        model.eval()
        with torch.inference_mode():
            for batch in batches:
                model(batch)

    trained = rate(len(examples), train)
    tried = [of_batch, list(batches(patients, packed, 4 * BATCH))] if packed else [of_batch]
    evaluated = max(rate(len(examples), lambda: evaluate(each)) for each in tried)
    print(json.dumps({"train": trained, "evaluate": evaluated}))


if __name__ == "__main__":
    main()
