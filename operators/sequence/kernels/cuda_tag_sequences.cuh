// The sequences of ops on tags on CUDA; tag_sequences.h is the CPU's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "operators/sequence/kernels/cuda_sequences.cuh"
#include "operators/sequence/kernels/tag_sequences.h"

namespace skiff {

// The sequences of a run.
struct CudaTagSequences {
  // Returns the rows of a sequence; none if its length is refused, which one of the threads that
  // ask should note, at the position of the sequence.
  __device__ RowRange At(int64_t i, bool notes_fault) const {
    if (lengths == nullptr) return {ragged.Begin(i), ragged.End(i)};
    const int64_t length = lengths[i];
    const bool is_refused = length < 0 || length > padded;
    if (is_refused && notes_fault) NoteFault(fault, i, length);
    return {i * padded, i * padded + (is_refused ? 0 : length)};
  }

  CudaOffsets ragged;
  const int64_t* lengths;  // nullptr: they are ragged
  int64_t count;
  int64_t padded;
  uint64_t* fault;
};

// The sequences of an input, whose lowest level is known before the run.
class CudaTagSequenceInput {
 public:
  CudaTagSequenceInput(const PrepareContext& context, std::string_view slot,
                       std::string_view length_slot)
      : rows_(context, slot), length_(context, length_slot) {
    if (!length_.is_there()) level_.emplace(context, *context.InputLoD(slot));
  }

  CudaTagSequences Send(const KernelContext& run) {
    if (level_) {
      const CudaOffsets ragged = level_->Send(run, rows_.tensor(run));
      return Remember({ragged, nullptr, ragged.count, 0, run.fault});
    }
    const Shape& rows = rows_.shape(run);
    return Remember({{}, length_(run), rows[0], rows[1], run.fault});
  }

  // Of the last run.
  int64_t count() const { return last_.count; }
  int64_t padded() const { return last_.padded; }

 private:
  CudaTagSequences Remember(const CudaTagSequences& sequences) {
    last_ = sequences;
    return sequences;
  }

  In<> rows_;
  In<int64_t> length_;
  std::optional<CudaLevel> level_;
  CudaTagSequences last_{};
};

// Returns how many threads of a block, whole warps, take a tag each; some take several.
inline int ThreadsOfTags(int64_t tags) {
  constexpr int64_t kWarp = 32;
  const int64_t whole = (tags + kWarp - 1) / kWarp * kWarp;
  return static_cast<int>(whole < kCudaThreads ? whole : kCudaThreads);
}

// Calls body(tag) for all tags, by the threads of a block. A tag is always the same thread's.
template <class Body>
__device__ void ForEachTag(int64_t tags, const Body& body) {
  for (int64_t tag = threadIdx.x; tag < tags; tag += blockDim.x) body(tag);
}

}  // namespace skiff
