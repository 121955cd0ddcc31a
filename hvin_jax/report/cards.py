"""The card of a trained planner: what it is, what it was trained on, how good it is."""

from typing import Any

from hvin_jax.planner import Planner
from hvin_jax.report.results import scores_table


def card_text(planner: Planner) -> str:
    """A card in Markdown, from what a run has noted in `planner.card`."""
    card = planner.card
    config = card["config"]
    data = config["data"]
    made_from = data["file"] or (
        f"{data['train']:,} mazes of {data['size']}×{data['size']}, seed {data['seed']}, cells "
        f"freed with probability {data['min_decimation']:g} to {data['max_decimation']:g}"
    )
    if config["train"].get("symmetries"):
        made_from += ", turned and mirrored at random"
    if source := config["train"].get("weights"):
        made_from += f", beginning with the weights of {source}"
    return f"""# {card["name"]}

A {config["model"]["kind"].replace("_", " ")} for {planner.mechanism.name}, of
{card["num_params"]:,} parameters. Load this folder with `hvin_jax.load_planner`.

- Trained on {made_from}; {card["steps"]:,} steps of {config["train"]["batch_size"]} mazes in
  {card["wall_seconds"] / 60:.0f} minutes on {card["device"]["count"]} devices
  ({card["device"]["kind"]}), commit {card["sittings"][-1]["commit"]}.
- Model: {_settings(config["model"])}
- Loss: {_settings(config["loss"])}
- Optimiser: {_settings(config["optimizer"])}
- Selected by validation after step {card["best_step"]:,}, then tested on {card["test"]["mazes"]:,}
  mazes that it had never seen, from every start state:

```
{scores_table(card["test"])}
```

It plans on maps of any size, but has learned from the ones above: expect less on much larger maps.
"""


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
