"""What a training tells its callbacks, and the table that it writes."""

from __future__ import annotations

import pytest

from leafgrad import nn, plugins
from leafgrad.utils import Training

TESTS = "utils.loggers utils.training"


class Noting:
    def __init__(self):
        self.told = []

    def on_start(self, training):
        self.told.append(("start", training.done))

    def on_note(self, training, terms):
        self.told.append(("note", training.done, terms))

    def on_save(self, training):
        self.told.append(("save", training.done))

    def on_end(self, training):
        self.told.append(("end", training.done))


def run(folder, count, resume=False, callbacks=("csv",), model=None):
    with Training(folder, every=2, resume=resume, callbacks=callbacks, model=model or nn.Linear(1, 1)) as training:
        for step in training.steps(count):
            training.note(loss=step / 2, size=3.0)


def test_the_order_of_calls(tmp_path):
    noting = Noting()
    run(tmp_path, 2, callbacks=(noting, object()))
    terms = {"loss": 0.0, "size": 3.0}
    assert noting.told == [
        ("start", 0),
        ("note", 0, terms),
        ("note", 1, terms | {"loss": 0.5}),
        ("save", 2),
        ("end", 2),
    ]


def test_the_table_goes_on_where_the_training_does(tmp_path):
    run(tmp_path, 4)
    path = tmp_path / "log.csv"
    assert path.read_text().splitlines() == ["step,loss,size", "0,0.0,3.0", "1,0.5,3.0", "2,1.0,3.0", "3,1.5,3.0"]
    path.write_text(path.read_text() + "4,7.0,3.0\n5,7.0,3.0\n")  # of steps after the checkpoint
    run(tmp_path, 6, resume=True)
    assert path.read_text().splitlines()[-2:] == ["4,2.0,3.0", "5,2.5,3.0"]
    assert len(path.read_text().splitlines()) == 7


def test_the_end_comes_after_an_error_too(tmp_path):
    noting, training = Noting(), None

    def train():
        nonlocal training
        training = Training(tmp_path, every=1, callbacks=(noting,))
        for _ in training.steps(3):
            training.note(loss=float("nan"))

    with pytest.raises(FloatingPointError, match="loss is nan"):
        train()
    assert noting.told[-1] == ("end", 0)


def test_a_term_that_the_first_row_has_not(tmp_path):
    def train():
        training = Training(tmp_path, every=1, callbacks=("csv",))
        for step in training.steps(2):
            training.note(**({"loss": 1.0} if step == 0 else {"loss": 1.0, "more": 2.0}))

    with pytest.raises(ValueError, match=r"log.csv: expected the terms loss, as in the first row, got 'more', too"):
        train()


def test_a_callback_that_nobody_brings(tmp_path):
    with pytest.raises(
        plugins.UnknownNameError, match="unknown callback 'cvs': known are csv, tensorboard; did you mean 'csv'"
    ):
        Training(tmp_path, every=1, callbacks=("cvs",))


@pytest.mark.parametrize("callback", ["csv", "tensorboard"])
def test_a_note_outside_the_loop(tmp_path, callback):
    training = Training(tmp_path, every=1, callbacks=(callback,))
    with pytest.raises(RuntimeError, match=r"note: expected a call in the loop over steps\(\)"):
        training.note(loss=1.0)
    for _ in training.steps(1):
        training.note(loss=1.0)
    with pytest.raises(RuntimeError, match="got one outside"):
        training.note(loss=1.0)
