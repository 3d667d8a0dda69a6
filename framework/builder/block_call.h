// Ops that run a block, on behalf of a layer. For authors of layers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/builder/layer_call.h"
#include "framework/builder/variable.h"
#include "framework/ir/program.h"

namespace skiff {

// The variables of outer blocks that a block uses, in the order of its ops.
struct BlockUses {
  std::vector<std::string> reads;  // as they are when the block begins
  std::vector<std::string> writes;
};
BlockUses UsesOutside(const Block& block);

// Appends a block to the current one and calls `build` while it is the current block. Returns the
// block. If `build` throws, the block is emptied.
Block* BuildBlock(const std::function<void()>& build);

// Appends the op that runs `body` as long as `condition` is true. Throws an Error
// (kInvalidArgument) if the body doesn't assign to the condition.
void AppendWhile(const LayerCall& call, const Variable& condition, const Block& body);

// Throws an Error (kInvalidArgument) unless x and `to` have the same dtype and, as far as known,
// the same dims. In the message, `what_x` and `what_to` precede the names.
void EnforceSame(const LayerCall& call, std::string_view what_x, const Variable& x,
                 std::string_view what_to, const Variable& to);

// Returns a new variable of the current block that ties an op with a block to its gradient op.
std::string NewScopes(const LayerCall& call);

}  // namespace skiff
