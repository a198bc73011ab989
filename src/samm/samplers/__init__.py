"""From clues to answers: the chain, its rivals, and ensembles of them, all on the same network."""

from samm.samplers.ancestral import D3pm, Gidd
from samm.samplers.base import Model, Sampler
from samm.samplers.chain import Chain
from samm.samplers.engine import sample
from samm.samplers.ensemble import ensemble
from samm.samplers.euler import Euler
from samm.samplers.remdm import Remdm
from samm.samplers.restart import Restart
from samm.samplers.top_k import Margin, Remasking, TopK

__all__ = [
    "Chain",
    "D3pm",
    "Euler",
    "Gidd",
    "Margin",
    "Model",
    "Remasking",
    "Remdm",
    "Restart",
    "Sampler",
    "TopK",
    "ensemble",
    "sample",
]
