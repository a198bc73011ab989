"""The network: shapes, loops, positions, time, heads, padding, and its own counting."""

from dataclasses import replace

import pytest
import torch
from ribbon import Ribbon
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from samm import tasks
from samm.config import NetworkConfig
from samm.model import Network
from samm.model.positions import look_up, rotary_angles, rotate, turn
from samm.process.prediction import Prediction
from samm.tasks import Problem

SMALL = NetworkConfig(width=32, heads=2, layers=2, loops=3)
sudoku = tasks.get("sudoku", box_rows=2, box_cols=2)


def build(config: NetworkConfig = SMALL, task: tasks.Task = sudoku, seed: int = 0) -> Network:
    """A network whose zero-initialised parts are random too, so that everything shows."""
    torch.manual_seed(seed)
    network = Network(config, task).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if not parameter.any():
                parameter.normal_(std=0.1)
    return network


def batch(task: tasks.Task = sudoku, count: int = 6) -> Problem:
    return Problem.stack([task.example(0, index).problem for index in range(count)])


def same(one: Prediction, two: Prediction, **tolerance: float) -> bool:
    pairs = ((one.logits, two.logits), (one.commit, two.commit), (one.stop, two.stop))
    return all(torch.allclose(a, b, **tolerance) for a, b in pairs)


@pytest.mark.parametrize(
    "task", [sudoku, tasks.get("sudoku"), Ribbon()], ids=lambda t: str(t.length)
)
@pytest.mark.parametrize("time", ["none", "additive", "adaln"])
@pytest.mark.parametrize("head", ["mlp", "streams"])
def test_shapes(task: tasks.Task, time: str, head: str) -> None:
    problems = batch(task)
    prediction = build(replace(SMALL, time=time, head=head), task)(problems.tokens, problems.clue)
    assert prediction.logits.shape == (6, task.length, task.vocabulary)
    assert prediction.commit.shape == (6, task.length)
    assert prediction.stop.shape == (6,)
    for field in (prediction.logits, prediction.commit, prediction.stop):
        assert field.dtype == torch.float32
        assert bool(field.isfinite().all())


def test_a_causal_network_sees_what_stands_before() -> None:
    network = build(replace(SMALL, causal=True))
    problems = batch()
    tokens = torch.randint(4, problems.tokens.shape, generator=torch.Generator().manual_seed(0))
    clue = torch.zeros_like(problems.clue)
    before = network(tokens, clue).logits
    for place in (0, 7, 15):
        changed = tokens.clone()
        changed[:, place] = (changed[:, place] + 1) % 4
        after = network(changed, clue).logits
        assert torch.allclose(after[:, : place + 1], before[:, : place + 1], atol=1e-5)
        if place < 15:
            assert not torch.allclose(after[:, place + 1], before[:, place + 1], atol=1e-3)


def test_a_tied_head_reads_the_table_of_the_tokens() -> None:
    network = build(replace(SMALL, tied=True))
    plain = build(SMALL)
    assert plain.parameter_count - network.parameter_count == 32 * sudoku.vocabulary
    problems = batch()
    logits = network(problems.tokens, problems.clue).logits
    with torch.no_grad():
        network.embedding.token[2] += 5
    moved = network(torch.where(problems.tokens == 2, 0, problems.tokens), problems.clue).logits
    assert not torch.allclose(moved[..., 2], logits[..., 2])
    copy = Network(network.config, sudoku).eval()
    copy.load_state_dict(network.state_dict())
    again = copy(problems.tokens, problems.clue)
    assert same(again, network(problems.tokens, problems.clue))
    again.logits.square().mean().backward()
    assert copy.embedding.token.grad is not None
    assert bool(copy.embedding.token.grad[:-1].any(1).all())


def test_loops_share_their_layers() -> None:
    one, three = (build(replace(SMALL, loops=n)) for n in (1, 3))
    assert one.parameter_count == three.parameter_count
    three.load_state_dict(one.state_dict())
    problems = batch()
    arguments = (problems.tokens, problems.clue)
    assert same(one(*arguments, loops=3), three(*arguments))
    assert not same(one(*arguments), three(*arguments), rtol=1e-3)


def test_loops_are_what_the_recipe_says() -> None:
    """h = RMSNorm(h) + embedding, then the layers; one final norm."""
    network, problems = build(), batch()
    state = network.embedding(problems.tokens, problems.clue)
    h = network.start.expand_as(state)
    for _ in range(3):
        h = torch.nn.functional.rms_norm(h, (32,)) + state
        for block in network.blocks:
            h = block(h, (network.cosine, network.sine))
    expected = network.tokens(network.norm(h))
    assert torch.allclose(network(problems.tokens, problems.clue).logits, expected, atol=1e-3)


@pytest.mark.parametrize("config", [SMALL, replace(SMALL, head="streams", mlp_ratio=2, loops=1)])
def test_flops_are_those_that_torch_counts(config: NetworkConfig) -> None:
    network, problems = build(config, tasks.get("sudoku")), batch(tasks.get("sudoku"), 1)
    math_attention = sdpa_kernel(SDPBackend.MATH)  # the only one whose work is counted on CPUs
    with math_attention, FlopCounterMode(display=False) as counter, torch.no_grad():
        network(problems.tokens, problems.clue)
    assert network.flops() == pytest.approx(counter.get_total_flops(), rel=0.02)
    assert network.flops(loops=2 * config.loops) > 1.4 * network.flops()


def test_the_default_has_the_parameters_of_the_recipe() -> None:
    assert Network(NetworkConfig(), tasks.get("sudoku")).parameter_count == pytest.approx(
        1.67e6, rel=0.01
    )


def test_muon_moves_the_matrices_of_the_blocks() -> None:
    network = build()
    assert [tuple(p.shape) for p in network.hidden_matrices] == 2 * [
        (96, 32), (32, 32), (128, 32), (32, 128)
    ]  # fmt: skip


def test_rotary_scores_depend_on_differences_along_every_axis() -> None:
    grid = torch.cartesian_prod(torch.arange(6), torch.arange(6))
    angles = rotary_angles(grid, 8, 10.0)
    random = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 16, generator=random)
    turned_q = rotate(q.expand(1, 36, 1, -1), *turn(angles))[0, :, 0]
    turned_k = rotate(k.expand(1, 36, 1, -1), *turn(angles))[0, :, 0]
    scores = turned_q @ turned_k.T
    by_difference: dict[tuple[int, ...], list[float]] = {}
    for i in range(36):
        for j in range(36):
            by_difference.setdefault(tuple((grid[i] - grid[j]).tolist()), []).append(
                float(scores[i, j])
            )
    assert len(by_difference) == 121
    for values in by_difference.values():
        assert max(values) - min(values) < 1e-4
    means = {key: values[0] for key, values in by_difference.items()}
    assert abs(means[1, 0] - means[0, 1]) > 1e-3, "rows are not columns"


@pytest.mark.parametrize("rows", [3, 64, 65, 200])
def test_looking_up_is_indexing(rows: int) -> None:
    table = torch.randn(rows, 4, requires_grad=True)
    index = torch.randint(rows, (5, 7))
    found, expected = look_up(table, index), table[index]
    assert torch.allclose(found, expected)
    ours, theirs = (torch.autograd.grad(x.square().sum(), table)[0] for x in (found, expected))
    assert torch.allclose(ours, theirs, atol=1e-6)


def test_rotation_turns_the_plane_of_every_pair() -> None:
    angles = torch.tensor([[0.3, 1.1]])
    turned = rotate(torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 1, 4), *turn(angles)).flatten()
    for pair, (x, y) in enumerate(((1.0, 3.0), (2.0, 4.0))):
        c, s = float(angles[0, pair].cos()), float(angles[0, pair].sin())
        assert float(turned[pair]) == pytest.approx(x * c - y * s)
        assert float(turned[pair + 2]) == pytest.approx(x * s + y * c)


def test_rotary_pairs_are_dealt_out_over_the_axes() -> None:
    angles = rotary_angles(torch.tensor([[1, 10, 100]]), 7, 10.0)
    assert angles.shape == (1, 7)
    assert angles[0, :3].tolist() == pytest.approx([1, 10 ** (-1 / 3), 10 ** (-2 / 3)])
    assert angles[0, 3].item() == 10
    assert angles[0, 5].item() == 100


def test_positions_tell_equal_cells_apart() -> None:
    problems = batch(count=1)
    blank = torch.full_like(problems.tokens, sudoku.mask)
    clue = torch.zeros_like(problems.clue)
    clue[0, 3] = True
    blank[0, 3] = 0
    for config in (SMALL, replace(SMALL, rotary="line", groups=False, positions=False)):
        logits = build(config)(blank, clue).logits[0].detach()
        apart = torch.cdist(logits, logits) + torch.eye(16)
        assert float(apart.min()) > 1e-4


@pytest.mark.parametrize("option", ["groups", "positions"])
def test_embeddings_can_be_left_out(option: str) -> None:
    without = build(replace(SMALL, **{option: False}))
    assert without.parameter_count < build().parameter_count


@pytest.mark.parametrize("time", ["none", "additive", "adaln"])
def test_time_conditions_those_that_want_it(time: str) -> None:
    network, problems = build(replace(SMALL, time=time)), batch()
    arguments = (problems.tokens, problems.clue)
    early, late = (network(*arguments, time=torch.full((6,), t)) for t in (0.1, 0.9))
    assert same(early, late) == (time == "none")
    blank = network(*arguments, time=torch.zeros(6))
    assert same(network(*arguments), blank), "by default: the share of committed free cells"


def test_adaln_starts_as_the_identity() -> None:
    torch.manual_seed(0)
    network, problems = Network(replace(SMALL, time="adaln"), sudoku), batch()
    arguments = (problems.tokens, problems.clue)
    early, late = (network(*arguments, time=torch.full((6,), t)) for t in (0.1, 0.9))
    assert same(early, late)


def test_logits_are_clipped() -> None:
    network, problems = build(), batch()
    with torch.no_grad():
        network.tokens.weight.mul_(1000)
    clipped = build(replace(SMALL, logit_clip=50.0))
    clipped.load_state_dict(network.state_dict())
    logits = [n(problems.tokens, problems.clue).logits.detach() for n in (network, clipped)]
    assert float(logits[0].abs().max()) > 50
    assert torch.equal(logits[0].clamp(-50, 50), logits[1])


def test_dropout_works_in_training_alone() -> None:
    network, problems = build(replace(SMALL, dropout=0.3)), batch()
    arguments = (problems.tokens, problems.clue)
    assert same(network(*arguments), network(*arguments))
    network.train()
    assert not same(network(*arguments), network(*arguments), rtol=1e-2)


def test_padding_is_not_seen() -> None:
    """A short ribbon is predicted the same however long the ribbons around it may be."""
    short, long = Ribbon(longest=6), Ribbon(longest=11)
    config = replace(SMALL, positions=False)
    one, other = build(config, short), build(config, long)
    other.load_state_dict(one.state_dict())
    texts = ["R..G", ".", "G.B."]
    near, far = (task.encode_many(texts) for task in (short, long))
    a, b = one(near.tokens, near.clue), other(far.tokens, far.clue)
    assert torch.allclose(a.logits[:, :4], b.logits[:, :4], atol=1e-5)
    assert torch.allclose(a.commit[:, :4], b.commit[:, :4], atol=1e-5)
    assert torch.allclose(a.stop, b.stop, atol=1e-5)
    # A free position that happens to hold the pad token is a state like any other, and seen.
    held = near.tokens.clone()
    held[0, 1] = short.pad
    assert not torch.allclose(one(held, near.clue).logits[0], a.logits[0], atol=1e-3)


def test_tokens_that_a_position_cannot_hold_have_no_probability() -> None:
    class Narrow(Ribbon):
        @property
        def allowed(self) -> torch.Tensor:
            allowed = torch.ones(self.length, self.vocabulary, dtype=torch.bool)
            allowed[:, 3] = False
            return allowed

    task = Narrow()
    problems = task.encode_many(["R..G", "...."])
    p = build(SMALL, task)(problems.tokens, problems.clue).probabilities
    assert bool((p[..., 3] == 0).all())
    assert torch.allclose(p.sum(-1), torch.ones(2, 8))


def test_heads_look_at_free_positions() -> None:
    """The stop head pools over free positions; with none it still answers."""
    full = sudoku.problem(torch.stack([sudoku.example(0, i).answer for i in range(3)]))
    for head in ("mlp", "streams"):
        prediction = build(replace(SMALL, head=head))(full.tokens, full.clue)
        assert bool(prediction.stop.isfinite().all())


def test_bfloat16_is_close_and_comes_back_as_float32() -> None:
    network, problems = build(), batch()
    exact = network(problems.tokens, problems.clue)
    with torch.autocast("cpu", torch.bfloat16):
        rough = network(problems.tokens, problems.clue)
    assert rough.logits.dtype == rough.commit.dtype == rough.stop.dtype == torch.float32
    assert torch.allclose(exact.probabilities, rough.probabilities, atol=0.05)
