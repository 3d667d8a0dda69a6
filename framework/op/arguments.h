// The arguments of a kernel, each named once: a factory looks an argument up by its slot, and Run
// asks for its data.
//
//   const In<T> x(context, "X");
//   const Out<T> out(context, "Out");
//   return MakeKernel([=](const KernelContext& run) { Negate(x(run), out(run), x.count(run)); });
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "framework/op/kernel.h"

namespace skiff {

// An argument of elements of T; void: of any dtype.
template <bool kIsOutput, typename T>
class Argument {
  using Element = std::conditional_t<kIsOutput, T, const T>;
  using TensorOfRun = std::conditional_t<kIsOutput, Tensor, const Tensor>;

 public:
  // An argument that the op lacks.
  Argument() = default;
  // Argument i of a slot. The op may lack the argument. Throws Error if the definition lacks the
  // slot.
  Argument(const OpContext& context, std::string_view slot, size_t i = 0)
      : index_(kIsOutput ? context.OutputIndex(slot, i) : context.InputIndex(slot, i)) {}

  // Whether the op has the argument.
  bool is_there() const { return index_ >= 0; }
  // The index of the argument among the inputs (outputs) of KernelContext; -1 if the op lacks it.
  int index() const { return index_; }

  // Returns the data in this run; nullptr if the op lacks the argument, and also if the tensor has
  // no elements, so that only is_there() tells whether the op has the argument. Throws Error
  // (kInvalidArgument) if the tensor has another dtype than T.
  Element* operator()(const KernelContext& run) const {
    if constexpr (std::is_void_v<T>) {
      return is_there() ? tensor(run).raw_data() : nullptr;
    } else {
      return as<T>(run);
    }
  }
  // The same as elements of U, for an argument of any dtype of which the caller knows the dtype.
  template <typename U>
  std::conditional_t<kIsOutput, U, const U>* as(const KernelContext& run) const {
    return is_there() ? tensor(run).template data<U>() : nullptr;
  }
  // Return the tensor in this run, the shape and the number of elements of the argument. The op
  // must have the argument.
  TensorOfRun& tensor(const KernelContext& run) const {
    if constexpr (kIsOutput) {
      return run.output(index_);
    } else {
      return run.input(index_);
    }
  }
  const Shape& shape(const KernelContext& run) const { return tensor(run).shape(); }
  int64_t count(const KernelContext& run) const { return tensor(run).element_count(); }

 private:
  int index_ = -1;
};

template <typename T = void>
using In = Argument<false, T>;
template <typename T = void>
using Out = Argument<true, T>;

}  // namespace skiff
