// Fusions stated as patterns: ops whose values have names, and the op that takes their place, in
// the text format of programs (framework/ir/text.h). For example, a product and the addition of a
// bias become one op (fuse_linear_pass.cc):
//
//   {.before = R"({Out: [p]} = mul(X: [x], Y: [w])
//                 {Out: [s]} = elementwise_add(X: [p], Y: [b]))",
//    .condition = IsLinear,  // whether b is added to the rows of p, and the like
//    .after = {{.op = "{Out: [s]} = linear(X: [x], Y: [w], Bias: [b])",
//               .at = "s",
//               .origin = "p",
//               .attributes = LinearAttrs}},
//    .instead = {{"p", "s"}}}
//
// A pattern says which ops there are, how values connect the ops, and what must be true of them.
// PlanRewrite::TryReplace checks what every fusion needs. Nobody else may read the data of a value
// that vanishes, such as p. (A reader of the shape of p gets the shape of s.) The new op must have
// a kernel, and the rest of the plan must stay right.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/transpiler/pass.h"
#include "framework/transpiler/plan_rewrite.h"

namespace skiff {

// One or more ops with names for arguments, in the text format of programs. Throws an Error
// (kInvalidArgument) for any other text. Static patterns are parsed once.
struct Pattern {
  Pattern(const std::string& text);                          // NOLINT: a text is a pattern
  Pattern(const char* text) : Pattern(std::string(text)) {}  // NOLINT
  std::vector<Op> ops;
};

// The instructions and values of a plan that fit a pattern.
struct Match {
  const Plan& plan;
  const PlanRewrite& rewrite;
  std::map<std::string, ValueId> values = {};  // by name; none if the op lacks the argument
  std::map<std::string, size_t> makers = {};   // by name: the instruction with this output
  std::set<size_t> instructions = {};

  // Returns the value of that name; none if the op lacks it or the pattern doesn't name it.
  ValueId operator[](const std::string& name) const;
  // Returns the shape of the value of that name. Requires that there is one.
  const Shape& ShapeOf(const std::string& name) const { return rewrite.ShapeOf((*this)[name]); }
  // Return the op with the output of that name. Require that the pattern has one.
  const Instruction& MakerOf(const std::string& name) const;
  OpContext ContextOfMaker(const std::string& name) const;
  // Returns whether all attributes that the op with output `a` has are the same in the op with
  // output `b`. An attribute that isn't set has its default; without a default there, it isn't the
  // same. Requires that the pattern has both ops.
  bool HaveSameAttributes(const std::string& a, const std::string& b) const;
};

// An op that a fusion makes.
struct FusedOp {
  // One op. An argument that the match lacks is left out. All outputs named below are outputs of
  // ops in Fusion::before.
  Pattern op;
  // The fused op stands where the op with this output stood.
  std::string at;
  // It has the role and position of the op with this output, and draws the random numbers that
  // this op would draw; "": of the op at `at`.
  std::string origin = {};
  // The source of arguments in slots that `op` doesn't mention: the op with this output, from the
  // same slots; "": nothing.
  std::string arguments_of = {};
  // Outputs that are left out if nobody else reads them.
  std::vector<std::string> if_read = {};
  // More attributes than `op` states: the attributes that `attributes` returns, and then, by name,
  // the attributes of the ops with the outputs `attributes_of`. The first source that has an
  // attribute counts.
  std::vector<std::string> attributes_of = {};
  std::function<AttributeMap(const Match&)> attributes = nullptr;
};

struct Fusion {
  // For the gradient of other fusions, which precede it in the list: a name that both patterns
  // have. This fusion applies only where a forward fusion has been applied with the same value of
  // the name. Every other name in both patterns is the same value, too. Match has the values and
  // makers of both patterns.
  std::string gradient_of = {};
  // Ops that values connect. Equal names are the same value. The ops have the attributes that the
  // pattern gives; other attributes don't matter. A slot has exactly the arguments that the pattern
  // names, or none; slots that the pattern doesn't mention don't matter.
  //
  // The search begins at each op of the plan that fits the last op of the text, and goes on to
  // writers and then to readers of values that it knows. Of several readers it takes the first that
  // fits. If the search can't go on from there, it tries no other reader. It finds only ops that
  // the plan had before all fusions.
  Pattern before;
  // Returns whether the ops in `after` compute the same as the ops in `before`; null: always.
  std::function<bool(const Match&)> condition = nullptr;
  std::vector<FusedOp> after;
  // {"a", "b"}: who reads a, or only its shape, reads b from then on, which an op in `after`
  // writes. Where the ops have an a and no b, the fusion doesn't apply.
  std::map<std::string, std::string> instead = {};
};

}  // namespace skiff
