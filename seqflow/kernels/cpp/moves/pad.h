// Pads flat sequences, and back.
#pragma once

#include "moves/copy.h"
#include "moves/padding.h"

namespace seqflow {
namespace SEQFLOW_ISA {

struct Sequence {
  const uint8_t *data;
  int64_t bytes, count, room;  // count rows of data, room for so many more
};

// The part of a sequence that is kept.
inline Sequence kept(const Padding &job, int64_t k) {
  const int64_t length = job.offsets[k + 1] - job.offsets[k];
  const int64_t count = length < job.width ? length : job.width;
  const int64_t start = job.offsets[k] + (job.left ? length - count : 0);
  return {job.flat + start * job.row_bytes, count * job.row_bytes, count, job.width - count};
}

inline void pad_streaming(const Padding &job, int64_t begin, int64_t end) {
  Stream padded(job.padded + begin * job.width * job.row_bytes);
  for (int64_t k = begin; k < end; ++k) {
    const Sequence sequence = kept(job, k);
    const int64_t room_bytes = sequence.room * job.row_bytes;
    if (job.left) padded.fill(job.pattern, room_bytes);
    padded.write(sequence.data, sequence.bytes);
    if (!job.left) padded.fill(job.pattern, room_bytes);
  }
  padded.finish();
  finish_streams();
}

inline void pad_plainly(const Padding &job, int64_t begin, int64_t end) {
  uint8_t *to = job.padded + begin * job.width * job.row_bytes;
  for (int64_t k = begin; k < end; ++k, to += job.width * job.row_bytes) {
    const Sequence sequence = kept(job, k);
    const int64_t room_bytes = sequence.room * job.row_bytes;
    copy(to + (job.left ? room_bytes : 0), sequence.data, sequence.bytes);
    fill(to + (job.left ? 0 : sequence.bytes), job.pattern, room_bytes);
  }
}

inline void pad(const Padding &job, int64_t begin, int64_t end) {
  if (job.streams && job.pattern.repeats)
    pad_streaming(job, begin, end);
  else
    pad_plainly(job, begin, end);
  uint8_t *mask = job.mask + begin * job.width;
  for (int64_t k = begin; k < end; ++k, mask += job.width) {
    const Sequence sequence = kept(job, k);
    memset(mask + (job.left ? sequence.room : 0), 1, sequence.count);
    memset(mask + (job.left ? 0 : sequence.count), 0, sequence.room);
  }
}

// The first kept element of row k of the padded array.
inline const uint8_t *kept_in_row(const Padding &job, int64_t k, const Sequence &sequence) {
  const uint8_t *row = job.padded + k * job.width * job.row_bytes;
  return row + (job.left ? sequence.room * job.row_bytes : 0);
}

inline void unpad(const Padding &job, int64_t begin, int64_t end) {
  Stream stream(job.flat + job.offsets[begin] * job.row_bytes);
  for (int64_t k = begin; k < end; ++k) {
    const Sequence sequence = kept(job, k);
    const uint8_t *from = kept_in_row(job, k, sequence);
    prefetch(reinterpret_cast<uintptr_t>(from) + static_cast<uint64_t>(job.width * job.row_bytes), 512);
    if (job.streams)
      stream.write(from, sequence.bytes);
    else
      copy(job.flat + job.offsets[k] * job.row_bytes, from, sequence.bytes);
  }
  if (job.streams) {
    stream.finish();
    finish_streams();
  }
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
