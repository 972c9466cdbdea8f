"""What the tests share: the program and a small dataset made by it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def gct():
    """Runs the program and returns what it printed as JSON."""

    def run(*arguments):
        command = [os.environ["GCT"], *map(str, arguments), "--json"]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    return run


@pytest.fixture(scope="session")
def home(tmp_path_factory, gct):
    """A folder in which `synthetic` is a dataset of 4,000 encounters, with its split and prior beside it."""
    home = tmp_path_factory.mktemp("home")
    gct("synth", "--out", home / "synthetic", "--encounters", 4000)
    gct("split", home / "synthetic", "--out", home / "split.parquet")
    gct("prior", home / "synthetic", "--out", home / "prior.parquet")
    return home


@pytest.fixture
def copy(home, tmp_path):
    """The same folder, to be changed."""
    return shutil.copytree(home, tmp_path / "home")
