// Loops and branches. Errors of all layers: layers.h.
//
//   // The smallest power of 2 that is at least n.
//   auto results = layers::WhileLoop(
//       [&](const Variables& v) { return layers::LessThan(v[0], n); },
//       [&](const Variables& v) { return Variables{v[0] * 2.0f}; },
//       {layers::FillConstant({1}, DType::kFloat32, 1.0)});
//
// The functions are called once, while the program is built: they append the ops of a block. A
// block sees the variables around it; except for its results, the block's variables are gone at its
// end. Gradients flow through all loops and branches.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff {

using Variables = std::vector<Variable>;

namespace layers {

// Calls body(v) as long as condition(v), one bool, is true; v is at first `initial`, then the
// result of the last call. Returns the last v. Throws an Error (kInvalidArgument) if `initial` is
// empty or body returns another number of variables, or a variable of another dtype or shape. A run
// throws an Error (kOutOfRange) after CompileOptions::max_loop_iterations iterations.
Variables WhileLoop(const std::function<Variable(const Variables&)>& condition,
                    const std::function<Variables(const Variables&)>& body,
                    const Variables& initial, Site site = Site::current());

// Returns the results of `if_true` if `condition`, one bool, is true, else of `if_false`. Only the
// ops of this branch run. Throws an Error (kInvalidArgument) if the branches return different
// numbers of variables.
Variables Cond(const Variable& condition, const std::function<Variables()>& if_true,
               const std::function<Variables()>& if_false, Site site = Site::current());

// Returns the results of the first branch whose condition is true, else of `otherwise`. Throws an
// Error (kInvalidArgument) if there is no branch, and the Errors of Cond.
Variables Case(const std::vector<std::pair<Variable, std::function<Variables()>>>& branches,
               const std::function<Variables()>& otherwise, Site site = Site::current());

// Returns the results of the branch with the number `index`, one int32 or int64, else of
// `otherwise`. Throws the Errors of Case.
Variables SwitchCase(const Variable& index,
                     const std::vector<std::pair<int64_t, std::function<Variables()>>>& branches,
                     const std::function<Variables()>& otherwise, Site site = Site::current());

// Runs one of several blocks that assign to variables outside (AssignTo): the block of the first
// case with a true condition (one bool), else the default.
//
//   Switch choose;
//   choose.Case(layers::LessThan(step, warmup), [&] { layers::AssignTo(slow, rate); });
//   choose.Default([&] { layers::AssignTo(fast, rate); });
class Switch {
 public:
  explicit Switch(Site site = Site::current()) : site_(site) {}
  // Throw an Error (kInvalidArgument) after Default, and the Errors of `body`. Default needs a case
  // before it.
  void Case(const Variable& condition, const std::function<void()>& body);
  void Default(const std::function<void()>& body);

 private:
  void Add(const Variable& condition, const std::function<void()>& body);

  Site site_;
  Variable none_before_;  // whether no case so far is true
  bool has_default_ = false;
};

// Two blocks for the rows of a batch: one works on the rows for which a mask, bool [rows, 1], is
// true, the other on the rest.
//
//   IfElse by_row(mask);
//   by_row.IfTrue([&] { return Variables{layers::Tanh(by_row.Input(x))}; });
//   by_row.IfFalse([&] { return Variables{by_row.Input(x) * 0.5f}; });
//   Variable y = by_row.Outputs()[0];  // [rows, …]
class IfElse {
 public:
  explicit IfElse(const Variable& mask, Site site = Site::current());
  // Each must be called once. `body` returns variables with a row for each of its rows. Throws an
  // Error (kInvalidArgument) if it is called twice or has no Input, and the Errors of `body`; a
  // call that throws has no effect. A batch may have no rows for one of the blocks: ops that refuse
  // tensors without rows, such as ReduceMax over them, throw then.
  void IfTrue(const std::function<Variables()>& body);
  void IfFalse(const std::function<Variables()>& body);
  // Returns the rows of x, which has as many as the mask, that the block works on. Throws an Error
  // (kInvalidArgument) outside of the two blocks.
  Variable Input(const Variable& x);
  // Returns the results of both blocks, row by row. Throws an Error (kInvalidArgument) unless both
  // have been built and return as many.
  Variables Outputs();

 private:
  struct Rows {
    Variable of;        // the variable that was split
    Variable parts[2];  // the rows where the mask is false, and true
  };

  void Build(bool value, const std::function<Variables()>& body);

  Variable mask_;
  Site site_;
  ir::Block* outer_ = nullptr;
  int building_ = -1;  // 0 or 1: the block that is being built
  std::vector<Rows> inputs_;
  Variables results_[2];
  bool is_built_[2] = {false, false};
};

// A loop as Fluid's programs have it: the body assigns to variables outside (AssignTo), including
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
  // condition, and the Errors of `body`; the loop is then not there.
  void Body(const std::function<void()>& body);

 private:
  Variable condition_;
  Site site_;
};

// Assigns the current value of x to `to`, a variable of this block or of a block around it.
void AssignTo(const Variable& x, const Variable& to, Site site = Site::current());

}  // namespace layers
}  // namespace skiff
