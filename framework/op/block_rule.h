// How values enter and leave the block that an op runs. Passes and the executor learn this here,
// never from the type of the op.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/program.h"

namespace skiff {

struct BlockRule {
  enum class Kind {
    // Runs the block while a variable is true. Variables from outside that the block writes keep
    // their values from each iteration to the next.
    kWhile,
    // Runs the block once, if a variable is true.
    kConditional,
    // Runs the block for each part of its inputs along dim 0. States are handed from one iteration
    // to the next.
    kRecurrent,
  };
  Kind kind = Kind::kWhile;
  // Whether this is the gradient op. It runs the gradient block of the forward op's block, the last
  // iteration first.
  bool is_gradient = false;
};

// The names of slots that all kinds of ops with blocks have.
struct BlockSlots {
  const char* scopes;    // ties the gradient op to its forward op
  const char* captured;  // variables outside that the block reads
  const char* results;   // variables outside that the op writes
};
BlockSlots SlotsOf(BlockRule::Kind kind);

// The attribute of gradient ops that names, for each gradient of a result, the variable inside that
// begins as it.
inline constexpr const char* kInnerGradientsAttr = "original_output_grad";

// Returns the variables of the block that the op sets before each iteration. The op must have the
// attributes that its definition demands.
std::vector<std::string> SetBeforeIteration(const Op& op, const BlockRule& rule);

}  // namespace skiff
