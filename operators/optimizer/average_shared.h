// What the ops that keep averages of parameters have in common: lists, shape rule, and the kernel
// around the formula.
//
// Such an op takes any number of parameters: argument i of each list (the parameters and their
// states) is parameter i's. Per parameter there are arrays, of its shape and dtype, and scalars, of
// one element and a dtype of the op. With SkipUpdate true no variable changes. An output may be its
// input, or overlap with none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/op/list_kernel.h"
#include "framework/op/registry.h"
#include "operators/optimizer/update_arguments_shared.h"

namespace skiff {

struct AverageOp {
  std::string type;
  std::string doc;
  std::string param;  // the slot of the parameters

  struct State {
    std::string input;
    std::string output;
    std::string doc;
  };
  std::vector<State> arrays;
  std::vector<State> scalars;
  DType scalar_dtype = DType::kInt64;
  std::vector<SlotDef> shared_inputs;  // of all parameters
  std::vector<AttrDef> attrs;
  // Throws an Error for attributes and shared inputs that don't fit. May be empty.
  std::function<void(const OpContext&)> check;
};

OpDef MakeAverageOpDef(AverageOp op);

class AverageKernel : public ListKernel {
 public:
  bool Begin(const KernelContext& run) final;
  int64_t element_count() const final { return begins_.back(); }
  void RunElements(const KernelContext& run, int64_t begin, int64_t end) const final;

 protected:
  // A state before the step, and after it.
  using State = UpdateArguments::Pair;

  explicit AverageKernel(const OpContext& context);

  size_t parameter_count() const { return params_.size(); }
  int param(size_t i) const { return params_[i]; }
  // State k of parameter i, the arrays first.
  const State& state(size_t k, size_t i) const { return states_[k][i]; }

 private:
  // Moves the scalars of parameter i on, before its elements.
  virtual void Advance(const KernelContext& run, size_t i) = 0;
  // Moves elements [begin, end) of its arrays on. Must not throw.
  virtual void Accumulate(const KernelContext& run, size_t i, int64_t begin, int64_t end) const = 0;
  void Keep(const KernelContext& run) const;

  std::vector<int> params_;
  std::vector<std::vector<State>> states_;
  std::vector<int64_t> begins_;  // the elements before each parameter, and at the end all of them
  int skip_ = -1;
};

}  // namespace skiff
