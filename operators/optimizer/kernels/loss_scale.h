// The scale of a loss from step to step: the formula of update_loss_scaling, on the CPU and on
// devices.
#pragma once

#include <cstdint>

#include "framework/op/op_context.h"

namespace skiff {

template <typename T>
struct LossScaleState {
  T scale;
  int32_t good_steps;  // in a row
  int32_t bad_steps;   // in a row: a gradient wasn't finite
};

struct LossScaleRule {
  int32_t incr_every_n_steps = 1;
  int32_t decr_every_n_nan_or_inf = 1;
  float incr_ratio = 2;
  float decr_ratio = 0.5;
};

inline LossScaleRule LossScaleRuleOf(const OpContext& context) {
  return {
      .incr_every_n_steps = static_cast<int32_t>(context.IntAttr("incr_every_n_steps")),
      .decr_every_n_nan_or_inf = static_cast<int32_t>(context.IntAttr("decr_every_n_nan_or_inf")),
      .incr_ratio = context.Attr<float>("incr_ratio"),
      .decr_ratio = context.Attr<float>("decr_ratio")};
}

// Returns whether a step is at least the n-th in a row, after `before` others. Fluid asks whether
// it is the n-th itself. These differ where n has become smaller since the counter was saved.
constexpr bool IsNthStep(int32_t before, int32_t n) { return before >= n - 1; }

// Returns what follows a step: in which a gradient wasn't finite, or all were.
template <typename T>
constexpr LossScaleState<T> NextLossScale(const LossScaleState<T>& now, bool found_infinite,
                                          const LossScaleRule& rule) {
  LossScaleState<T> next{now.scale, 0, 0};
  if (found_infinite) {
    if (!IsNthStep(now.bad_steps, rule.decr_every_n_nan_or_inf)) {
      next.bad_steps = now.bad_steps + 1;
      return next;
    }
    const T lower = now.scale * static_cast<T>(rule.decr_ratio);
    next.scale = lower < T{1} ? T{1} : lower;
    return next;
  }
  if (!IsNthStep(now.good_steps, rule.incr_every_n_steps)) {
    next.good_steps = now.good_steps + 1;
    return next;
  }
  const T higher = now.scale * static_cast<T>(rule.incr_ratio);
  // The difference is 0 for a finite number, and NaN for an infinity or NaN.
  if (higher - higher == T{0}) next.scale = higher;
  return next;
}

}  // namespace skiff
