// The formulas of margin_rank_loss; margin_rank_loss.cc states them.
#pragma once

#include <array>

#include "framework/op/op_context.h"

namespace skiff {

struct MarginRankLossFormula {
  static constexpr std::array kInputs = {"Label", "X1", "X2"};
  static constexpr std::array kOutputs = {"Out", "Activated"};

  explicit MarginRankLossFormula(const OpContext& context)
      : margin(context.Attr<float>("margin")) {}

  template <typename T>
  constexpr std::array<T, 2> operator()(T sign, T x1, T x2) const {
    const T loss = static_cast<T>(margin) - sign * (x1 - x2);
    return {loss < T{0} ? T{0} : loss,  // NaN stays NaN
            loss > T{0} ? T{1} : T{0}};
  }

  float margin;
};

struct MarginRankLossGradFormula {
  static constexpr std::array kInputs = {"Activated", "Label", "Out@GRAD"};
  static constexpr std::array kOutputs = {"X1@GRAD", "X2@GRAD"};

  explicit MarginRankLossGradFormula(const OpContext&) {}

  template <typename T>
  constexpr std::array<T, 2> operator()(T is_active, T sign, T dout) const {
    const T slope = dout * sign * is_active;
    return {-slope, slope};
  }
};

}  // namespace skiff
