"""Two networks against each other, with gradient penalty and spectral norm."""

import torch
import torch.nn as nn
from fixed import fill, show, wave
from torch.nn.utils import spectral_norm


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self, nz=4, ngf=3, nc=1):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 4, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(4, 1, 4, 1, 0), nn.Flatten(0)
        )

    def forward(self, input):
        return self.main(input)


def gradient_penalty(critic, real, fake, alpha):
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    out = critic(mixed)
    grad = torch.autograd.grad(out, mixed, torch.ones_like(out), create_graph=True, retain_graph=True, only_inputs=True)
    return ((grad[0].view(grad[0].size(0), -1).norm(2, dim=1) - 1) ** 2).mean()


netG, netD = Generator(), Discriminator()
netG.apply(weights_init)
netD.apply(weights_init)
fill(netG), fill(netD)
criterion = nn.BCEWithLogitsLoss()
optD = torch.optim.Adam(netD.parameters(), lr=0.02, betas=(0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=0.02, betas=(0.5, 0.999))
real = wave(3, 1, 8, 8)
for i in range(3):
    netD.zero_grad()
    label = torch.full((3,), 1.0, dtype=torch.float)
    errD_real = criterion(netD(real), label)
    errD_real.backward()
    fake = netG(wave(3, 4, 1, 1, shift=float(i)))
    label.fill_(0.0)
    output = netD(fake.detach())
    errD_fake = criterion(output, label)
    (errD_fake + 0.1 * gradient_penalty(netD, real, fake.detach(), 0.3)).backward()
    optD.step()
    netG.zero_grad()
    label.fill_(1.0)
    errG = criterion(netD(fake), label)
    errG.backward()
    optG.step()
    print(f"[{i}] Loss_D: {(errD_real + errD_fake).item():.4f} Loss_G: {errG.item():.4f}")
show("fake", netG.eval()(wave(1, 4, 1, 1)))
for p in netD.parameters():
    p.requires_grad = False
print(any(p.requires_grad for p in netD.parameters()), sum(p.numel() for p in netG.parameters()))
sn = spectral_norm(nn.Linear(3, 2))
print(sorted(sn.state_dict()))
