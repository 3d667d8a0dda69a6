// What an op gives each of several ranks, which are threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {

struct RankRun {
  // By rank.
  std::vector<NamedTensors> outputs;
  std::vector<std::string> errors;  // "" without an Error
  std::vector<int64_t> bytes_sent;
};

// Runs the op once on each rank, with the inputs of that rank. Drawn delays, from `seed`, are
// between the messages. `settings` are those of each rank, and have no communicator. If their place
// is a device, rank r has device r and a communicator of NCCL. The op must be legal; Errors of the
// run are in the result, and so are writes that the op mustn't do.
RankRun RunOpOnRanks(const Op& op, const std::vector<NamedTensors>& inputs, uint64_t seed = 1,
                     const OpSettings& settings = {});

// Returns the kinds of places that this machine has: the CPU and, if there are `ranks` devices with
// kernels, devices.
std::vector<Place> PlacesOfRanks(int32_t ranks);

}  // namespace skiff::harness
