// The arguments that the normalizations have in common.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "framework/op/kernel.h"
#include "framework/op/op_context.h"

namespace skiff {

// `epsilon`, at least 0.
AttrDef EpsilonAttr();
// `act_type`, which is relu.
AttrDef ReluTypeAttr();

// Error unless the slots that are present hold `size` values (-1: unknown) of the dtype of the op's
// first input; `meaning` says of what in there is one each.
void CheckVectors(const OpContext& context, std::initializer_list<const char*> slots, int64_t size,
                  const char* meaning);

// The data of an argument; nullptr for one that is absent.
template <typename T>
const T* InputData(const KernelContext& run, int index) {
  return index < 0 ? nullptr : run.input(index).data<T>();
}
template <typename T>
T* OutputData(const KernelContext& run, int index) {
  return index < 0 ? nullptr : run.output(index).data<T>();
}

}  // namespace skiff
