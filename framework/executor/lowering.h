// Makes a plan of a program: infers shapes from the metas of its feeds, and turns names into
// values.
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

// Returns the plan of the root block. Changes nothing else: a persistable that the program writes
// and the scope lacks is a scope value all the same, and whoever prepares the plan makes it.
//
// Throws an Error for a feed that the program doesn't know, or that it overwrites before reading
// it; for a feed whose dtype, LoD level or shape its variable doesn't admit; for a variable that is
// read before it is written, or that the scope holds in another shape, dtype or place than the
// program says; for a fetch that nothing writes; and for whatever a shape rule finds. It names op,
// block, creation site and the op's place in the program. `positions` (by op id) are the places
// before the passes; an op that a pass made has the place where it is now.
Plan LowerProgram(const OpRegistry& registry, const Program& program, Place place,
                  const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                  const std::vector<std::string>& fetches, const Scope& scope,
                  const OpPositions& positions = {});

}  // namespace skiff
