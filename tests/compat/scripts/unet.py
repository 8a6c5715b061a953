"""Segmentation: a U-Net with skips, upsampling and Dice loss."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from fixed import fill, show, wave


class DoubleConv(nn.Module):
    def __init__(self, cin, cout, mid=None):
        super().__init__()
        mid = mid or cout
        self.double_conv = nn.Sequential(
            nn.Conv2d(cin, mid, kernel_size=3, padding=1, bias=False),
            nn.GroupNorm(2, mid),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid, cout, kernel_size=3, padding="same", bias=False),
            nn.InstanceNorm2d(cout, affine=True),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, cin, cout, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(cin, cout, cin // 2)
        else:
            self.up = nn.ConvTranspose2d(cin, cin // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(cin, cout)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        dy, dx = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, channels=1, classes=2, bilinear=True):
        super().__init__()
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(channels, 4)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 16 // factor))
        self.up1, self.up2 = Up(16, 8 // factor, bilinear), Up(8, 4, bilinear)
        self.outc = nn.Conv2d(4, classes, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x = self.up1(self.down2(x2), x2)
        return self.outc(self.up2(x, x1))


def dice(input, target, eps=1e-6):
    dims = (-1, -2)
    inter = 2 * (input * target).sum(dim=dims)
    sets = input.sum(dim=dims) + target.sum(dim=dims)
    sets = torch.where(sets == 0, inter, sets)
    return ((inter + eps) / (sets + eps)).mean()


for bilinear in (True, False):
    net = fill(UNet(bilinear=bilinear))
    x = wave(2, 1, 10, 9)
    mask = (x[:, 0] > 0.2).long()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9, foreach=True)
    for _ in range(2):
        pred = net(x)
        target = F.one_hot(mask, 2).permute(0, 3, 1, 2).float()
        loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))(pred, mask)
        loss += 1 - dice(F.softmax(pred, dim=1), target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        print(f"{loss.item():.3f}")
    show("pred", net(x))
    confusion = torch.bincount(mask.flatten() * 2 + net(x).argmax(1).flatten(), minlength=4).reshape(2, 2)
    print(confusion.sum().item(), confusion.shape)
shuffled = F.pixel_shuffle(wave(1, 4, 2, 2), 2)
print(torch.equal(F.pixel_unshuffle(shuffled, 2), wave(1, 4, 2, 2)))
show("nearest", F.interpolate(wave(1, 1, 2, 3), scale_factor=2, mode="nearest"))
show("bicubic", F.interpolate(wave(1, 1, 3, 3), size=(5, 4), mode="bicubic"))
show("unfold", F.fold(F.unfold(wave(1, 1, 4, 4), 2), (4, 4), 2))
