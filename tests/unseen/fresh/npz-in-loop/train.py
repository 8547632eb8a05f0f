"""Mean image of each class."""
import numpy as np

data = np.load("train.npz")
sums = np.zeros((10, 64, 64))
counts = np.zeros(10)
for i in range(len(data["labels"])):
    sums[data["labels"][i]] += data["images"][i]
    counts[data["labels"][i]] += 1
print((sums.sum(axis=(1, 2)) / counts).round().astype(int))
