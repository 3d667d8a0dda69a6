// Loops and branches. What all layers throw: layers.h.
//
//   // The smallest power of 2 that is at least n.
//   auto results = layers::WhileLoop(
//       [&](const Variables& v) { return layers::LessThan(v[0], n); },
//       [&](const Variables& v) { return Variables{v[0] * 2.0f}; },
//       {layers::FillConstant({1}, DType::kFloat32, 1.0)});
//
// The functions are called once, while the program is built: they append the ops of a block. A
// block sees the variables around it; what it makes is gone when it ends, but for its results.
// Gradients flow through all of these. An IfElse, whose rows depend on data, must be the last of
// them in a program that is trained: what runs before it has no gradient of its own
// (docs/loops.md).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "framework/builder/layers.h"
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

// One of several blocks that assign to variables outside (AssignTo): that of the first case whose
// condition, one bool, is true, else the default.
//
//   Switch choose;
//   choose.Case(layers::LessThan(step, warmup), [&] { layers::AssignTo(slow, rate); });
//   choose.Default([&] { layers::AssignTo(fast, rate); });
class Switch {
 public:
  explicit Switch(Site site = Site::current()) : site_(site) {}
  // Throw an Error (kInvalidArgument) after Default, and what `body` throws. Default needs a case
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
  // Error (kInvalidArgument) if it is called twice or has no Input, and what `body` throws; it is
  // then as if it hadn't been called. A batch may have no rows for one of the blocks: ops that
  // refuse tensors without rows, such as ReduceMax over them, throw then.
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
    Variable parts[2];  // those where the mask is false, and true
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
