// Ops whose outputs have at each position what a formula makes of the inputs' elements there. The
// formula is stated once, for the CPU and devices (cuda_element_formula.cuh):
//
//   struct HuberFormula {
//     static constexpr std::array kInputs = {"X", "Y"};
//     static constexpr std::array kOutputs = {"Out", "Residual"};
//     explicit HuberFormula(const OpContext& context);  // takes the attributes
//     template <typename T>
//     constexpr std::array<T, 2> operator()(T x, T y) const;
//   };
//
// All arguments have one shape and one dtype. The op may lack outputs. Since a formula reads all
// inputs before it writes, an output may be stored where an input is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "framework/base/parallel.h"
#include "framework/op/registry.h"

namespace skiff {

// The data of a run: nullptr for an output that the op lacks.
template <class Formula, typename T>
struct FormulaData {
  static constexpr size_t kInputCount = Formula::kInputs.size();
  static constexpr size_t kOutputCount = Formula::kOutputs.size();

  std::array<const T*, kInputCount> inputs;
  std::array<T*, kOutputCount> outputs;
};

// The arguments of an op, which a kernel looks up once.
template <class Formula, typename T>
class FormulaArguments {
 public:
  explicit FormulaArguments(const OpContext& context) {
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = {context, Formula::kInputs[i]};
    for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = {context, Formula::kOutputs[i]};
  }

  // Returns the number of positions.
  int64_t count(const KernelContext& run) const { return inputs_[0].count(run); }
  FormulaData<Formula, T> operator()(const KernelContext& run) const {
    FormulaData<Formula, T> data;
    for (size_t i = 0; i < inputs_.size(); ++i) data.inputs[i] = inputs_[i](run);
    for (size_t i = 0; i < outputs_.size(); ++i) data.outputs[i] = outputs_[i](run);
    return data;
  }

 private:
  std::array<In<T>, Formula::kInputs.size()> inputs_;
  std::array<Out<T>, Formula::kOutputs.size()> outputs_;
};

// Applies a formula at position i.
template <class Formula, typename T>
constexpr void ApplyFormula(const Formula& formula, const FormulaData<Formula, T>& data,
                            int64_t i) {
  const auto values = [&]<size_t... kAt>(std::index_sequence<kAt...>) {
    return formula(data.inputs[kAt][i]...);
  }
  (std::make_index_sequence<Formula::kInputs.size()>());
  for (size_t k = 0; k < values.size(); ++k) {
    if (data.outputs[k] != nullptr) data.outputs[k][i] = values[k];
  }
}

// Calls body(i) for all i < count, on the CPU; ForEachOnDevice is its like. `grain` is the number
// of elements that is worth a thread.
struct ForEachElement {
  template <class Body>
  void operator()(const KernelContext&, int64_t count, const Body& body) const {
    ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
      const Body own = body;  // which no store can change
      for (int64_t i = begin; i < end; ++i) own(i);
    });
  }

  int64_t grain;
};

// Returns the kernel of a formula on the CPU.
template <class Formula, typename T>
std::unique_ptr<Kernel> PrepareFormula(PrepareContext& context, int64_t grain) {
  const Formula formula(context);
  const FormulaArguments<Formula, T> arguments(context);
  return MakeRowsKernel([=](const KernelContext& run) {
    const FormulaData<Formula, T> data = arguments(run);
    ForEachElement{grain}(run, arguments.count(run),
                          [=](int64_t i) { ApplyFormula(formula, data, i); });
  });
}

// Adds these kernels for float32 and float64.
template <class Formula>
void AddFormulaKernels(OpRegistry& registry, std::string_view type, int64_t grain) {
  registry.AddCpuKernels<float, double>(type, [grain]<typename T>(PrepareContext& context) {
    return PrepareFormula<Formula, T>(context, grain);
  });
}

}  // namespace skiff
