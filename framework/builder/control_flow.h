// Loops and branches. What all layers throw: activation.h.
//
//   // The smallest power of 2 that is at least n.
//   auto results = layers::WhileLoop(
//       [&](const Variables& v) { return layers::LessThan(v[0], n); },
//       [&](const Variables& v) { return Variables{v[0] * 2.0f}; },
//       {layers::FillConstant({1}, DType::kFloat32, 1.0)});
//
// The functions are called once, while the program is built: they append the ops of a block. A
// block sees the variables around it; what it makes is gone when it ends, but for its results.
// Gradients flow through all of these.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/variable.h"

namespace skiff {

using Variables = std::vector<Variable>;

namespace layers {

// Calls body(v) as long as condition(v), one bool, is true; v is at first `initial`, then what body
// has returned. Returns the last v. Throws an Error (kInvalidArgument) if `initial` is empty or
// body returns another number of variables, or one of another dtype or shape. A run throws an Error
// (kOutOfRange) after CompileOptions::max_loop_iterations iterations.
Variables WhileLoop(const std::function<Variable(const Variables&)>& condition,
                    const std::function<Variables(const Variables&)>& body,
                    const Variables& initial, Site site = Site::current());

// Returns what `if_true` returns if `condition`, one bool, is true, else what `if_false` returns.
// Only the ops of one of them run. Throws an Error (kInvalidArgument) if they return different
// numbers of variables.
Variables Cond(const Variable& condition, const std::function<Variables()>& if_true,
               const std::function<Variables()>& if_false, Site site = Site::current());

// Returns what the first branch returns whose condition is true, else what `otherwise` returns.
// Throws an Error (kInvalidArgument) if there is no branch, and what Cond throws.
Variables Case(const std::vector<std::pair<Variable, std::function<Variables()>>>& branches,
               const std::function<Variables()>& otherwise, Site site = Site::current());

// Returns what the branch with the number `index`, one int32 or int64, returns, else what
// `otherwise` returns. Throws what Case throws.
Variables SwitchCase(const Variable& index,
                     const std::vector<std::pair<int64_t, std::function<Variables()>>>& branches,
                     const std::function<Variables()>& otherwise, Site site = Site::current());

// A loop as Fluid's programs have it: the body assigns to variables outside (AssignTo), among them
// the condition. A variable that is made as a constant, such as a first state, is marked
// stop_gradient: undo that (StopGradient(false)) if a gradient is to flow through it.
//
//   While loop(condition);
//   loop.Body([&] {
//     layers::AssignTo(layers::Fc(state, 8), state);
//     layers::AssignTo(layers::LessThan(layers::Increment(step), n), condition);
//   });
class While {
 public:
  explicit While(const Variable& condition, Site site = Site::current());
  // Must be called once. Throws an Error (kInvalidArgument) if the body doesn't assign to the
  // condition, and what body throws; the loop is then not there.
  void Body(const std::function<void()>& body);

 private:
  Variable condition_;
  Site site_;
};

// Makes `to`, of this block or one around it, what x is now.
void AssignTo(const Variable& x, const Variable& to, Site site = Site::current());

}  // namespace layers
}  // namespace skiff
