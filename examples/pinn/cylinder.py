"""Flow past a cylinder in a channel at Re = 20 (DFG 2D-1): its drag, its lift, and the difference of pressure.

A stream function conserves the fluid exactly. Its waves in the channel, about the cylinder and behind it have mirror
images: the lift, 1/500 of the drag, is what is left of two nearly equal halves. In full it is right to 1e-3.

leafgrad pinn run cylinder
leafgrad pinn run cylinder --quick

Source: Schaefer and Turek (1996), "Benchmark computations of laminar flow around a cylinder"; figures by Nabh (1998).
"""

import numpy as np

import leafgrad as lg
import leafgrad_pinn as pinn

TARGETS = {"full": 1e-2}
TRUTH = {"drag": 5.57953523, "lift": 0.01061895, "pressure": 0.11752017}
NU, R, X, Y, HEIGHT, LENGTH = 1e-3, 0.05, 0.2, 0.2, 0.41, 2.2


class Waves(lg.nn.Module):
    def __init__(self, width, *spread):
        super().__init__()
        half = (lg.rand(len(spread), width // 2) - 0.5) * lg.tensor(spread)[:, None]
        self.frequencies = lg.nn.Parameter(lg.cat([half, lg.cat([half[:-1], -half[-1:]])], 1))
        self.phases = lg.nn.Parameter(lg.cat([lg.rand(width // 2) * 2 * np.pi] * 2))

    def forward(self, *coordinates):
        return lg.sin(lg.stack(coordinates, -1) @ self.frequencies + self.phases)


class Around(lg.nn.Module):
    def __init__(self, outputs, width):
        super().__init__()
        self.channel, self.near, self.wake = Waves(width, 26, 9), Waves(2 * width, 7, 6, 6), Waves(width, 12, 14)
        self.last = lg.nn.Linear(4 * width, outputs)
        lg.nn.init.zeros_(self.last.weight)

    def forward(self, z):  # coordinates scaled to [-1, 1]
        x, y = (z[:, 0] + 1) * (LENGTH / 2) - X, (z[:, 1] + 1) * (HEIGHT / 2) - Y  # from the cylinder's middle
        r = (x * x + y * y).sqrt()
        depth, behind, across = lg.log(r / R), (x - 0.1) / 0.3, y / (HEIGHT / 2)
        near = self.near(depth, x / r, y / r) * lg.exp(-((depth / 1.4) ** 4))[:, None]
        wake = self.wake(behind, across) * lg.exp(-behind * behind)[:, None]
        return self.last(lg.cat([self.channel(x / (LENGTH / 2), across), near, wake], 1))


def measure(solution):
    angle, r = np.arange(256) * np.pi / 128, R * (1 + 1e-8)
    cos, sin = np.cos(angle), np.sin(angle)
    p, turning = solution.evaluate(lambda s, p: (p, s.xx + s.yy), X + r * cos, Y + r * sin)
    force = np.pi * R * 1000 / 256 * np.array([NU * turning * sin - p * cos, -NU * turning * cos - p * sin]).sum(1)
    return {"drag": float(force[0]), "lift": float(force[1]), "pressure": float(p[128] - p[0])}


def solve(run):
    def navier_stokes(s, p):
        along, across = s.y * s.xy - s.x * s.yy, s.x * s.xy - s.y * s.xx
        return along + p.x - NU * (s.xxy + s.yyy), across + p.y + NU * (s.xxx + s.xyy)

    def through(y):  # what flows in below y
        return 1.2 * y * y * (HEIGHT / 2 - y / 3) / HEIGHT**2

    width, n, steps = (120, 600, 6) if run.quick else (300, 1500, 7)
    cylinder, net = pinn.Disk(R, x=X, y=Y), pinn.Own(lambda inputs, outputs: Around(outputs, width))
    channel = pinn.Box(x=(0, LENGTH), y=(0, HEIGHT)) - cylinder
    s, p = pinn.fields("s p", channel, net=net, scale={"s": 0.03, "p": 0.1})
    conditions = [
        pinn.Interior(navier_stokes, n=n),
        pinn.Interior(navier_stokes, n=n, of=pinn.Disk(0.1, x=X, y=Y) - cylinder, name="ring"),
        pinn.Interior(navier_stokes, n=n, of=pinn.Disk(0.19, x=X, y=Y) - cylinder, name="wide ring"),
        pinn.Boundary(lambda s, y: (s - through(y), s.x), "x_min", n=60, weight=300),
        pinn.Boundary(lambda s, y: (s - through(y), s.y), "y_min y_max", n=400, weight=300),
        pinn.Boundary(lambda s: (s.x, s.y), "circle", n=160, weight=300),
        pinn.Boundary(lambda s, p: (NU * s.xy - p, s.xx), "x_max", n=60),
    ]
    return pinn.Problem([s, p], conditions).solve(pinn.LeastSquares(steps, damping=1e-26), **run.options)
