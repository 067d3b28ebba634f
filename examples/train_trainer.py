"""Train on packed batches with the Trainer of transformers, and resume from its checkpoint.

The Trainer prepares its input itself, so it takes the dataset, a batch at a time. It needs the number of
steps before it begins: `index=` counts the batches, or pass `max_steps`. It sets the epoch, and counts the
labels of the batches that it accumulates, over all ranks, as the divisor of the loss: `totals=` is not
needed. From a checkpoint it continues after the last step: earlier batches are made again and skipped.
"""

import tempfile

import torch
from packed_llama import docs, fresh, loader_of
from transformers import Trainer, TrainingArguments

import seqflow as sf

index = tempfile.mkdtemp() + "/lengths.arrow"
held_out = docs.slice(0, 50)


def trainer_of(folder):
    """Return a trainer whose checkpoints are in `folder`."""
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=3,
        learning_rate=0.01,
        gradient_accumulation_steps=2,
        per_device_train_batch_size=1,  # one of the loader's batches
        per_device_eval_batch_size=1,
        accelerator_config={"dispatch_batches": False},  # True would cut all tensors to as many rows
        save_strategy="steps",
        save_steps=9,
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    return Trainer(
        fresh(),
        arguments,
        train_dataset=sf.torch.iterable(loader_of(shuffle=True, index=index), int64=True),
        eval_dataset=sf.torch.iterable(loader_of(held_out), int64=True),
        data_collator=sf.torch.collate,
    )


folder = tempfile.mkdtemp()
trainer = trainer_of(folder)
steps = trainer.train().global_step
loss = trainer.evaluate()["eval_loss"]
again = trainer_of(tempfile.mkdtemp())
again.train(resume_from_checkpoint=f"{folder}/checkpoint-9")
pairs = zip(trainer.model.parameters(), again.model.parameters(), strict=True)
print(f"{steps} steps, eval_loss {loss:.2f}, equal: {all(torch.allclose(a, b) for a, b in pairs)}")
