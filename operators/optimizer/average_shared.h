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

// Where the tensors of thousands of parameters lie is found once.
class AverageKernel : public ListKernel {
 public:
  void Bind(const KernelContext& run) final;
  bool Begin(const KernelContext& run) final;
  int64_t element_count() const final { return begins_.back(); }
  void RunElements(const KernelContext& run, int64_t begin, int64_t end) const final;

 protected:
  explicit AverageKernel(const OpContext& context);

  size_t parameter_count() const { return params_.size(); }
  // What lies in parameter i, and in its state k before the step and after it, the arrays first. T
  // is the dtype that the shape rule has made sure of.
  template <typename T>
  const T* Param(size_t i) const {
    return static_cast<const T*>(param_data_[i]);
  }
  template <typename T>
  const T* In(size_t k, size_t i) const {
    return static_cast<const T*>(state_data_[k][i].in);
  }
  template <typename T>
  T* Out(size_t k, size_t i) const {
    return static_cast<T*>(state_data_[k][i].out);
  }

 private:
  // Moves the scalars of parameter i on, before its elements.
  virtual void Advance(const KernelContext& run, size_t i) = 0;
  // Moves elements [begin, end) of its arrays on. Must not throw.
  virtual void Accumulate(size_t i, int64_t begin, int64_t end) const = 0;
  void Keep(const KernelContext& run) const;

  struct StateData {
    const void* in = nullptr;
    void* out = nullptr;
  };

  std::vector<int> params_;
  std::vector<std::vector<UpdateArguments::Pair>> states_;
  std::vector<const void*> param_data_;             // by parameter
  std::vector<std::vector<StateData>> state_data_;  // by state, by parameter
  std::vector<int64_t> begins_;  // the elements before each parameter, and at the end all of them
  int skip_ = -1;
};

}  // namespace skiff
