// The data of arguments that an op may lack.
#pragma once

#include "framework/op/kernel.h"

namespace skiff {

// Return the data of an argument, or nullptr if it is absent (-1).
template <typename T>
const T* InputData(const KernelContext& run, int index) {
  return index < 0 ? nullptr : run.input(index).data<T>();
}
template <typename T>
T* OutputData(const KernelContext& run, int index) {
  return index < 0 ? nullptr : run.output(index).data<T>();
}

}  // namespace skiff
