// Random changes of programs and of their feeds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "tests/fuzz/seed_programs.h"

namespace skiff::fuzz {

struct Mutant {
  uint64_t number = 0;
  const Seed* seed = nullptr;
  std::shared_ptr<Program> program;
  FeedList feeds;
  FetchList fetches;
  bool feeds_are_changed = false;
  std::vector<std::string> changes;
};

// Returns a seed with one to four changes: of attributes, dims, dtypes, LoD levels and kinds of
// variables, of arguments, ops, roles, blocks and sub-blocks, and of feeds and fetches. It depends
// on the seeds and the number alone.
Mutant MakeMutant(const std::vector<Seed>& seeds, uint64_t number);

}  // namespace skiff::fuzz
