#include "models/line_reader/error_rate.h"

#include "framework/base/dtype.h"
#include "framework/base/error.h"

namespace skiff::models {

void ErrorRate::Add(std::span<const Tensor> values) {
  SKIFF_ENFORCE(values.size() == 2, kInvalidArgument, "error rate: ", values.size(),
                " tensors, expected distances and lengths");
  const Tensor& distances = values[0];
  const Tensor& lengths = values[1];
  const bool fits = distances.dtype() == DType::kFloat32 && lengths.dtype() == DType::kInt64 &&
                    distances.element_count() == lengths.element_count();
  SKIFF_ENFORCE(fits, kInvalidArgument, "error rate: distances are ", distances.dtype(), " ",
                distances.shape(), " and lengths ", lengths.dtype(), " ", lengths.shape(),
                ", expected float32 and int64, as many of each");
  for (const float distance : distances.values<float>()) distance_ += static_cast<double>(distance);
  for (const int64_t length : lengths.values<int64_t>()) length_ += static_cast<double>(length);
}

void ErrorRate::Merge(std::span<const double> state) {
  SKIFF_ENFORCE(state.size() == 2, kInvalidArgument, "error rate: a state of ", state.size(),
                " numbers, expected 2");
  distance_ += state[0];
  length_ += state[1];
}

}  // namespace skiff::models
