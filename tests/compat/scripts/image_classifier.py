"""The first training loop of a tutorial: data, a convolutional network, training and testing."""

import torch
from fixed import fill, show, wave
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, count, transform=None, target_transform=None):
        self.images = wave(count, 1, 8, 8)
        self.labels = (torch.arange(count) * 7) % 3
        self.transform, self.target_transform = transform, target_transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        image, label = self.images[idx], self.labels[idx]
        if self.transform:
            image = self.transform(image)
        return image, label


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.pool, self.conv2 = nn.Conv2d(1, 4, 3), nn.MaxPool2d(2, 2), nn.Conv2d(4, 6, 2)
        self.flatten = nn.Flatten()
        self.stack = nn.Sequential(nn.Linear(24, 10), nn.ReLU(), nn.Linear(10, 3))

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = torch.relu(self.conv2(x))
        return self.stack(self.flatten(x))


device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
torch.manual_seed(42)
train = DataLoader(Images(20, transform=lambda x: (x - 0.1) / 0.5), batch_size=8, shuffle=False, num_workers=0)
test = DataLoader(Images(9), batch_size=4)
model = fill(Net().to(device))
print(f"Using {device} device")
print(model)
loss_fn, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=1e-1, momentum=0.9)


def train_loop(loader):
    size = len(loader.dataset)
    model.train()
    for batch, (X, y) in enumerate(loader):
        X, y = X.to(device), y.to(device)
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 2 == 0:
            print(f"loss: {loss.item():>7f}  [{batch * loader.batch_size + len(X):>5d}/{size:>5d}]")


def test_loop(loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for X, y in loader:
            pred = model(X)
            test_loss += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
    print(f"Accuracy: {(100 * correct / len(loader.dataset)):>0.1f}%, Avg loss: {test_loss / len(loader):>8f}")


for t in range(2):
    print(f"Epoch {t + 1}\n-------")
    train_loop(train)
    test_loop(test)
show("weight", model.conv1.weight)
