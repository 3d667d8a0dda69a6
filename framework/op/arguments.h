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
 public:
  using Element = std::conditional_t<kIsOutput, T, const T>;
  using TensorOfRun = std::conditional_t<kIsOutput, Tensor, const Tensor>;

  // Argument i of a slot, which need not be there.
  Argument(const OpContext& context, std::string_view slot, size_t i = 0)
      : index_(kIsOutput ? context.OutputIndex(slot, i) : context.InputIndex(slot, i)) {}

  // Whether the op has the argument.
  bool is_there() const { return index_ >= 0; }
  // As KernelContext counts them; -1: not there.
  int index() const { return index_; }

  // Returns the data in this run; nullptr if the argument isn't there. Throws Error
  // (kInvalidArgument) if the tensor has another dtype than T.
  Element* operator()(const KernelContext& run) const {
    if (!is_there()) return nullptr;
    if constexpr (std::is_void_v<T>) {
      return tensor(run).raw_data();
    } else {
      return tensor(run).template data<T>();
    }
  }
  // Return the tensor in this run, its shape and its number of elements. The argument must be
  // there.
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
  int index_;
};

template <typename T = void>
using In = Argument<false, T>;
template <typename T = void>
using Out = Argument<true, T>;

}  // namespace skiff
