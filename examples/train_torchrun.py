"""Train on packed batches in plain torch, on one rank or many, and continue on any number of ranks.

    torchrun --nproc-per-node 2 examples/train_torchrun.py 1
    torchrun --nproc-per-node 2 examples/train_torchrun.py 2     # continues with the second epoch

The loader takes its rank from torchrun. DDP averages gradients over ranks, so the sum of losses is divided by
the labels of the whole step, `step.trained`, and multiplied by the world size. `num_items_in_batch` is the
divisor of the losses of transformers. The state of the loader may be saved after any step; here it is saved
after each epoch.
"""

import os
import sys

import torch
import torch.distributed as dist
from packed_llama import fresh, loader_of
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")  # "nccl" on GPUs
rank, world_size = dist.get_rank(), dist.get_world_size()
loader = loader_of(shuffle=True, totals={"trained": "labels != -100"})
model = fresh()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
if os.path.exists("checkpoint.pt"):
    saved = torch.load("checkpoint.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    loader.load_state_dict(saved["loader"])

parallel = DistributedDataParallel(model)
steps = 0
while loader.epoch < int(sys.argv[1]):
    for batch in loader.to("torch", int64=True):
        loss = parallel(**batch, num_items_in_batch=batch.pop("step.trained")).loss
        (loss * world_size).backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
        if rank == 0 and steps % 5 == 0:
            shown = loss.item() * world_size
            print(f"epoch {loader.epoch}, step {steps}, loss of rank 0 {shown:.2f}", flush=True)
    if rank == 0:
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "loader": loader.state_dict(),
        }
        torch.save(state, "checkpoint.pt")
dist.destroy_process_group()
