"""Train on packed batches with Accelerate, and resume from a checkpoint in the middle of an epoch.

`accelerate launch` sets the ranks as torchrun does, and the loader reads them: it needs no `prepare`.
`register_for_checkpointing` puts its state into `save_state`. Accelerate divides the loss of each batch by
the number of accumulated batches, which must be undone. To other devices, tensors are moved by hand: `{name:
tensor.to(accelerator.device) for name, tensor in batch.items()}`.
"""

import tempfile

import numpy as np
import torch
from accelerate import Accelerator
from packed_llama import fresh, loader_of


def train(epochs, save_after=None, folder=None, resume=False):
    """Return the loss of each batch."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    loader = loader_of(shuffle=True, totals={"trained": "labels != -100"}, steps_of=2)
    model = fresh()
    model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters(), lr=0.01))
    accelerator.register_for_checkpointing(loader)
    if resume:
        accelerator.load_state(folder)
    losses = []
    while loader.epoch < epochs:
        for batch in loader.to("torch", int64=True):
            with accelerator.accumulate(model):
                loss = model(**batch, num_items_in_batch=batch.pop("step.trained")).loss
                accelerator.backward(
                    loss * accelerator.gradient_accumulation_steps * accelerator.num_processes
                )
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
            if len(losses) == save_after:
                accelerator.save_state(folder)
    return losses


folder = tempfile.mkdtemp()
losses = train(2, save_after=6, folder=folder)
resumed = train(2, folder=folder, resume=True)
print(f"{len(losses)} losses, {len(resumed)} after resuming, equal: {np.allclose(losses[6:], resumed)}")
