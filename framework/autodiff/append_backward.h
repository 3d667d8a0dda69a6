// Reverse-mode differentiation of a program: appends the gradient ops of a loss.
//
// The ops that lead to the loss are walked backwards; each gives the gradient ops that its OpDef
// writes. The gradient of `x` is the variable `x@GRAD` with the dtype and dims of `x`; it is
// selected rows where the shape rule of what makes it says so (but in sub-blocks, where none runs).
// What several ops contribute to one gradient is written to `x@GRAD@RENAME@<k>` and added by one
// `sum` right behind the last of them.
//
//   {Out: ["loss@GRAD"]} = fill_constant() {value = 1.0, …}
//   {X@GRAD: ["hidden@GRAD"]} = mean_grad(X: ["hidden"], Out@GRAD: ["loss@GRAD"])
//   {X@GRAD: ["@EMPTY@"], Y@GRAD: ["w@GRAD"]} = mul_grad(X: ["image"], Y: ["w"], …)
//
// A variable wants a gradient if it is a float, isn't marked stop_gradient, isn't in `no_grad`, and
// is either written by no op before (a parameter that is trained, a feed) or computed from one that
// wants a gradient. Gradients that nobody wants are @EMPTY@, and ops that would compute nothing but
// those are left out.
//
// Programs are not SSA, so the walk works on definitions: the n-th write of a name. A gradient op
// that would read a forward value after it was overwritten is an Error, never a wrong number.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

struct BackwardOptions {
  // The parameters to differentiate by; empty: all that are trainable.
  std::vector<std::string> parameters;
  // Variables whose gradient is not wanted, besides those marked stop_gradient.
  std::vector<std::string> no_grad;
  // Error if the loss depends on no parameter to differentiate by.
  bool needs_parameter = false;
};

struct ParameterGradient {
  Var* parameter = nullptr;
  Var* gradient = nullptr;
};

struct BackwardResult {
  // In order of the parameters' creation; parameters without influence on the loss are left out.
  std::vector<ParameterGradient> parameters;
  // From each forward variable with a gradient to the name of that gradient: `x@GRAD`, or, if an
  // earlier call took that name, `x@GRAD_<n>`.
  std::map<std::string, std::string> gradients;
};

// Appends the gradient ops of `loss`, a variable of the root block, to the root block, and creates
// the gradients' variables. The ops get op_role Backward, the last writer of a parameter's gradient
// op_role_var = [parameter, gradient], and each the creation site of its forward op; the op that
// makes the loss gets the role Loss.
//
// Error if the loss isn't a float variable with one element that an op of the root block writes, if
// it depends on nothing that wants a gradient, for a name in the options that doesn't exist, for an
// op on the way that has no gradient, and if a value that a gradient op reads was overwritten. The
// program is unchanged then, but for empty blocks that differentiating sub-blocks may leave.
BackwardResult AppendBackward(const OpRegistry& registry, Program* program, std::string_view loss,
                              const BackwardOptions& options = {});

}  // namespace skiff
