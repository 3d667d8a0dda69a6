// Where the ops of a block use each variable: how far an op may move.
#pragma once

#include <cstddef>
#include <limits>
#include <unordered_map>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

class UsePositions {
 public:
  // "After all ops" as a position.
  static constexpr size_t kNever = std::numeric_limits<size_t>::max();

  // The block must outlive the object and must not change meanwhile. Throws what UsesOf throws.
  UsePositions(const OpRegistry& registry, const Block& block);

  // Returns the first op after op `i` that op `i` must not move past, or kNever. Such an op has a
  // side effect, writes a variable that op `i` reads, or uses a variable that op `i` writes.
  size_t FirstConflict(size_t i) const;

 private:
  struct Positions {
    std::vector<size_t> touched;
    std::vector<size_t> written;
  };

  const OpRegistry& registry_;
  const Block& block_;
  std::unordered_map<const Var*, Positions> of_var_;
  std::vector<size_t> side_effects_;
};

}  // namespace skiff
