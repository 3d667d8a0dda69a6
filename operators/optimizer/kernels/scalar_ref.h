// A reference to the element of a tensor that has one, as optimizers keep for each parameter.
#pragma once

#include "framework/tensor/tensor.h"

namespace skiff {

// Refers to the tensor's memory, which must be on the CPU and outlive the object.
class ScalarRef {
 public:
  // Refers to nothing; only is_bound may be called.
  ScalarRef() = default;
  // `tensor` is float32 or float64.
  explicit ScalarRef(Tensor* tensor)
      : data_(tensor->raw_data()), is_double_(tensor->dtype() == DType::kFloat64) {}

  bool is_bound() const { return data_ != nullptr; }
  double Get() const {
    return is_double_ ? *static_cast<const double*>(data_) : *static_cast<const float*>(data_);
  }
  void Set(double value) const {
    if (is_double_) {
      *static_cast<double*>(data_) = value;
    } else {
      *static_cast<float*>(data_) = static_cast<float>(value);
    }
  }

 private:
  void* data_ = nullptr;
  bool is_double_ = false;
};

}  // namespace skiff
