#include "framework/executor/run/loop_sums.h"

#include <algorithm>
#include <cstring>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/executor/run/body_memory.h"
#include "framework/executor/run/loop_stacks.h"

namespace skiff {
namespace {

void CheckSum(const PlanValue& value) {
  const bool adds = value.meta.is_selected_rows() || value.meta.dtype == DType::kFloat32 ||
                    value.meta.dtype == DType::kFloat64;
  SKIFF_ENFORCE(adds, kUnimplemented, "the gradient \"", value.name, "\" of ", value.meta.dtype,
                " would be added up over the iterations: expected float32 or float64");
}

template <typename T>
void AddTo(const Tensor& x, Tensor* sum) {
  const T* from = x.data<T>();
  T* to = sum->data<T>();
  constexpr int64_t kGrain = 16384;
  ParallelFor(x.element_count(), kGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
  });
}

// The sum of selected rows has the rows of all, one after the other.
void AppendRows(const Tensor& value, int64_t done, Tensor* sum) {
  const int64_t rows = value.shape()[0];
  const int64_t bytes = value.element_count() * SizeOf(value.dtype());
  if (bytes > 0) {
    std::memcpy(static_cast<char*>(sum->raw_data()) + done * bytes, value.raw_data(),
                static_cast<size_t>(bytes));
  }
  std::ranges::copy(value.rows(), sum->rows().begin() + done * rows);
}

template <typename T>
void ScatterRows(const Tensor& value, Tensor* sum) {
  const int64_t rows = value.shape()[0];
  const int64_t width = rows == 0 ? 0 : value.element_count() / rows;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = value.rows()[static_cast<size_t>(i)];
    if (row < 0) continue;
    const T* from = value.data<T>() + i * width;
    T* to = sum->data<T>() + row * width;
    int64_t& place = sum->rows()[static_cast<size_t>(row)];
    for (int64_t k = 0; k < width; ++k) to[k] = place < 0 ? from[k] : to[k] + from[k];
    place = row;
  }
}

// Each row of the sum has its place, which is unused until an iteration has that row.
void ScatterRows(const Tensor& value, int64_t done, Tensor* sum) {
  if (done == 0) std::ranges::fill(sum->rows(), -1);
  value.dtype() == DType::kFloat64 ? ScatterRows<double>(value, sum)
                                   : ScatterRows<float>(value, sum);
}

}  // namespace

LoopSums::LoopSums(const Loop& loop, const OpRegistry& registry, DeviceLink* link)
    : loop_(loop), link_(*link) {
  for (const LoopFetch& fetch : loop.fetches) {
    if (fetch.kind != LoopFetch::Kind::kSum || fetch.output < 0) continue;
    const PlanValue& value = loop.body[fetch.value];
    CheckSum(value);
    if (link->has_device()) on_device_.try_emplace(&fetch, registry, value.meta, link->place());
  }
}

void LoopSums::Add(const LoopFetch& fetch, int64_t done, Tensor* value, Tensor* sum) {
  if (value->is_selected_rows()) {
    return CountsBefore(loop_) ? AppendRows(*value, done, sum) : ScatterRows(*value, done, sum);
  }
  // The first one is the sum so far: 0 + x would turn -0 into 0.
  if (done == 0) return CopyOnPlace(*value, sum->raw_data(), &link_);
  if (link_.has_device()) return on_device_.at(&fetch).Add(link_.context(), value, sum);
  value->dtype() == DType::kFloat64 ? AddTo<double>(*value, sum) : AddTo<float>(*value, sum);
}

}  // namespace skiff
