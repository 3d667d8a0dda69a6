// The feeds and fetches of a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/tensor/api/tensor.h"

namespace skiff {

// {name, tensor}; the tensors are read during the run, never written. If another thread writes to
// one meanwhile, the run reads some elements before and some after, but touches no other memory.
using FeedList = std::vector<std::pair<std::string, Tensor>>;
// Names of variables; the value is the one at the end of the program.
using FetchList = std::vector<std::string>;

}  // namespace skiff
