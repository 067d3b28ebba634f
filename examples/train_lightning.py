"""Train on packed batches with Lightning, and resume from its checkpoint.

The result of `loader.to("torch")` is a stateful loader in Lightning's sense: its state is saved in
checkpoints. It needs `index=`: without a known number of batches, Lightning requests one batch more than it
trains on, and a resumed run would miss it. Start it with torchrun, which sets all variables that the loader
reads; Lightning's own launcher sets no `RANK`. With `accumulate_grad_batches=n`, pass `steps_of=n`, and
multiply the loss by `n`, since Lightning divides by it.
"""

import tempfile

import lightning
import numpy as np
import torch
from packed_llama import fresh, loader_of

folder = tempfile.mkdtemp()
index = f"{folder}/lengths.arrow"


class Module(lightning.LightningModule):
    """The model and its losses."""

    def __init__(self):
        super().__init__()
        self.model, self.losses = fresh(), []

    def training_step(self, batch, index):
        loss = self.model(**batch, num_items_in_batch=batch.pop("step.trained")).loss
        self.losses.append(loss.item())
        return loss * self.trainer.world_size

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def fit(module, folder, checkpoint=None):
    """Return the loss of each step."""
    saving = lightning.pytorch.callbacks.ModelCheckpoint(
        folder, "{step}", every_n_train_steps=5, save_top_k=-1
    )
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=3, callbacks=[saving], use_distributed_sampler=False, logger=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    batches = loader_of(shuffle=True, index=index, totals={"trained": "labels != -100"})
    trainer.fit(module, batches.to("torch", int64=True), ckpt_path=checkpoint)
    return module.losses


losses = fit(Module(), folder)
resumed = fit(Module(), folder, f"{folder}/step=20.ckpt")
print(f"{len(losses)} losses, {len(resumed)} after resuming, equal: {np.allclose(losses[20:], resumed)}")
