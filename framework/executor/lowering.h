// From a program and the metas of its feeds to a plan: shapes inferred, values instead of names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Lowers the root block. Persistables that the program writes and the scope lacks are created
// there, uninitialised. Errors: a feed that the program doesn't know or doesn't read, of another
// dtype or a shape that its variable doesn't admit; a variable read before it is written; a fetch
// that nothing writes; whatever a shape rule finds. They name op, block and creation site.
Plan LowerProgram(const OpRegistry& registry, const Program& program, Place place,
                  const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                  const std::vector<std::string>& fetches, Scope* scope);

}  // namespace skiff
