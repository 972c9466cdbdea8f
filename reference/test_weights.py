"""The lines of docs/weights.md, run as they stand there, on a file that the library wrote."""

import json
import re

import numpy as np
from conftest import ROOT

FILES = ROOT / "crates/gct/tests/weights"


def test_the_lines_of_the_document_compute_our_prediction():
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs/weights.md").read_text(), re.DOTALL).group(1)
    case = json.loads((FILES / "example.json").read_text())
    names = {
        "path": FILES / "gct.safetensors",
        "ids": np.array(case["ids"]),
        "kinds": np.array(case["kinds"]),
        "P": np.array(case["prior"], np.float32),
    }
    exec(code, names)
    expected = 1 / (1 + np.exp(-np.array(case["logits"])))
    assert names["probability"].shape == expected.shape
    np.testing.assert_allclose(names["probability"], expected, rtol=1e-5)
    # A prediction that did not depend on the mixing would prove nothing.
    names["P"] = np.eye(len(case["ids"]), dtype=np.float32)
    exec(code, names)
    assert abs(names["probability"] - expected).max() > 1e-3
