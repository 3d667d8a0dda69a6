// Makes plans of a program: infers shapes from the metas of its feeds, and turns names into
// values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Op id -> place among the ops of the root block.
using OpPositions = std::unordered_map<int64_t, size_t>;

// What is known of the elements of an array.
struct ArrayMeta {
  TensorMeta element;      // see TensorMeta::is_array
  bool rows_vary = false;  // from element to element, or from run to run
};
using ArrayMetas = std::map<std::string, ArrayMeta>;  // by the array's name
// Return whether plans for these elements are the same.
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
  // If a later segment has the gradient op, the names under which it finds the inputs. Empty: none,
  // or one of `reads`.
  std::vector<std::string> input_names = {};
};
// By the variable that ties a gradient op to its forward op.
using PreparedGradients = std::map<std::string, PreparedGradient>;
// Returns whether a plan that is made for one serves the other.
bool CanReplace(const PreparedGradients& a, const PreparedGradients& b);

// What is known of the elements of variables, by name.
using ContentsByName = std::map<std::string, std::shared_ptr<const Tensor>>;
bool CanReplace(const ContentsByName& a, const ContentsByName& b);

// A part of a program whose shapes are all known when it begins: the ops from `first_op` up to
// `next_op`. A segment ends before the first op that reads a value whose shape or LoD depends on
// data, so most programs are one segment.
struct Segment {
  Plan plan;
  size_t first_op = 0;
  size_t next_op = 0;
  // The variables that later segments read or that the user fetches, and inputs of gradients_after:
  // the plan's fetches, and the feeds of the next segment. Of the last segment: the user's fetches.
  std::vector<std::string> fetches;
  bool is_last = true;
  // The arrays when it begins and when it ends.
  ArrayMetas arrays_before = {};
  ArrayMetas arrays_after = {};
  // The gradient halves that earlier segments have left to this one, and this one to later ones.
  PreparedGradients gradients_before = {};
  PreparedGradients gradients_after = {};
  // What later segments know of the variables that they read.
  ContentsByName contents_before = {};
  ContentsByName contents_after = {};
};

// Runs plan passes on the body of a loop: one iteration, its gradient half after the forward half.
using BodyPasses = std::function<void(Plan* body)>;

// What plans are made with.
struct LoweringInputs {
  const OpRegistry& registry;
  const Scope& scope;
  Place place;
  // The places of ops, by id, before the passes; an op that a pass made has the place where it is
  // now.
  OpPositions positions = {};
  BodyPasses body_passes = {};         // empty: none
  int64_t max_loop_iterations = 1000;  // CompileOptions::max_loop_iterations
  // Whether runs have other rows than the metas of feeds say.
  bool rows_vary = false;
  // Whether the plan is one for a capacity, so that these runs have it, too.
  bool is_for_capacity = false;
  // When the segment begins; lowering adds to it.
  std::shared_ptr<ArrayMetas> arrays = std::make_shared<ArrayMetas>();
  // Segment::gradients_before and contents_before.
  PreparedGradients gradients = {};
  ContentsByName contents = {};
  // How often bodies of loops have been lowered, which lowering counts.
  std::shared_ptr<int64_t> bodies = std::make_shared<int64_t>(0);
};

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
Segment LowerSegment(const LoweringInputs& inputs, const Program& program,
                     const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                     const std::vector<std::string>& fetches, size_t first_op = 0);

// Returns the plan of a program that is one segment.
Plan LowerProgram(const LoweringInputs& inputs, const Program& program,
                  const std::vector<std::pair<std::string, TensorMeta>>& feeds,
                  const std::vector<std::string>& fetches);

}  // namespace skiff
