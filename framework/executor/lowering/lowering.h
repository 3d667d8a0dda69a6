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

// Returns the segment of the root block that begins with op `first_op`. Changes nothing else: a
// persistable that the program writes and the scope lacks is a scope value all the same, and
// whoever prepares the plan makes it. The feeds are the user's if first_op is 0, else what the
// segment before fetches.
//
// Throws an Error for a feed that the program doesn't know, or that it overwrites before reading
// it; for a feed whose dtype, LoD level or shape its variable doesn't admit; for a variable that is
// read before it is written, or that the scope holds in another shape or dtype than the program
// says; for a fetch that nothing writes; and for whatever a shape rule finds. It names op,
// block, creation site and the op's place in the program.
Segment LowerSegment(LoweringInputs inputs, const Program& program,
                     const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                     const std::vector<std::string>& fetches, size_t first_op = 0);

// Returns the plan of a program that is one segment.
Plan LowerProgram(LoweringInputs inputs, const Program& program,
                  const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                  const std::vector<std::string>& fetches);

}  // namespace skiff
