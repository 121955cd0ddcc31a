"""The first steps of deep networks: where plain norms overflow, parameters stand still."""

import json

import pytest
from launching import copy_commands, run

pytestmark = pytest.mark.processes

TINY = """
from experiments.configs.base import base_config, parse_cell, set_depth

def get_config(cell):
    model, size, depth = parse_cell(cell, "")
    config = base_config(name=cell, model=model, size=7)
    set_depth(config, depth)
    config.data.update(train=64, valid=8, test=8)
    config.model.hidden = 4
    config.train.batch_size = 8
    return config
"""


def test_deep_vins_stand_still(tmp_path):
    copy_commands(tmp_path)
    (tmp_path / "experiments/configs/paper.py").write_text(TINY)
    where = {"folder": tmp_path, "PYTHONPATH": str(tmp_path)}

    def measure(*arguments):
        arguments = ("--latent_actions=4", "--steps=6", *arguments)
        return run("first_steps", *arguments, package="benchmarks", **where)

    code, _, err = measure("--cells=gppn-15-20")
    assert (code, err) == (1, "first_steps: gppn-15-20 has no latent actions\n")
    code, out, err = measure("--cells=vin-15-2,vin-15-300", "--seeds=0")
    assert code == 0, err
    path = tmp_path / "results/paper/first_steps.json"
    rows = json.loads(path.read_text())
    shallow, deep = rows["vin-15-2-4-seed0"], rows["vin-15-300-4-seed0"]
    assert len(shallow["norms"]) == len(deep["norms"]) == 6
    assert shallow["stands_still_from"] is None
    assert max(shallow["norms"]) < 1e19 < min(deep["norms"][-2:])
    # It stands still from the first gradient on whose norm overflows.
    since = deep["stands_still_from"]
    assert max(deep["norms"][: since - 1]) < 1.9e19 < deep["norms"][since - 1]
    assert f"; stands still from step {since}\n" in out

    # What has been measured is kept; the report sets it beside the paper's numbers.
    code, again, err = measure("--cells=vin-15-2,vin-15-300", "--seeds=0")
    assert (code, again) == (0, out), err
    code, _, err = run("report", "--name=first_steps", "--results=results", **where)
    assert code == 0, err
    text = (tmp_path / "results/cpu/report/first_steps.md").read_text()
    assert f"| VIN | 15×15 | 300 | 4 | {max(deep['norms']):.0e} | {since} |" in text
