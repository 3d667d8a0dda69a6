// The key of a tuned op: everything that the times of its kernels depend on, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/op/op_context.h"

namespace skiff {

namespace internal {

// An op whose kernels are to be timed.
struct TuningRequest {
  const OpContext& context;
  // By input: whether the data stays the same from run to run, so that derived forms are made once
  // (parameters in evaluation).
  std::vector<bool> is_constant;
};

}  // namespace internal
using internal::TuningRequest;

// One line, without tabs, that is equal for two ops if their kernels take the same time: type,
// attributes that the definition knows, dtype, shape and layout of each argument (no layout where
// only the shape is read), which inputs are constant, and the number of threads.
//
//   conv2d {dilations = ints [1, 1], …} Input=float32 [64, 16, 32, 32] blocked16,
//   Filter=float32 [16, 16, 3, 3] plain constant -> Output=float32 …, threads=2
std::string TuningKey(const TuningRequest& request);

// The key without the number of threads.
std::string_view WithoutThreads(std::string_view key);

// For people: "conv2d [64, 16, 32, 32] blocked16, [16, 16, 3, 3]", the type with the shapes of the
// inputs and the layouts other than plain.
std::string ShortTuningKey(const TuningRequest& request);

}  // namespace skiff
