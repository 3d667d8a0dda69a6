// The random numbers of the data that a training reads: the contents, order and changes of
// generated samples.
//
// Data and programs draw with the training's seed, but never the same numbers: the ids of data
// streams have a bit that no op's id has. (Op ids count from 0, and the highest bit says whether a
// program trains: see docs/determinism.md.)
#pragma once

#include <cstdint>

#include "framework/tensor/philox.h"

namespace skiff::training {

enum class DataStream : uint32_t {
  kTrainingSamples,  // of data that is generated, as the next; a step is a sample
  kValidationSamples,
  kShuffle,        // a step is an epoch
  kAugmentation,   // likewise
  kMasking,        // likewise
  kSentencePairs,  // likewise
};

inline Philox DataRandom(uint64_t seed, DataStream stream, int64_t step) {
  constexpr uint64_t kOfData = uint64_t{1} << 30;
  return Philox({.seed = seed,
                 .op_id = kOfData | static_cast<uint64_t>(stream),
                 .step = static_cast<uint64_t>(step)});
}

}  // namespace skiff::training
