"""Model, data, training and evaluation."""

import functools

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

CENTRAL = 297  # examples that no client holds


class Net(nn.Module):
    """A small convolutional network for images of 8 x 8 pixels; the normalisation layer has a counter."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.classifier = nn.Linear(8 * 4 * 4, 10)

    def forward(self, images):
        return self.classifier(self.features(images))


@functools.cache
def split_dataset():
    """Return the clients' examples and the central ones, the same in every process."""
    images, labels = load_digits(return_X_y=True)
    inputs = torch.tensor(images / 16.0, dtype=torch.float32).reshape(-1, 1, 8, 8)
    dataset = TensorDataset(inputs, torch.tensor(labels))
    return random_split(dataset, [len(dataset) - CENTRAL, CENTRAL], torch.Generator().manual_seed(0))


@functools.cache
def load_data(partition_id, num_partitions, batch_size):
    """Return one client's loaders: to train on, and to evaluate on."""
    shared, _ = split_dataset()
    own = torch.utils.data.Subset(shared, range(partition_id, len(shared), num_partitions))
    evaluated = len(own) // 5
    trained, held_out = random_split(own, [len(own) - evaluated, evaluated], torch.Generator().manual_seed(1))
    return DataLoader(trained, batch_size, shuffle=True), DataLoader(held_out, batch_size)


def load_centralized_dataset():
    """Return the loader of the central examples."""
    return DataLoader(split_dataset()[1], batch_size=128)


def train(net, trainloader, epochs, lr):
    """Train in place; return the mean loss of a batch."""
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    net.train()
    total = 0.0
    for _ in range(epochs):
        for inputs, labels in trainloader:
            optimizer.zero_grad()
            loss = loss_function(net(inputs), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / (epochs * len(trainloader))


@torch.no_grad()
def test(net, testloader):
    """Return loss and accuracy of an example."""
    loss_function = nn.CrossEntropyLoss(reduction="sum")
    net.eval()
    loss, correct = 0.0, 0
    for inputs, labels in testloader:
        outputs = net(inputs)
        loss += loss_function(outputs, labels).item()
        correct += (outputs.argmax(dim=1) == labels).sum().item()
    return loss / len(testloader.dataset), correct / len(testloader.dataset)
