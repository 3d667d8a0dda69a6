// What ops that run a block have in common.
#pragma once

#include <memory>

#include "framework/op/block_rule.h"
#include "framework/op/op_def.h"

namespace skiff {

// Returns the definition of an op that runs a block, without slots. Its outputs keep the shapes
// that the program declares: lowering finds out the actual shapes from the block. No kernel runs
// it.
inline OpDef BlockOpDefinition(StaticText type, BlockRule rule) {
  OpDef def;
  def.type = type;
  def.infer = [](OpContext&) {};
  def.attrs = {{.name = "sub_block",
                .type = AttrType::kBlock,
                .doc = rule.is_gradient ? "The gradient block of the forward op's block."
                                        : "The block to run."}};
  // The ops of the block have their own rules.
  def.precision = Precision::kNone;
  if (rule.is_gradient) def.no_gradient_reason = "second derivatives are not provided";
  def.block = std::make_shared<const BlockRule>(rule);
  return def;
}

}  // namespace skiff
