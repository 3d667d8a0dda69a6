// From a program and the metas of its feeds to a plan: shapes inferred, values instead of names.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Op id -> place among the ops of the root block.
using OpPositions = std::unordered_map<int64_t, size_t>;

// Lowers the root block and changes nothing else: persistables that the program writes and the
// scope lacks are values of the scope all the same, and whoever prepares the plan makes them there.
// Errors: a feed that the program doesn't know or overwrites unread, of another dtype or LoD level
// or a shape that its variable doesn't admit; a variable read before it is written, or that the
// scope holds in another shape, dtype or place than the program says; a fetch that nothing writes;
// whatever a shape rule finds. They name op, block and creation site, and the op's place in the
// program as `positions` (by op id) knows it from before the passes; ops that a pass made stand
// where the lowered program has them.
Plan LowerProgram(const OpRegistry& registry, const Program& program, Place place,
                  const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                  const std::vector<std::string>& fetches, const Scope& scope,
                  const OpPositions& positions = {});

}  // namespace skiff
