// The programs that the fuzzer changes: they run, and train where they can.
#pragma once

#include <string>
#include <vector>

#include "tests/harness/workload.h"

namespace skiff::fuzz {

// A program with everything that a run needs.
struct Seed {
  std::string name;
  std::shared_ptr<const Program> program;
  harness::NamedTensors variables;  // of the scope
  FeedList feeds;
  FetchList fetches;
};

// Returns programs with loops, branches, arrays, rank tables, beam search and data-dependent
// shapes, gradient ops without their forward half, and random programs of all ops and of ragged
// layers. Also returns the programs of PaddlePaddle in `files`, with params.npz and feed.npz, and
// maybe a startup.pb, beside each file. They depend on the files alone.
std::vector<Seed> SeedPrograms(const std::vector<std::string>& files);

}  // namespace skiff::fuzz
