"""What lies outside of variables: files, queues, databases, streams, threads' own data, serialized objects."""

from __future__ import annotations

import argparse
import bisect
import builtins
import configparser
import copy
import io
import json
import mmap
import os
import pickle
import queue
import re
import secrets
import sqlite3
import statistics
import string
import sys
import threading
import types

import numpy as np
from compile.scenarios.harness import points, row

import leafgrad


@row
def file_on_disk(w):
    folder = w.folder()
    path = folder.joinpath("gain.txt")
    step = w.compile(lambda x: x * float(path.read_text()))
    for k in w.turns("1.0", "2.0", "3.0"):
        path.write_text(k)
        w.call(step, points())


@row
def settings_in_json(w):
    folder = w.folder()
    path = folder.joinpath("settings.json")

    def step(x):
        with open(path) as file:
            return x * json.load(file)["gain"]

    step = w.compile(step)
    for k in w.turns(1.0, 2.0, 3.0):
        path.write_text(json.dumps({"gain": k}))
        w.call(step, points())


@row
def file_that_may_be_missing(w):
    folder = w.folder()
    path = folder.joinpath("stop")
    step = w.compile(lambda x: x * (0 if path.exists() else 2) + len(os.listdir(folder)))
    for there in w.turns(False, True, False):
        path.unlink(missing_ok=True)
        if there:
            path.touch()
        w.call(step, points())


@row
def array_in_a_file(w):
    folder = w.folder()
    path = folder.joinpath("a.npy")
    step = w.compile(lambda x: x + leafgrad.from_numpy(np.load(path)))
    for k in w.turns(1.0, 2.0, 3.0):
        np.save(path, np.full(3, k, "float32"))
        w.call(step, points())


@row
def mapped_memory(w):
    memory = mmap.mmap(-1, 16)
    step = w.compile(lambda x: x * memory[0])
    for k in w.turns(1, 2, 3):
        memory[0] = k
        w.call(step, points())


@row
def queue_of_numbers(w):
    numbers = queue.SimpleQueue()
    step = w.compile(lambda x: x * numbers.get())
    for i in range(7):
        numbers.put(float(i))
        w.call(step, points())


@row
def queue_that_may_be_empty(w):
    numbers = queue.Queue()

    def step(x):
        try:
            return x * numbers.get_nowait()
        except queue.Empty:
            return x + 100

    step = w.compile(step)
    for k in w.turns(None, 2.0, 3.0):
        if k is not None:
            numbers.put(k)
        w.call(step, points())


@row
def event(w):
    stop = threading.Event()
    step = w.compile(lambda x: x * 0 if stop.is_set() else x * 2)
    for on in w.turns(False, True, False):
        (stop.set if on else stop.clear)()
        w.call(step, points())


@row
def data_of_the_thread(w):
    local = threading.local()
    step = w.compile(lambda x: x * getattr(local, "gain", 1.0))
    for k in w.turns(1.0, 2.0, 3.0):
        local.gain = k
        w.call(step, points())


@row
def name_of_the_thread(w):
    step = w.compile(lambda x: x * len(threading.current_thread().name))
    before = threading.current_thread().name
    for name in w.turns("a", "bb", "ccc"):
        threading.current_thread().name = name
        w.call(step, points())
    threading.current_thread().name = before


@row
def database(w):
    base = sqlite3.connect(":memory:")
    base.execute("create table settings (gain real)")
    base.execute("insert into settings values (1.0)")
    step = w.compile(lambda x: x * base.execute("select gain from settings").fetchone()[0])
    for k in w.turns(1.0, 2.0, 3.0):
        base.execute("update settings set gain = ?", (k,))
        w.call(step, points())
    base.close()


@row
def stream_of_input(w):
    stream = io.StringIO("".join(f"{i}.5\n" for i in range(20)))
    w.patch.setattr(sys, "stdin", stream)
    step = w.compile(lambda x: x * float(input()))
    for _ in range(7):
        w.call(step, points())


@row
def arguments_of_the_process(w):
    step = w.compile(lambda x: x * len(sys.argv))
    for argv in w.turns(["a"], ["a", "b"], []):
        w.patch.setattr(sys, "argv", argv)
        w.call(step, points())


@row
def limit_of_the_interpreter(w):
    before = sys.getrecursionlimit()
    step = w.compile(lambda x: x * (sys.getrecursionlimit() % 10))
    for more in w.turns(1, 2, 3):
        sys.setrecursionlimit(before // 10 * 10 + more)
        w.call(step, points())
    sys.setrecursionlimit(before)


@row(constant=True)
def secret_numbers(w):
    step = w.compile(lambda x: x + secrets.randbelow(2**40))
    seen = set()
    for i in range(6):
        seen.add(w.call(step, leafgrad.zeros(1, dtype=leafgrad.float64), hide=True).item())
        w.see("all differ", len(seen) == i + 1)


@row(constant=True)
def random_bytes_of_the_system(w):
    step = w.compile(lambda x: x + int.from_bytes(os.urandom(5)))
    seen = set()
    for i in range(6):
        seen.add(w.call(step, leafgrad.zeros(1, dtype=leafgrad.float64), hide=True).item())
        w.see("all differ", len(seen) == i + 1)


@row
def environment_written_by_the_step(w):
    w.patch.setenv("A_COUNT", "0")

    def step(x):
        os.environ["A_COUNT"] = str(int(os.environ["A_COUNT"]) + 1)
        return x * float(os.environ["A_COUNT"])

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())
        w.see("variable", os.environ["A_COUNT"])


@row
def builtin_replaced(w):
    original = builtins.oct  # of which leafgrad makes no use
    step = w.compile(lambda x: x * len(oct(9)))
    for f in w.turns(original, str, original):
        with w.patch.context() as patch:
            patch.setattr(builtins, "oct", f)
            w.call(step, points())


@row
def text_of_an_object(w):
    class Gain:
        k = 1.0

        def __str__(self):
            return f"{self.k}"

        def __format__(self, how):
            return f"{self.k * 10}"

    o = Gain()
    step = w.compile(lambda x: x * float(str(o)) + float(f"{o}"))
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def text_with_attributes(w):
    o = types.SimpleNamespace(k=1.0)
    step = w.compile(lambda x: x * float(str.format("{0.k}", o)) + float("{k}".format(**vars(o))))
    for o.k in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def template_of_text(w):
    table, template = {"k": 1.0}, string.Template("$k")
    step = w.compile(lambda x: x * float(template.substitute(table)))
    for table["k"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def copies_made_inside(w):
    o = types.SimpleNamespace(inner={"k": [1.0]})
    step = w.compile(lambda x: x * copy.deepcopy(o).inner["k"][0] + copy.copy(o).inner["k"][0])
    for o.inner["k"][0] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def serialized_and_read_back(w):
    o = {"k": 1.0}
    step = w.compile(lambda x: x * pickle.loads(pickle.dumps(o))["k"] + json.loads(json.dumps(o))["k"])
    for o["k"] in w.turns(1.0, 2.0, 3.0):
        w.call(step, points())


@row
def statistics_and_bisection(w):
    numbers = [1.0, 2.0, 6.0]
    step = w.compile(lambda x: x * statistics.median(numbers) + bisect.bisect(numbers, 3.0))
    for numbers[1] in w.turns(2.0, 3.0, 4.0):
        w.call(step, points())


@row
def pattern(w):
    o = types.SimpleNamespace(pattern=re.compile("a+"), text="aab")
    step = w.compile(lambda x: x * len(o.pattern.match(o.text)[0]))
    for pattern, o.text in w.turns(("a+", "aab"), ("a", "aab"), ("a+", "aaab")):
        o.pattern = re.compile(pattern)
        w.call(step, points())


@row
def options_of_a_parser(w):
    options, config = argparse.Namespace(gain=1.0), configparser.ConfigParser()
    config["train"] = {"shift": "0.0"}
    step = w.compile(lambda x: x * options.gain + config.getfloat("train", "shift"))
    for options.gain, shift in w.turns((1.0, "0.0"), (2.0, "0.0"), (2.0, "5.0")):
        config["train"]["shift"] = shift
        w.call(step, points())


@row
def state_of_numpys_old_generator(w):
    source = np.random.mtrand.RandomState(3)
    step = w.compile(lambda x: x * source.uniform())
    for i in range(8):
        w.call(step, points())
        if i == 4:
            source.seed(3)


@row
def masked_array(w):
    a = np.ma.array([1.0, 2.0, 3.0], mask=[False, False, True])
    step = w.compile(lambda x: x * float(a.sum()))
    for masked in w.turns(True, False, True):
        a.mask = [False, False, masked]
        w.call(step, points())


@row
def attribute_set_through_a_hook(w):
    class Watched:
        def __init__(self):
            object.__setattr__(self, "log", [])
            self.k = 1.0

        def __setattr__(self, name, value):
            self.log.append((name, value))
            object.__setattr__(self, name, value)

    o = Watched()

    def step(x):
        o.k = o.k + 1
        return x * len(o.log)

    step = w.compile(step)
    for _ in range(7):
        w.call(step, points())


@row
def subclasses_are_registered(w):
    class Term:
        known = ()

        def __init_subclass__(cls, **options):
            Term.known = (*Term.known, options["k"])

    step = w.compile(lambda x: x * (1 + sum(Term.known)))
    for i in range(8):
        w.call(step, points())
        if i in (0, 1, 5):
            type("New", (Term,), {}, k=i + 1.0)
