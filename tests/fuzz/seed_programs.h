// The programs that the fuzzer changes: they run, and train where they can.
#pragma once

#include <string>
#include <vector>

#include "tests/harness/workload.h"

namespace skiff::fuzz {

// A program with all that it needs to run.
struct Seed {
  std::string name;
  std::shared_ptr<const Program> program;
  harness::NamedTensors variables;  // of the scope
  FeedList feeds;
  FetchList fetches;
};

// Returns programs with loops, branches, arrays, rank tables, beam search and shapes that depend on
// data, gradient ops without their forward half, random programs of all ops and of ragged layers,
// and those of PaddlePaddle in `files`, which have params.npz and feed.npz, and may have a
// startup.pb, beside them. They depend on the files alone.
std::vector<Seed> SeedPrograms(const std::vector<std::string>& files);

}  // namespace skiff::fuzz
