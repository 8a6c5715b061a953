"""Boxes, anchors and non-maximum suppression, as detectors have them."""

import math

import torch
from fixed import show, wave


def box_area(boxes):
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def box_iou(a, b):
    lt, rb = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    return inter / (box_area(a)[:, None] + box_area(b) - inter)


def nms(boxes, scores, threshold):
    keep, order = [], scores.argsort(descending=True)
    while order.numel() > 0:
        i = order[0].item()
        keep.append(i)
        if order.numel() == 1:
            break
        order = order[1:][box_iou(boxes[i : i + 1], boxes[order[1:]])[0] <= threshold]
    return torch.as_tensor(keep, dtype=torch.int64)


def batched_nms(boxes, scores, idxs, threshold):
    offsets = idxs.to(boxes) * (boxes.max() + torch.tensor(1).to(boxes))
    return nms(boxes + offsets[:, None], scores, threshold)


def anchors(sizes, ratios, grid, stride):
    h = torch.sqrt(torch.as_tensor(ratios))
    ws, hs = ((1 / h)[:, None] * torch.as_tensor(sizes)[None, :]).view(-1), (h[:, None] * sizes[0]).view(-1)
    base = torch.stack([-ws, -hs, ws, hs], dim=1).div(2).round()
    shifts = torch.arange(0, grid, dtype=torch.int32) * stride
    y, x = torch.meshgrid(shifts, shifts, indexing="ij")
    shifts = torch.stack((x.reshape(-1), y.reshape(-1), x.reshape(-1), y.reshape(-1)), dim=1)
    return (shifts.view(-1, 1, 4) + base.view(1, -1, 4)).reshape(-1, 4)


def encode(reference, proposals):
    w, h = proposals[:, 2] - proposals[:, 0], proposals[:, 3] - proposals[:, 1]
    gw, gh = reference[:, 2] - reference[:, 0], reference[:, 3] - reference[:, 1]
    dx = (reference[:, 0] + 0.5 * gw - proposals[:, 0] - 0.5 * w) / w
    dy = (reference[:, 1] + 0.5 * gh - proposals[:, 1] - 0.5 * h) / h
    return torch.stack((dx, dy, torch.log(gw / w), torch.log(gh / h)), dim=1)


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2.0):
    p = torch.sigmoid(inputs)
    ce = torch.nn.functional.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    return ((alpha * targets + (1 - alpha) * (1 - targets)) * ce * ((1 - p_t) ** gamma)).mean()


corner = (wave(6, 2) + 1) * 5
boxes = torch.cat([corner, corner + 3 + wave(6, 2, shift=1.0)], dim=1)
scores = torch.tensor([0.9, 0.8, 0.95, 0.3, 0.6, 0.61])
iou = box_iou(boxes, boxes)
show("iou", iou)
print(nms(boxes, scores, 0.3), batched_nms(boxes, scores, torch.tensor([0, 1, 0, 1, 0, 1]), 0.3))
all_anchors = anchors([4.0], [0.5, 1.0, 2.0], 3, 4)
print(all_anchors.shape, all_anchors[:3])
matched, index = box_iou(boxes, all_anchors.float()).max(dim=0)
index[matched < 0.1] = -1
print(index.unique(), (index >= 0).sum().item())
positive = torch.where(index >= 0)[0]
show("targets", encode(boxes[index[positive]], all_anchors[positive].float()))
logits = wave(6, 3).requires_grad_()
loss = sigmoid_focal_loss(logits, torch.nn.functional.one_hot(torch.arange(6) % 3, 3).float())
loss.backward()
show("loss", loss)
show("grad", logits.grad)
best = torch.topk(scores, 3)
print(best.values, best.indices, math.prod(iou.shape))
print(boxes.new_tensor([1, 2]), torch.nonzero(scores > 0.7).squeeze(1))
