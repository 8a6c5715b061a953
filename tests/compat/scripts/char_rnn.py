"""Recurrent networks on sequences of different lengths: packed, embedded, generated."""

import string

import torch
import torch.nn as nn
from fixed import fill, show
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

letters = string.ascii_lowercase + " "


def encode(word):
    return torch.tensor([letters.index(c) for c in word], dtype=torch.long)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(letters), 5)
        self.lstm = nn.LSTM(5, 4, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(8, 3)

    def forward(self, padded, lengths):
        packed = pack_padded_sequence(self.embedding(padded), lengths, batch_first=True, enforce_sorted=False)
        out, (h, c) = self.lstm(packed)
        out, n = pad_packed_sequence(out, batch_first=True)
        return self.fc(torch.cat([h[-2], h[-1]], dim=1)), out, n


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h, self.h2o = nn.Linear(input_size + hidden_size, hidden_size), nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        hidden = torch.tanh(self.i2h(torch.cat((input, hidden), 1)))
        return self.softmax(self.h2o(hidden)), hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


words = ["ab", "hello", "tree"]
encoded = [encode(w) for w in words]
padded = pad_sequence(encoded, batch_first=True, padding_value=26)
lengths = torch.tensor([len(w) for w in words])
model = fill(Classifier())
logits, out, n = model(padded, lengths)
show("logits", logits)
print(out.shape, n)
opt = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(4):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(padded, lengths)[0], torch.tensor([0, 1, 2]))
    loss.backward()
    opt.step()
print(f"{loss.item():.3f}")

rnn = fill(RNN(27, 6, 3))
criterion, lr = nn.NLLLoss(), 0.1
hidden = rnn.initHidden()
for i in encode("leaf"):
    line = torch.zeros(1, 27)
    line[0][i] = 1
    output, hidden = rnn(line, hidden)
loss = criterion(output, torch.tensor([1]))
loss.backward()
for p in rnn.parameters():
    p.data.add_(p.grad.data, alpha=-lr)
show("output", output)
topv, topi = output.topk(2)
print(topi.tolist(), topi[0][0].item())
gru, cell = fill(nn.GRU(3, 4)), fill(nn.GRUCell(3, 4))
x = torch.ones(2, 1, 3)
y, h = gru(x)
hx = torch.zeros(1, 4)
for step in x:
    hx = cell(step, hx)
print(torch.allclose(h[0], hx, atol=1e-6), [name for name, _ in gru.named_parameters()])
