"""The released networks: one folder each, `model.safetensors` and `config.json`."""

from importlib.resources import files


def installed() -> list[str]:
    """Names of the released networks in this installation."""
    return sorted(
        folder.name
        for folder in files(__package__).iterdir()
        if folder.is_dir() and folder.joinpath("model.safetensors").is_file()
    )
