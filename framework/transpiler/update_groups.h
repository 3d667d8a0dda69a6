// Groups of the parameters of an update, and parts of a list for each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_def.h"

namespace skiff {

// Returns where the parts of the ranks begin among the elements of some tensors, taken one tensor
// after the other, and at the end the number of elements. The parts are about equal. `begins`: the
// elements before each tensor, and at the end all of them. A part begins at the nearest tensor with
// `whole`, else at a multiple of kPieceAlignment in its tensor.
std::vector<int64_t> CutIntoParts(const std::vector<int64_t>& begins, bool whole, int64_t ranks);

// Returns the update of some of the parameters. `members`: their places in the lists of the update,
// in the order that the lists of the result have. What isn't a list is the same.
Op UpdateOfSome(const OpDef& def, const Op& update, const std::vector<size_t>& members);

}  // namespace skiff
