"""The HTTP API as another program sees it: schemathesis asks what /openapi.json allows and what it does not."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def served(home, gct):
    """The address of a server of a small run, which must end well when it is asked to."""
    run = home / "served"
    small = ["--set", "model.width=16", "--set", "validate_every=10"]
    gct("train", "--quiet", "--data", home / "synthetic", "--task", "masked_diagnosis", "--out", run, "--steps", 10, *small)
    command = [os.environ["GCT"], "serve", str(run), "--listen", "127.0.0.1:0", "--json", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        said = "".join(server.stdout.readline() for _ in range(3))
        yield json.loads(said)["listen"]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


def ask(served, path, body=None):
    request = urllib.request.Request(served + path, headers={"Content-Type": "application/json"})
    request.data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_the_api_does_what_it_says(served, tmp_path):
    checks = [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
        "unsupported_method",
    ]
    command = [Path(sys.executable).parent / "schemathesis", "run", served + "/openapi.json", "--no-color"]
    bounded = ["--max-examples", "30", "--seed", "1", "--generation-deterministic", "--generation-database", "none"]
    done = subprocess.run(
        [*command, *bounded, "--checks", ",".join(checks)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_answers_add_up(served, home):
    model = ask(served, "/v1/model")
    assert model["task"] == "masked_diagnosis"
    import pandas  # Slow to load, and schemathesis does not need it.

    codes = pandas.read_parquet(home / "synthetic" / "vocabulary.parquet")
    diagnoses = codes[codes.kind == "diagnosis"].code.head(4).tolist()
    encounter = {"diagnosis": diagnoses, "treatment": ["?"], "hide": diagnoses[2]}
    [explanation] = ask(served, "/v1/explain", {"encounters": [encounter]})["explanations"]
    assert [node["code"] for node in explanation["nodes"]] == ["visit", *diagnoses]
    assert explanation["hidden"] == 3
    assert explanation["unknown"] == [{"kind": "treatment", "code": "?"}]
    assert [layer["name"] for layer in explanation["layers"]] == [layer["name"] for layer in model["layers"]]
    for layer in explanation["layers"]:
        assert all(abs(sum(row) - 1) < 1e-5 for row in layer["matrix"]), layer["name"]
