// How the train programs share a training among the ranks that a launcher has started. A single
// process is one rank, with a communicator of nullptr.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/comm/communicator.h"
#include "framework/comm/world.h"
#include "framework/training/reader.h"

namespace skiff::models {

// Returns the place of this rank and of all ranks; World() for nullptr.
World WorldOf(const Communicator* ranks);

// Returns a reader that gives this rank its batches of a training, or of an evaluation, and reads
// ahead in a thread of its own, so that steps don't wait for it.
std::unique_ptr<training::Reader> TrainingShare(std::unique_ptr<training::Reader> reader,
                                                const World& world);
std::unique_ptr<training::Reader> EvaluationShare(std::unique_ptr<training::Reader> reader,
                                                  const World& world);

// Returns how many steps of a rank make an update of `global_batch` samples. Throws an Error
// (kInvalidArgument) unless this is a whole number of at least 1.
int64_t MergedSteps(int64_t global_batch, int64_t batch_size, int32_t ranks);

// Returns "4 ranks on 2 hosts, batches of 64 = 4 x 16", or, with gradients merged, "… of 128 = 4 x
// 2 x 16"; "" for one rank. All ranks call it; throws what Exchange throws.
std::string TextOfRanks(Communicator* ranks, int64_t merged_steps, int64_t batch_size);

}  // namespace skiff::models
