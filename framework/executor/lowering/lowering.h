// Makes plans of a program: infers shapes from the metas of its feeds, and turns names into
// values.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "framework/executor/lowering/lowering_inputs.h"
#include "framework/executor/lowering/segment.h"
#include "framework/ir/program.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns the segment of the root block that begins with op `first_op`. Doesn't change the scope: a
// persistable that the program writes and the scope lacks is a scope value all the same, and
// PreparedPlan creates the variable. The feeds are the user's if first_op is 0, else the fetches of
// the segment before.
//
// Throws an Error for a feed that the program lacks, or overwrites before reading it; for a feed
// whose dtype, LoD level or shape the variable doesn't admit; for a variable that is read before an
// op writes it, or has another shape or dtype in the scope than in the program; for a fetch that
// nothing writes; and for mistakes that a shape rule finds. The Error names op, block, creation
// site and the op's place in the program.
Segment LowerSegment(LoweringInputs inputs, const Program& program,
                     const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                     const std::vector<std::string>& fetches, size_t first_op = 0);

// Returns the plan of a program that is one segment.
Plan LowerProgram(LoweringInputs inputs, const Program& program,
                  const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                  const std::vector<std::string>& fetches);

}  // namespace skiff
