// Reverse-mode differentiation: appends the gradient ops of a loss to a program.
//
// AppendBackward walks the ops that lead to the loss in reverse order and appends the gradient ops
// that each OpDef defines. The gradient of `x` is the variable `x@GRAD` with the dtype and dims of
// `x`. It is selected rows if the shape rule of its writer says so. If several ops contribute to a
// gradient, they write to `x@GRAD@RENAME@<k>`, and a `sum`, directly after the last contribution,
// adds all.
//
//   {Out: ["loss@GRAD"]} = fill_constant() {value = 1.0, …}
//   {X@GRAD: ["hidden@GRAD"]} = mean_grad(X: ["hidden"], Out@GRAD: ["loss@GRAD"])
//   {X@GRAD: ["@EMPTY@"], Y@GRAD: ["w@GRAD"]} = mul_grad(X: ["image"], Y: ["w"], …)
//
// A variable wants a gradient if it is a float, is neither marked stop_gradient nor in `no_grad`,
// and is either written by no earlier op (a trained parameter, a feed) or computed from a variable
// that wants a gradient. Unwanted gradients are @EMPTY@; ops that would compute nothing else are
// left out.
//
// For an op that runs a block (loops, branches: framework/op/block_rule.h), AppendBackward makes a
// gradient block, and gives the forward block an `assign` for each value that a gradient op reads
// and the block overwrites. Other ops with blocks have no gradient.
//
// Programs are not SSA, so the walk works on definitions: the n-th write of a name. If a gradient
// op would read a forward value that has been overwritten, AppendBackward throws Error.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/api/program.h"
#include "framework/op/api/default_registry.h"

namespace skiff {

struct BackwardOptions {
  // The parameters to differentiate with respect to; empty: all that are trainable.
  std::vector<std::string> parameters = {};
  // If there are any: the variables of the root block to differentiate with respect to, instead of
  // parameters and feeds, whatever marks they have. Ops of the root block may compute them.
  std::vector<std::string> inputs = {};
  // Variables that want no gradient, besides those marked stop_gradient.
  std::vector<std::string> no_grad = {};
  // Whether to throw Error if the loss depends on none of the parameters.
  bool needs_parameter = false;
};

struct ParameterGradient {
  ir::Var* parameter = nullptr;
  ir::Var* gradient = nullptr;
};

struct BackwardResult {
  // In order of the parameters' creation. Parameters that don't influence the loss are left out. If
  // BackwardOptions::inputs isn't empty, so are all parameters outside it.
  std::vector<ParameterGradient> parameters = {};
  // Maps each forward variable with a gradient to the gradient's name: `x@GRAD`, or `x@GRAD_<n>` if
  // an earlier call took that name.
  std::map<std::string, std::string> gradients = {};
};

// Appends the gradient ops of `loss`, a variable of the root block, to the root block, and creates
// the variables of the gradients. The ops get op_role Backward and the creation site of their
// forward op; the last writer of a parameter's gradient gets op_role_var = [parameter, gradient].
// The op that computes the loss gets the role Loss.
//
// Throws Error (kInvalidArgument) if the loss isn't a float variable with one element, written by
// an op of the root block; if the loss depends on no variable with a gradient (the Error names the
// ops on the way, such as arg_max, that let no gradient through), or not on one of `inputs`; if a
// name in the options doesn't exist; if an input isn't a float or has several writers. Throws Error
// (kUnimplemented) if an op on the way has no gradient, and Error (kFailedPrecondition) if a value
// that a gradient op reads was overwritten. The program is then unchanged.
BackwardResult AppendBackward(const OpRegistry& registry, Program* program, std::string_view loss,
                              const BackwardOptions& options = {});

}  // namespace skiff
