"""The Tensor and the operations on it, under PyTorch's names."""
