"""Losses on embeddings: SimCLR, triplets, CLIP, supervised contrastive, prototypes."""

import torch
import torch.nn.functional as F
from fixed import fill, show, wave
from torch import nn


def nt_xent(z1, z2, t=0.5):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    n = z1.size(0)
    sim = (z @ z.T) / t
    sim.fill_diagonal_(float("-inf"))
    return F.cross_entropy(sim, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


def supcon(features, labels, t=0.1):
    mask = torch.eq(labels.contiguous().view(-1, 1), labels.view(1, -1)).float()
    dots = torch.div(features @ features.T, t)
    dots = dots - dots.max(dim=1, keepdim=True)[0].detach()
    others = torch.scatter(torch.ones_like(mask), 1, torch.arange(len(labels)).view(-1, 1), 0)
    mask = mask * others
    log_prob = dots - torch.log((torch.exp(dots) * others).sum(1, keepdim=True))
    return -((mask * log_prob).sum(1) / mask.sum(1).clamp_min(1)).mean()


class CLIP(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Linear(6, 4), nn.Embedding(9, 4)
        self.logit_scale = nn.Parameter(torch.ones([]) * torch.log(torch.tensor(1 / 0.07)))

    def forward(self, image, text):
        i, t = self.image(image), self.text(text).mean(1)
        i, t = i / i.norm(dim=-1, keepdim=True), t / t.norm(dim=-1, keepdim=True)
        logits = self.logit_scale.exp() * i @ t.t()
        return logits, logits.t()


net = fill(nn.Linear(6, 4))
x = wave(5, 6)
loss = nt_xent(net(x), net(x + 0.1 * wave(5, 6, shift=3.0)))
loss.backward()
show("nt_xent", loss)
show("grad", net.weight.grad)
labels = torch.tensor([0, 1, 0, 1, 1])
show("supcon", supcon(F.normalize(net(x), dim=1), labels))
triplet = nn.TripletMarginLoss(margin=1.0, p=2)
show("triplet", triplet(net(x[:2]), net(x[2:4]), net(x[1:3])))
cosine = nn.CosineEmbeddingLoss(margin=0.1)
show("cosine", cosine(net(x[:2]), net(x[2:4]), torch.tensor([1, -1])))
with torch.no_grad():
    clip = fill(CLIP())
    clip.logit_scale.fill_(2.0)
opt = torch.optim.Adam(clip.parameters(), lr=0.05)
text = torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8], [0, 1]])
for _ in range(3):
    a, b = clip(x, text)
    loss = (F.cross_entropy(a, torch.arange(5)) + F.cross_entropy(b, torch.arange(5))) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        clip.logit_scale.clamp_(0, 4.6052)
    print(f"{loss.item():.4f}")
prototypes = torch.stack([net(x)[labels == c].mean(0) for c in labels.unique()])
show("distances", torch.cdist(net(x), prototypes))
print((-torch.cdist(net(x), prototypes)).argmax(1))
i, j = torch.triu_indices(5, 5, offset=1)
show("pairs", F.pairwise_distance(x[i], x[j]))
show("bce", F.multilabel_soft_margin_loss(net(x)[:, :3], F.one_hot(labels, 3).float()))
show("margin", F.multi_margin_loss(net(x), labels))
show("kl", F.kl_div(F.log_softmax(net(x), -1), F.softmax(-net(x), -1), reduction="batchmean"))
