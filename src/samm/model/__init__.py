"""The network T_θ of eq:network."""

from samm.model.network import Network

__all__ = ["Network"]
