"""What a GPU can do at the sizes of a configuration: the floor under a training step.

python benchmarks/ceilings.py configs/sudoku.toml --batch 1024
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import embedding, scaled_dot_product_attention

from samm import runtime, tasks
from samm.config import Config
from samm.model.positions import look_up

BACKENDS = (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION)


def milliseconds(work: Callable[[], Any], repeats: int = 20) -> float:
    """Median time of `work` by the device's own clock."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[repeats // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("--batch", type=int, default=1024)
    arguments = parser.parse_args()
    device = runtime.choose("cuda").device
    config = Config.read(arguments.config)
    width, heads = config.network.width, config.network.heads
    length = tasks.from_spec(config.task).length
    positions = arguments.batch * length

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device=device, dtype=torch.bfloat16)

    print(torch.cuda.get_device_name(device))
    a, b = random(8192, 8192), random(8192, 8192)
    time = milliseconds(lambda: a @ b)
    print(f"matrix product 8192³: {2 * 8192**3 / time / 1e9:.0f} TFLOP/s")
    source, target = random(2**29), random(2**29)
    time = milliseconds(lambda: target.copy_(source))
    print(f"copy: {2 * source.nbytes / time / 1e9:.2f} TB/s")

    for inputs, outputs in ((1, 3), (1, 1), (1, config.network.mlp_ratio),
                            (config.network.mlp_ratio, 1)):  # fmt: skip
        x, w = random(positions, inputs * width), random(inputs * width, outputs * width)
        time = milliseconds(lambda x=x, w=w: x @ w)
        rate = 2 * positions * inputs * outputs * width**2 / time / 1e9
        y = random(positions, outputs * width)
        back = milliseconds(lambda x=x, y=y: x.T @ y)
        print(
            f"[{positions}, {inputs * width}] @ [{inputs * width}, {outputs * width}]: "
            f"{time:.3f} ms, {rate:.0f} TFLOP/s; gradient of the matrix {back:.3f} ms"
        )

    shape = (arguments.batch, length, heads, width // heads)
    q, k, v = (random(*shape).transpose(1, 2).requires_grad_() for _ in range(3))
    out = random(*shape).transpose(1, 2)
    for backend in BACKENDS:
        with sdpa_kernel(backend):

            def forward() -> torch.Tensor:
                return scaled_dot_product_attention(q, k, v)

            def both() -> None:
                torch.autograd.grad(forward(), (q, k, v), out)

            try:
                ahead, whole = milliseconds(forward), milliseconds(both)
            except RuntimeError as error:
                print(f"attention, {backend.name}: {str(error).splitlines()[0]}")
                continue
        print(f"attention, {backend.name}: {ahead:.3f} ms ahead, {whole:.3f} ms with gradients")

    table = torch.randn(10, width, device=device, requires_grad=True)
    index = torch.randint(10, (positions,), device=device)
    up = torch.randn(positions, width, device=device)
    for name, work in (
        ("index", lambda: table[index]),
        ("embedding", lambda: embedding(index, table)),
        ("one-hot product", lambda: look_up(table, index)),
    ):
        time = milliseconds(lambda work=work: torch.autograd.grad(work(), table, up), 5)
        print(f"looking up 10 rows with gradient, {name}: {time:.3f} ms")


if __name__ == "__main__":
    main()
