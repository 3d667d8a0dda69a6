// The formulas of log_loss; log_loss.cc states them.
#pragma once

#include <array>
#include <cmath>

#include "framework/op/op_context.h"

namespace skiff {

struct LogLossFormula {
  static constexpr std::array kInputs = {"Predicted", "Labels"};
  static constexpr std::array kOutputs = {"Loss"};

  explicit LogLossFormula(const OpContext& context) : epsilon(context.Attr<float>("epsilon")) {}

  template <typename T>
  constexpr std::array<T, 1> operator()(T p, T label) const {
    const auto small = static_cast<T>(epsilon);
    return {-label * std::log(p + small) - (T{1} - label) * std::log(T{1} - p + small)};
  }

  float epsilon;
};

struct LogLossGradFormula {
  static constexpr std::array kInputs = {"Predicted", "Labels", "Loss@GRAD"};
  static constexpr std::array kOutputs = {"Predicted@GRAD"};

  explicit LogLossGradFormula(const OpContext& context) : epsilon(context.Attr<float>("epsilon")) {}

  template <typename T>
  constexpr std::array<T, 1> operator()(T p, T label, T dloss) const {
    const auto small = static_cast<T>(epsilon);
    // The term of the label 0, whose loss rises with the probability.
    const T rising = (T{1} - label) / (T{1} - p + small);
    return {dloss * (rising - label / (p + small))};
  }

  float epsilon;
};

}  // namespace skiff
