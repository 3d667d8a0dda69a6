// A handful of ops for tests of the executor and the passes, which thus depend on no family.
#pragma once

#include <functional>

#include "framework/op/registry.h"

namespace skiff::tiny {

// tiny_add: Out = X + Y (in place on X). tiny_scale: Out = factor * X (in place).
// tiny_copy: Out = X, not in place. tiny_sgd: ParamOut = Param - Grad. These are element-wise.
// tiny_sum: Out[1] = sum of X. tiny_random: Out = a random integer per element, as X's shape.
// tiny_negated: Out = -W, through a derived form of W. tiny_workspace: Out = X through a workspace.
// tiny_fail: throws when it runs. tiny_check: Out = X, throws when it meets an element below
// `least` (0). tiny_recheck: the same, and refuses nothing that tiny_check has accepted. tiny_fill:
// Out = a tensor of the extents that `shape` says, of ones. tiny_ones_like: Out = ones, as many as
// X has. tiny_meanwhile: Out = X, after the function of SetMeanwhile has run. tiny_bound: Out = X,
// from and to the addresses that Bind has found, after the function of SetOnBind has run.
// tiny_exchange, tiny_exchange_copy: Out = factor * X, in place or not, after the function of
// SetOnExchange has run; they are collective. tiny_while, tiny_while_grad: run the block
// `sub_block`; for analyses, they have no kernel.
void RegisterTinyOps(OpRegistry& registry);

// A program of any number of elements: a = x, b = a, c = b + a.
inline constexpr const char* kTwoCopies = R"(program { block 0 {
  var x float32 [-1]
  var a float32 [-1]
  var b float32 [-1]
  var c float32 [-1]
  {Out: [a]} = tiny_copy(X: [x])
  {Out: [b]} = tiny_copy(X: [a])
  {Out: [c]} = tiny_add(X: [b], Y: [a])
} })";

// How often tiny_negated's derived form was made.
int DerivedRefreshes();

// What another thread does while a run is at tiny_meanwhile.
void SetMeanwhile(std::function<void()> meanwhile);

// What happens when a kernel of tiny_bound is bound. Empty: nothing.
void SetOnBind(std::function<void()> on_bind);

// What happens when a kernel of tiny_exchange or tiny_exchange_copy runs. Empty: nothing.
void SetOnExchange(std::function<void(const KernelContext&)> on_exchange);

}  // namespace skiff::tiny
