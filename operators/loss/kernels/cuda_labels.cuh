// Labels on CUDA: what kernels/labels.h is for the CPU.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "framework/op/kernel.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/loss/kernels/labels.h"

namespace skiff {

// The hard labels of a run.
struct CudaLabels {
  // Returns the class of an item, or -1 if the item doesn't count: because its label is ignored, or
  // is no class, which one of the threads that ask should note.
  __device__ int64_t ClassOf(int64_t item, bool notes_fault) const {
    const int64_t label = is_int64 ? static_cast<const int64_t*>(data)[item]
                                   : int64_t{static_cast<const int32_t*>(data)[item]};
    if (label == ignore_index) return -1;
    if (label >= 0 && label < classes) return label;
    if (notes_fault) NoteFault(fault, item, label);
    return -1;
  }

  const void* data;
  bool is_int64;
  int64_t classes;
  int64_t ignore_index;
  uint64_t* fault;
};

template <typename T>
__device__ T CudaBoundedLog(T value) {
  const T logarithm = std::log(value);
  return logarithm < T(-1e20) ? T(-1e20) : logarithm;
}

// A kernel that refuses labels, with the Error of the CPU's.
class CudaLabelKernel : public Kernel {
 public:
  explicit CudaLabelKernel(const OpContext& context)
      : type_(context.op().type),
        label_(context, "Label"),
        ignore_index_(context.IntAttr("ignore_index")) {}

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    ThrowLabel(type_, fault.position, fault.value, classes_, ignore_index_);
  }

 protected:
  // Not for soft labels.
  CudaLabels LabelsOf(const KernelContext& run, int64_t classes) {
    classes_ = classes;
    const Tensor& label = label_.tensor(run);
    return {.data = label.raw_data(),
            .is_int64 = label.dtype() == DType::kInt64,
            .classes = classes,
            .ignore_index = ignore_index_,
            .fault = run.fault};
  }

  template <typename T>
  const T* SoftLabelsOf(const KernelContext& run) const {
    return label_.template as<T>(run);
  }

 private:
  std::string type_;
  In<> label_;
  int64_t ignore_index_;
  int64_t classes_ = 0;  // of the last run
};

}  // namespace skiff
