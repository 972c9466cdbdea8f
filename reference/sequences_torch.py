"""What PyTorch makes of sequences: nn.GRU, a causal nn.Conv1d with its maxima, and causal attention, with all gradients.

    python reference/sequences_torch.py crates/plain/tests/golden/sequences.json

makes that file again, with the packages of requirements-torch.txt. Both engines are compared with it by a test in
crates/plain/src/engine.rs. Steps are there as the engines have them, the newest first, and matrices as [inputs,
outputs]; PyTorch goes through them from the oldest.
"""

import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

ROWS, INPUTS, WIDTH, CHANNELS, SIZE = 7, 5, 18, 6, 3

# The row of each step, the newest first; some rows are those of several steps.
SEQUENCES = [[2, 0, 1], [3], [4, 5, 5, 6, 0], [1, 2], [6, 3, 3, 2, 1]]


def rounded(module):
    """The module, with parameters that a few digits hold exactly."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(parameter.mul(1000).round() / 1000)
    return module


def attention(x, projection):
    """Every step attends to itself and to older ones; the sum of what they take."""
    query, key, value = projection(x).chunk(3, dim=1)
    allowed = torch.ones(len(x), len(x), dtype=torch.bool).tril()
    scores = (query @ key.T / math.sqrt(WIDTH)).masked_fill(~allowed, -math.inf)
    return (scores.softmax(dim=1) @ value).sum(dim=0)


def main(file):
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    table = rounded(nn.Embedding(ROWS, INPUTS))
    gru = rounded(nn.GRU(INPUTS, WIDTH))
    conv = rounded(nn.Conv1d(INPUTS, CHANNELS, SIZE))
    projection = rounded(nn.Linear(INPUTS, 3 * WIDTH, bias=False))

    oldest_first = [table(torch.tensor(sequence)).flip(0) for sequence in SEQUENCES]
    results = {
        "states": [gru(x)[1][0] for x in oldest_first],
        "maxima": [conv(F.pad(x.T, (SIZE - 1, 0))).relu().amax(dim=1) for x in oldest_first],
        "attended": [attention(x, projection) for x in oldest_first],
    }
    results = {name: torch.stack(rows) for name, rows in results.items()}
    loss = sum(
        F.binary_cross_entropy_with_logits(rows, (torch.arange(rows.numel()) % 3 == 0).double().view_as(rows), reduction="sum")
        for rows in results.values()
    )
    loss.backward()

    def as_window(weight):
        """A kernel's weights for the rows of a window, of which the newest comes first."""
        return weight.flip(2).permute(2, 1, 0).reshape(SIZE * INPUTS, CHANNELS)

    ours = {
        "table": (table.weight, lambda weight: weight),
        "input": (gru.weight_ih_l0, torch.t),
        "input_bias": (gru.bias_ih_l0, lambda bias: bias),
        "hidden": (gru.weight_hh_l0, torch.t),
        "hidden_bias": (gru.bias_hh_l0, lambda bias: bias),
        "window": (conv.weight, as_window),
        "window_bias": (conv.bias, lambda bias: bias),
        "projection": (projection.weight, torch.t),
    }

    def numbers(tensor):
        return [round(number, 12) for number in tensor.detach().flatten().tolist()]

    parameters = {
        name: {"values": numbers(turned(parameter)), "gradient": numbers(turned(parameter.grad))}
        for name, (parameter, turned) in ours.items()
    }
    golden = {"inputs": INPUTS, "width": WIDTH, "channels": CHANNELS, "size": SIZE, "sequences": SEQUENCES}
    golden |= {"loss": loss.item(), "parameters": parameters}
    golden |= {"results": {name: numbers(rows) for name, rows in results.items()}}
    with open(file, "w") as out:
        json.dump(golden, out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
