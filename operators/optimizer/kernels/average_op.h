// Slots, shape rule and CPU kernel (around the formula) of the ops that keep averages of
// parameters.
//
// Such an op takes any number of parameters. Argument i of each list (the parameters and their
// states) belongs to parameter i. A parameter's states are arrays, of its shape and dtype, and
// scalars, of one element and a dtype that the op chooses. If SkipUpdate is true, no variable
// changes. An output may be its input, or overlaps with no input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "framework/op/arguments.h"
#include "framework/op/kernel.h"
#include "framework/op/registry.h"
#include "operators/optimizer/kernels/update_arguments.h"

namespace skiff {

struct AverageOp {
  StaticText type;
  StaticText doc;
  StaticText param;  // the slot of the parameters

  struct State {
    StaticText input;
    StaticText output;
    StaticText doc;
  };
  std::vector<State> arrays;
  std::vector<State> scalars;
  DType scalar_dtype = DType::kInt64;
  std::vector<SlotDef> shared_inputs;  // one tensor for all parameters
  std::vector<AttrDef> attrs;
  // Throws Error for attributes and shared inputs that don't fit. May be empty.
  std::function<void(const OpContext&)> check;
};

// Returns the definition of the op. Its shape rule throws Error unless each list has as many
// arguments as the parameters, with their shapes and dtypes.
OpDef MakeAverageOpDef(AverageOp op);

// The CPU kernel. Bind looks up the addresses of thousands of tensors once.
class AverageKernel : public Kernel {
 public:
  void Bind(const KernelContext& run) final;
  void Run(const KernelContext& run) final;

 protected:
  explicit AverageKernel(const OpContext& context);

  size_t parameter_count() const { return params_.size(); }
  // Return the data of parameter i, and of its state k before and after the step. Arrays come
  // before scalars. T must be the tensor's type, which the shape rule has checked.
  template <typename T>
  const T* Param(size_t i) const {
    return static_cast<const T*>(param_data_[i]);
  }
  template <typename T>
  const T* StateIn(size_t k, size_t i) const {
    return static_cast<const T*>(state_data_[k][i].in);
  }
  template <typename T>
  T* StateOut(size_t k, size_t i) const {
    return static_cast<T*>(state_data_[k][i].out);
  }

 private:
  // Advances the scalars of parameter i; called before Accumulate.
  virtual void Advance(const KernelContext& run, size_t i) = 0;
  // Advances elements [begin, end) of parameter i's arrays. Must not throw.
  virtual void Accumulate(size_t i, int64_t begin, int64_t end) const = 0;

  struct StateData {
    const void* in = nullptr;
    void* out = nullptr;
  };

  std::vector<int> params_;
  std::vector<std::vector<UpdateArguments::Pair>> states_;
  std::vector<const void*> param_data_;             // by parameter
  std::vector<std::vector<StateData>> state_data_;  // by state, by parameter
  std::vector<int64_t> begins_;  // the elements before each parameter; last: all elements
  In<bool> skip_;
};

}  // namespace skiff
