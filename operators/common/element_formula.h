// Ops whose outputs have at each position what a formula makes of the inputs' elements there:
// losses, mostly. The formula is stated once, for vectors of float32, float64 (formula.h) and
// devices (cuda_element_formula.cuh):
//
//   struct HuberLossFormula {
//     static constexpr std::array kInputs = {"X", "Y"};
//     static constexpr std::array kOutputs = {"Out", "Residual"};
//     explicit HuberLossFormula(const OpContext& context);  // takes the attributes
//     template <class V>
//     constexpr std::array<V, 2> operator()(V x, V y) const;
//   };
//
// All arguments have the same dtype and shape. An input may also be one number, which counts at all
// positions. An input that the op lacks is 1, and the kernel sets an input without a name. Since a
// formula reads all inputs before anything is written, an output may be stored where an input is.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/common/formula.h"

namespace skiff {

inline constexpr size_t kMostFormulaInputs = 5;
inline constexpr size_t kMostFormulaOutputs = 2;

// Where a formula finds its operands.
template <typename T>
struct ElementArrays {
  struct Input {
    const T* data = nullptr;  // nullptr: 1 at each position
    int64_t step = 1;         // 0: one number
  };

  // Returns input k at position i.
  constexpr T At(size_t k, int64_t i) const {
    return inputs[k].data == nullptr ? T{1} : inputs[k].data[i * inputs[k].step];
  }
  // Returns the arrays from a position on.
  ElementArrays From(int64_t begin) const {
    ElementArrays rest = *this;
    for (Input& input : rest.inputs) {
      if (input.data != nullptr) input.data += begin * input.step;
    }
    for (T*& output : rest.outputs) {
      if (output != nullptr) output += begin;
    }
    return rest;
  }

  std::array<Input, kMostFormulaInputs> inputs = {};
  std::array<T*, kMostFormulaOutputs> outputs = {};  // nullptr: not wanted
};

// The arguments of an op with a formula.
template <class Formula, typename T>
class FormulaArguments {
  static_assert(Formula::kInputs.size() <= kMostFormulaInputs);
  static_assert(Formula::kOutputs.size() <= kMostFormulaOutputs);

 public:
  // Throws Error if the definition lacks a slot.
  explicit FormulaArguments(const OpContext& context) : type_(context.def().type) {
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const std::string_view slot = Formula::kInputs[k];
      if (!slot.empty()) inputs_[k] = {context, slot};
    }
    for (size_t k = 0; k < outputs_.size(); ++k) outputs_[k] = {context, Formula::kOutputs[k]};
  }

  // Returns the number of positions: the elements of the largest argument. If all of these are
  // empty, a reduced output still has one.
  int64_t count(const KernelContext& run) const {
    int64_t positions = 0;
    const auto grow = [&](const auto& argument) {
      if (argument.is_there()) positions = std::max(positions, argument.count(run));
    };
    std::ranges::for_each(inputs_, grow);
    std::ranges::for_each(outputs_, grow);
    return positions;
  }
  // Returns the data of this run. The kernel sets the inputs without a name. Throws Error
  // (kFailedPrecondition) if an input has neither one element nor as many as there are positions.
  ElementArrays<T> operator()(const KernelContext& run) const {
    ElementArrays<T> arrays;
    const int64_t positions = count(run);
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (!inputs_[k].is_there()) continue;
      const int64_t elements = inputs_[k].count(run);
      SKIFF_ENFORCE(elements == positions || elements <= 1, kFailedPrecondition, type_, ": ",
                    Formula::kInputs[k], " has ", elements, " elements, expected ", positions,
                    " or 1");
      arrays.inputs[k] = {inputs_[k](run), elements == positions ? 1 : 0};
    }
    for (size_t k = 0; k < outputs_.size(); ++k) arrays.outputs[k] = outputs_[k](run);
    return arrays;
  }

 private:
  StaticText type_;
  std::array<In<T>, Formula::kInputs.size()> inputs_;
  std::array<Out<T>, Formula::kOutputs.size()> outputs_;
};

// Applies a formula at position i.
template <class Formula, typename T>
constexpr void ApplyFormula(const Formula& formula, const ElementArrays<T>& arrays, int64_t i) {
  const auto values = [&]<size_t... k>(std::index_sequence<k...>) {
    return formula(arrays.At(k, i)...);
  }
  (std::make_index_sequence<Formula::kInputs.size()>());
  for (size_t k = 0; k < values.size(); ++k) {
    if (arrays.outputs[k] != nullptr) arrays.outputs[k][i] = values[k];
  }
}

// Applies a formula at positions [0, count).
template <typename T>
using ElementLoop = std::function<void(const ElementArrays<T>& arrays, int64_t count)>;

// Makes the loop of float32 for the instruction set in use.
using FloatLoopMaker = ElementLoop<float> (*)(const OpContext& context);

// Returns the loop of a formula over numbers.
template <typename T, class Formula>
ElementLoop<T> ScalarLoopOf(const Formula& formula) {
  return [formula](const ElementArrays<T>& arrays, int64_t count) {
    for (int64_t i = 0; i < count; ++i) ApplyFormula(formula, arrays, i);
  };
}

// Returns the loop of a formula.
template <class Formula, typename T>
ElementLoop<T> LoopOfFormula(const OpContext& context, FloatLoopMaker make_float_loop) {
  if constexpr (std::is_same_v<T, float>) {
    return make_float_loop(context);
  } else {
    return ScalarLoopOf<T>(Formula(context));
  }
}

// Runs a loop at positions [0, count), on several threads if each of them gets `grain` positions.
template <typename T>
void RunLoop(const ElementLoop<T>& loop, const ElementArrays<T>& arrays, int64_t count,
             int64_t grain) {
  ParallelFor(count, grain,
              [&](int64_t begin, int64_t end) { loop(arrays.From(begin), end - begin); });
}

// Returns the CPU kernel of a formula. `grain` is the number of elements that is worth a thread.
template <class Formula, typename T>
std::unique_ptr<Kernel> PrepareFormula(PrepareContext& context, FloatLoopMaker make_float_loop,
                                       int64_t grain) {
  const FormulaArguments<Formula, T> arguments(context);
  const ElementLoop<T> loop = LoopOfFormula<Formula, T>(context, make_float_loop);
  return MakeRowsKernel([=](const KernelContext& run) {
    RunLoop(loop, arguments(run), arguments.count(run), grain);
  });
}

// Adds these kernels for float32 and float64.
template <class Formula>
void AddFormulaKernels(OpRegistry& registry, std::string_view type, FloatLoopMaker make_float_loop,
                       int64_t grain) {
  registry.AddCpuKernels<float, double>(type, [=]<typename T>(PrepareContext& context) {
    return PrepareFormula<Formula, T>(context, make_float_loop, grain);
  });
}

}  // namespace skiff
