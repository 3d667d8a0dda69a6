// A segment: a part of a program with a plan of its own. Segments hand arrays, gradient halves and
// contents on to later segments.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_context.h"
#include "framework/plan/plan.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// The known properties of an array's elements.
struct ArrayMeta {
  TensorMeta element;      // see TensorMeta::is_array
  bool rows_vary = false;  // from element to element, or from run to run
};
using ArrayMetas = std::map<std::string, ArrayMeta>;  // by the array's name
// Return whether plans for both are the same.
bool CanReplace(const ArrayMeta& a, const ArrayMeta& b);
bool CanReplace(const ArrayMetas& a, const ArrayMetas& b);

// The gradient half of a loop, prepared when its forward half was lowered.
struct PreparedGradient {
  // An output of the instruction, and the variable that it defines.
  struct Definition {
    size_t output = 0;
    std::string name;
    TensorMeta meta;
  };

  Instruction instruction = {};
  std::vector<Definition> defines = {};
  // Inputs of the instruction that are known only at the gradient op: the variables to read there.
  std::vector<std::pair<size_t, std::string>> reads = {};
  // If a later segment has the gradient op, the names under which the segment finds the inputs. An
  // empty name: no input, or an input in `reads`.
  std::vector<std::string> input_names = {};
};
// By the variable that ties a gradient op to its forward op.
using PreparedGradients = std::map<std::string, PreparedGradient>;
// Returns whether a plan that is made for either serves the other.
bool CanReplace(const PreparedGradients& a, const PreparedGradients& b);

// The known elements of variables, by name.
using ContentsByName = std::map<std::string, std::shared_ptr<const Tensor>>;
bool CanReplace(const ContentsByName& a, const ContentsByName& b);

// A part of a program whose shapes are all known when it begins: the ops from `first_op` up to
// `next_op`. A segment ends before the first op that reads a value whose shape or LoD depends on
// data, so most programs are one segment.
struct Segment {
  Plan plan;
  size_t first_op = 0;
  size_t next_op = 0;
  // The plan's fetches, which are the feeds of the next segment: the variables that later segments
  // read or that the user fetches, and the inputs of gradients_after. Of the last segment: the
  // user's fetches.
  std::vector<std::string> fetches;
  bool is_last = true;
  // The arrays at the beginning and at the end of the segment.
  ArrayMetas arrays_before = {};
  ArrayMetas arrays_after = {};
  // The gradient halves whose gradient ops are still to come, at the beginning and at the end of
  // the segment.
  PreparedGradients gradients_before = {};
  PreparedGradients gradients_after = {};
  // The known contents of variables that later segments read, at the beginning and at the end of
  // the segment.
  ContentsByName contents_before = {};
  ContentsByName contents_after = {};
};

}  // namespace skiff
