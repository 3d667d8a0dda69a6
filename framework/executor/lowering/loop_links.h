// How values enter and leave a joint body: the plan of a loop's block and gradient block before the
// cut into two halves. Internal to framework/executor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/plan/loop.h"
#include "framework/plan/plan.h"
#include "framework/tensor/shape.h"

namespace skiff {

// An input of the loop from the outer plan, which is the plan around the loop. If both members are
// empty: zeros.
struct OuterInput {
  ValueId value = {};           // of the outer plan
  std::string read_later = {};  // the value of this variable at the gradient op
};

// A feed of the joint body.
struct JointFeed {
  LoopFeed::Kind kind = LoopFeed::Kind::kInvariant;
  ValueId value = {};  // of the joint body
  OuterInput input = {};
};

// A fetch of the joint body.
struct JointFetch {
  LoopFetch::Kind kind = LoopFetch::Kind::kLast;
  ValueId value = {};        // of the joint body
  int feed = -1;             // of kCarried: its index among the feeds of the same half
  std::string defines = {};  // the outer variable; empty: none
  TensorMeta outer_meta = {};
  ValueId like = {};  // of kSum, a gradient: the outer plan's value for the forward variable
};

struct HalfLinks {
  std::vector<JointFeed> feeds;
  std::vector<JointFetch> fetches;
};

struct JointLinks {
  HalfLinks forward;
  HalfLinks gradient;
  // The feed of the forward half that says whether one more iteration runs, or none.
  ValueId condition = {};
  // How many slots a stack has, one for each iteration; -1: only a run knows.
  int64_t slots = -1;
};

// Returns the shape of a tensor with this many parts along dim 0.
inline Shape StackShape(int64_t parts, const Shape& part) {
  std::vector<int64_t> dims = part.ToVector();
  dims.insert(dims.begin(), parts);
  return Shape(dims);
}

}  // namespace skiff
