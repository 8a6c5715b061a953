"""A variational autoencoder, with distributions."""

import torch
import torch.utils.data
from fixed import fill, show, wave
from torch import nn, optim
from torch.distributions import Independent, Normal, kl_divergence
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(12, 8), nn.Linear(8, 2), nn.Linear(8, 2)
        self.fc3, self.fc4 = nn.Linear(2, 8), nn.Linear(8, 12)
        self.drawn = 0.0

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        assert eps.shape == std.shape
        self.drawn += 1.0
        return mu + wave(*std.shape, shift=self.drawn) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 12))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 12), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = fill(VAE())
optimizer = optim.Adam(model.parameters(), lr=1e-2)
data = torch.utils.data.TensorDataset((wave(10, 3, 4) + 1) / 2)
loader = torch.utils.data.DataLoader(data, batch_size=5, drop_last=True)
for epoch in range(1, 4):
    model.train()
    train_loss = 0
    for batch_idx, (batch,) in enumerate(loader):
        optimizer.zero_grad()
        recon, mu, logvar = model(batch)
        loss = loss_function(recon, batch, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(loader.dataset)))
with torch.no_grad():
    show("sample", model.decode(wave(2, 2)).cpu())
posterior, prior = Normal(mu, (0.5 * logvar).exp()), Normal(torch.zeros_like(mu), torch.ones_like(mu))
kl = kl_divergence(posterior, prior).sum(-1)
print(torch.allclose(kl.sum(), -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()), atol=1e-5))
show("log_prob", Independent(posterior, 1).log_prob(torch.zeros(5, 2)))
show("entropy", posterior.entropy())
print(posterior.rsample().requires_grad, posterior.sample().requires_grad, prior)
