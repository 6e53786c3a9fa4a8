"""Half precision with a scaler, gradients gathered over two batches, and a clipped norm that is logged."""

import torch
from torch import nn
from torch.amp import GradScaler, autocast


def main():
    device = "cuda"
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = GradScaler("cuda")
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    logged = {"loss": 0.0, "norm": 0.0}
    optimizer.zero_grad(set_to_none=True)
    for step in range(4000):
        x = torch.randn(4, 1, 8, 8, device=device)
        y = torch.randint(0, 4, (4,), device=device)
        with autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x), y) / 2
        scaler.scale(loss).backward()
        if step % 2 == 1:
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
            logged["norm"] = norm.item()
            logged["loss"] = loss.detach().cpu().item()
    print(logged, scaler.get_scale())


if __name__ == "__main__":
    main()
