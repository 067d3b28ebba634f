"""Audio: WAV files as samples and lengths, cut into frames of 25 ms every 10 ms; spectra, padded by similar lengths.

python examples/audio.py
"""

import io
import wave

import numpy as np
import pyarrow as pa

import seqflow as sf

RATE, FRAME, STEP = 16_000, 400, 160


def sound(seconds, pitch):
    """Return the bytes of a WAV file with one tone."""
    samples = np.sin(2 * np.pi * pitch * np.arange(int(RATE * seconds)) / RATE) * 20_000
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((1, 2, RATE, 0, "NONE", ""))
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


def decoded(record):
    """Read the files of a block: samples between -1 and 1, and how many each has."""
    found = []
    for data in np.split(record["wav.values"], np.cumsum(record["wav.lengths"])[:-1]):
        with wave.open(io.BytesIO(data.tobytes())) as reader:
            found.append(
                np.frombuffer(reader.readframes(reader.getnframes()), "<i2").astype(np.float32) / 32_768
            )
    frames, counts = [], []
    for samples in found:
        windows = np.lib.stride_tricks.sliding_window_view(samples, FRAME)[::STEP]
        frames.append(np.log1p(np.abs(np.fft.rfft(windows * np.hanning(FRAME), axis=1))).astype(np.float32))
        counts.append(len(windows))
    return {"spectra.values": np.concatenate(frames), "spectra.lengths": np.array(counts)}


table = pa.table({"wav": [sound(1.0, 440), sound(0.2, 880), sound(0.5, 220), sound(0.25, 660)]})
plan = sf.Buckets([50], sf.Rows(2))
for batch in sf.Loader(table, prepare=decoded, batch=plan, pad={"spectra": 0.0}):
    loudest = batch["spectra"].max(axis=1).argmax(axis=1) * RATE / FRAME
    print(batch["spectra"].shape, "spectra; loudest at", loudest.tolist(), "Hz")
    assert batch["spectra"].shape[2] == FRAME // 2 + 1
