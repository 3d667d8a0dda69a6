// The formulas of huber_loss; huber_loss.cc states them.
#pragma once

#include <array>
#include <cmath>

#include "framework/op/op_context.h"

namespace skiff {

struct HuberLossFormula {
  static constexpr std::array kInputs = {"X", "Y"};
  static constexpr std::array kOutputs = {"Out", "Residual"};

  explicit HuberLossFormula(const OpContext& context) : delta(context.Attr<float>("delta")) {}

  template <typename T>
  constexpr std::array<T, 2> operator()(T x, T y) const {
    const auto bend = static_cast<T>(delta);
    const T r = y - x;
    const T size = std::abs(r);
    return {size <= bend ? r * r / 2 : bend * (size - bend / 2), r};
  }

  float delta;
};

struct HuberLossGradFormula {
  static constexpr std::array kInputs = {"Residual", "Out@GRAD"};
  static constexpr std::array kOutputs = {"X@GRAD", "Y@GRAD"};

  explicit HuberLossGradFormula(const OpContext& context) : delta(context.Attr<float>("delta")) {}

  template <typename T>
  constexpr std::array<T, 2> operator()(T r, T dout) const {
    const auto bend = static_cast<T>(delta);
    // Comparisons instead of min and max, so that NaN stays NaN.
    const T below = r > bend ? bend : r;
    const T slope = dout * (below < -bend ? -bend : below);
    // Not -slope, which would be -0 where the slope is 0.
    return {T{0} - slope, slope};
  }

  float delta;
};

}  // namespace skiff
