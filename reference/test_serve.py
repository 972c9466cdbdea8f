"""The HTTP API as another program sees it: schemathesis asks what /openapi.json allows and what it does not."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pandas
import pytest


@pytest.fixture(scope="module", params=["graph_reconstruction", "masked_diagnosis"])
def served(request, home, gct):
    """The address of a server of a small run, which must end well when it is asked to."""
    run = home / f"served-{request.param}"
    small = ["--set", "model.width=16", "--set", "validate_every=10", "--steps", 10]
    gct("train", "--quiet", "--data", home / "synthetic", "--task", request.param, "--out", run, *small)
    command = [os.environ["GCT"], "serve", str(run), "--listen", "127.0.0.1:0", "--json", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        yield json.loads(server.stdout.readline())["listen"]
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
    bounded = ["--max-examples", "30", "--seed", "1", "--generation-deterministic"]
    done = subprocess.run(
        [*command, *bounded, "--checks", ",".join(checks)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_answers_add_up(served, home):
    model = ask(served, "/v1/model")
    codes = pandas.read_parquet(home / "synthetic" / "vocabulary.parquet")
    diagnoses = codes[codes.kind == "diagnosis"].code.head(4).tolist()
    encounter = {"diagnosis": diagnoses, "treatment": ["?"]}
    hidden = None
    if model["task"] == "masked_diagnosis":
        encounter["hide"], hidden = diagnoses[2], 3
    [explanation] = ask(served, "/v1/explain", {"encounters": [encounter]})["explanations"]
    assert [node["code"] for node in explanation["nodes"]] == ["visit", *diagnoses]
    assert explanation["hidden"] == hidden
    assert explanation["unknown"] == [{"kind": "treatment", "code": "?"}]
    assert [layer["name"] for layer in explanation["layers"]] == [layer["name"] for layer in model["layers"]]
    for layer in explanation["layers"]:
        sums = [sum(row) for row in layer["matrix"]]
        assert layer["kind"] == "probability" or sums == pytest.approx([1] * len(sums), abs=1e-5), layer["name"]
