import torch


def soft(z, k):
    return torch.log1p(torch.exp(k * z)) / k


def slope(z, k):
    return torch.sigmoid(k * z)


def slope_wrong(z, k):
    return k * torch.sigmoid(k * z)
