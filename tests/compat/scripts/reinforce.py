"""Policy gradients, a replay buffer and a target network, on a toy environment."""

import random
from collections import deque, namedtuple
from itertools import count

import torch
import torch.nn as nn
import torch.nn.functional as F
from fixed import fill, show, wave
from torch.distributions import Categorical

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1, self.layer2 = nn.Linear(3, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


random.seed(0)
policy_net, target_net = fill(DQN()), DQN()
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
memory, GAMMA, TAU = ReplayMemory(50), 0.99, 0.1
state = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float32).unsqueeze(0)
for t in count():
    with torch.no_grad():
        action = policy_net(state).max(1).indices.view(1, 1) if t % 3 else torch.tensor([[t % 2]], dtype=torch.long)
    next_state = None if t % 7 == 6 else torch.tanh(state + 0.1 * (action.item() * 2 - 1) + wave(1, 3, shift=float(t)))
    memory.push(state, action, next_state, torch.tensor([0.0 if next_state is None else next_state.sum().item()]))
    state = next_state if next_state is not None else torch.zeros(1, 3)
    if t == 30:
        break
for _ in range(3):
    batch = Transition(*zip(*memory.sample(8)))
    mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    following = torch.cat([s for s in batch.next_state if s is not None])
    values = policy_net(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    next_values = torch.zeros(8)
    with torch.no_grad():
        next_values[mask] = target_net(following).max(1).values
    expected = next_values * GAMMA + torch.cat(batch.reward)
    loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    target, source = target_net.state_dict(), policy_net.state_dict()
    for key in source:
        target[key] = source[key] * TAU + target[key] * (1 - TAU)
    target_net.load_state_dict(target)
    print(f"{loss.item():.4f}")
show("target", target_net.layer2.weight)

rewards, log_probs = [1.0, 0.0, 2.0], []
for i, action in enumerate([0, 1, 1]):
    m = Categorical(F.softmax(policy_net(wave(1, 3, shift=float(i))), dim=1))
    assert m.sample().shape == (1,)
    log_probs.append(m.log_prob(torch.tensor([action])))
R, returns = 0, deque()
for r in rewards[::-1]:
    R = r + GAMMA * R
    returns.appendleft(R)
returns = torch.tensor(returns)
returns = (returns - returns.mean()) / (returns.std() + torch.finfo(torch.float32).eps.__float__())
loss = torch.cat([-lp * r for lp, r in zip(log_probs, returns)]).sum()
loss.backward()
show("policy loss", loss)
show("entropy", m.entropy())
