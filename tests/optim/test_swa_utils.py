"""Averages of weights: stochastic weight averaging, exponential averages, and what goes with them."""

from __future__ import annotations

import copy

import pytest

import leafgrad
from leafgrad import nn, optim
from leafgrad.optim import swa_utils


def networks(count, device="cpu"):
    """Several states of one network, each as a network."""
    leafgrad.manual_seed(0)
    return [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).to(device) for _ in range(count)]


def averaged(models, **options):
    average = swa_utils.AveragedModel(models[0], **options)
    for model in models:
        average.update_parameters(model)
    return average


def test_the_default_is_the_mean_of_all_weights(device):
    models = networks(4, device)
    average = averaged(models)
    assert average.n_averaged.item() == 4
    for p, *each in zip(average.module.parameters(), *(m.parameters() for m in models), strict=True):
        mean = sum(q.detach() for q in each) / 4
        assert p.device == device
        assert p.detach().cpu().numpy() == pytest.approx(mean.cpu().numpy(), abs=1e-6)
    x = leafgrad.ones(2, 3, device=device)
    assert average(x).tolist() == average.module(x).tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"avg_fn": swa_utils.get_ema_avg_fn(0.9)},
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)},
        {"avg_fn": lambda average, p, n: 0.9 * average + 0.1 * p},
    ],
)
def test_an_exponential_average(options):
    models = networks(3)
    average = averaged(models, **options)
    for p, a, b, c in zip(average.parameters(), *(m.parameters() for m in models), strict=True):
        expected = 0.9 * (0.9 * a + 0.1 * b) + 0.1 * c
        assert p.detach().numpy() == pytest.approx(expected.detach().numpy(), abs=1e-6)


def test_both_forms_of_an_average_are_one():
    models = networks(3)
    one = averaged(models, avg_fn=swa_utils.get_swa_avg_fn())
    many = averaged(models, multi_avg_fn=swa_utils.get_swa_multi_avg_fn())
    for a, b in zip(one.parameters(), many.parameters(), strict=True):
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize("use_buffers", [False, True])
def test_buffers_are_copied_or_averaged(use_buffers):
    models = networks(2)
    for k, model in enumerate(models):
        model[1].running_mean.fill_(float(k))
        model[1].num_batches_tracked.fill_(4 * k)
    average = averaged(models, use_buffers=use_buffers)
    assert average.module[1].running_mean.tolist() == [0.5 if use_buffers else 1.0] * 4
    assert average.module[1].num_batches_tracked.item() == (2 if use_buffers else 4)


def test_the_average_is_saved_and_the_model_untouched(tmp_path):
    models = networks(2)
    before = copy.deepcopy(models[0].state_dict())
    average = averaged(models)
    assert {"n_averaged", "module.0.weight", "module.1.running_var"} <= average.state_dict().keys()
    leafgrad.save(average.state_dict(), tmp_path / "average")
    again = swa_utils.AveragedModel(models[1])
    again.load_state_dict(leafgrad.load(tmp_path / "average"))
    again.update_parameters(models[0])
    average.update_parameters(models[0])
    for a, b in zip(again.parameters(), average.parameters(), strict=True):
        assert a.tolist() == b.tolist()
    for name, t in models[0].state_dict().items():
        assert t.tolist() == before[name].tolist()


@pytest.mark.parametrize("training", [False, True])
def test_update_bn_takes_the_statistics_of_one_pass(training):
    (model,) = networks(1)
    model.train(training)
    model[1].running_mean.fill_(99.0)
    batches = [leafgrad.randn(8, 3) for _ in range(3)]
    swa_utils.update_bn([(batches[0], "label"), *batches[1:]], model)
    hidden = [model[0](batch) for batch in batches]
    mean = sum(h.mean(0) for h in hidden) / 3
    assert model[1].running_mean.numpy() == pytest.approx(mean.detach().numpy(), abs=1e-6)
    assert model[1].num_batches_tracked.item() == 3
    assert (model.training, model[1].momentum) == (training, 0.1)
    swa_utils.update_bn(iter(()), nn.Linear(1, 1))


def test_swalr_goes_to_its_rate_and_stays():
    optimizer = optim.SGD([leafgrad.zeros(1, requires_grad=True)], lr=1.0)
    schedule = swa_utils.SWALR(optimizer, swa_lr=0.2, anneal_epochs=4, anneal_strategy="linear")
    assert rates(optimizer, schedule, 7) == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2])


def test_swalr_starts_at_its_milestone():
    optimizer = optim.SGD([leafgrad.zeros(1, requires_grad=True)], lr=1.0)
    before = optim.lr_scheduler.ConstantLR(optimizer, 0.5, 9)
    after = swa_utils.SWALR(optimizer, swa_lr=0.2, anneal_epochs=2, anneal_strategy="linear")
    schedule = optim.lr_scheduler.SequentialLR(optimizer, [before, after], [2])
    assert rates(optimizer, schedule, 6) == pytest.approx([0.5, 0.5, 0.5, 0.35, 0.2, 0.2])


def rates(optimizer, schedule, count):
    found = []
    for _ in range(count):
        found.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda m, o: swa_utils.get_ema_avg_fn(1.5), ValueError, "Invalid decay value 1.5"),
        (lambda m, o: swa_utils.get_ema_multi_avg_fn(-1), ValueError, "Invalid decay value -1"),
        (lambda m, o: swa_utils.AveragedModel(m, avg_fn=max, multi_avg_fn=max), AssertionError, "Only one of"),
        (lambda m, o: swa_utils.SWALR(o, 0.1, anneal_strategy="x"), ValueError, "'cos' or 'linear', instead got x"),
        (lambda m, o: swa_utils.SWALR(o, 0.1, anneal_epochs=-1), ValueError, "equal or greater than 0, got -1"),
        (lambda m, o: swa_utils.SWALR(o, [0.1, 0.2]), ValueError, "Expected 1 swa_lr"),
    ],
)
def test_errors_say_what_was_expected(make, error, message):
    model = nn.Linear(1, 1)
    with pytest.raises(error, match=message):
        make(model, optim.SGD(model.parameters()))
