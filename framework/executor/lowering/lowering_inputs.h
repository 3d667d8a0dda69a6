// The inputs of lowering.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "framework/base/place.h"
#include "framework/executor/lowering/segment.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"

namespace skiff {

class BlockLowering;

// Op id -> place among the ops of the root block.
using OpPositions = std::unordered_map<int64_t, size_t>;

// Runs plan passes on a joint body: one iteration of a loop, the gradient half after the forward
// half.
using BodyPasses = std::function<void(Plan* body)>;

struct LoweringInputs {
  const OpRegistry& registry;
  const Scope& scope;
  Place place;
  // The places of ops, by id, before the passes; an op that a pass made has its current place.
  OpPositions positions = {};
  BodyPasses body_passes = {};  // empty: none
  // LowerLoop, which calls BlockLowering in turn; LowerSegment sets the pointer.
  void (*lower_loop)(BlockLowering* outer, const Op& op, const OpDef& def,
                     size_t position) = nullptr;
  int64_t max_loop_iterations = 1000;  // CompileOptions::max_loop_iterations
  // Whether runs have other rows than the metas of feeds say.
  bool rows_vary = false;
  // Whether the plan is for a capacity: it then serves runs with other rows.
  bool is_for_capacity = false;
  // The arrays when the segment begins; lowering adds the arrays that ops write.
  std::shared_ptr<ArrayMetas> arrays = std::make_shared<ArrayMetas>();
  // Segment::gradients_before and contents_before.
  PreparedGradients gradients = {};
  ContentsByName contents = {};
  // How often bodies of loops have been lowered, which lowering counts.
  std::shared_ptr<int64_t> bodies = std::make_shared<int64_t>(0);
};

}  // namespace skiff
