#include "operators/tensor/kernels/padding.h"

#include <algorithm>
#include <limits>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "operators/common/half.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/fill.h"

namespace skiff {
namespace {

int64_t Width(const Borders& borders, int axis) {
  return borders[2 * static_cast<size_t>(axis)] + borders[2 * static_cast<size_t>(axis) + 1];
}

}  // namespace

void CheckBorderWidths(const Borders& borders, const std::string& op) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const int64_t width : borders) {
    SKIFF_ENFORCE(width <= kMost, kOutOfRange, op, ": paddings = [", Join(borders, ", "),
                  "]: expected at most ", kMost);
  }
}

Shape PaddedShape(const Shape& x, const Borders& borders) {
  Shape out = x;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x[axis] >= 0) out[axis] += Width(borders, axis);
  }
  return out;
}

Shape UnpaddedShape(const Shape& out, const Borders& borders, const std::string& op) {
  Shape x = out;
  for (int axis = 0; axis < out.rank(); ++axis) {
    if (out[axis] < 0) continue;
    x[axis] -= Width(borders, axis);
    SKIFF_ENFORCE(x[axis] >= 0, kInvalidArgument, op, ": dim ", axis, " of the padded shape ", out,
                  " is smaller than its borders, ", Width(borders, axis));
  }
  return x;
}

void CheckPadValue(const OpContext& context, std::string_view attr, DType dtype) {
  CheckFillValue(FillValue{.real = context.Attr<float>(attr)}, dtype,
                 StrCat(context.op().type, ": ", attr));
}

ConstantPad::ConstantPad(const Shape& x, const Borders& borders) {
  // From the innermost axis. An axis without border is merged with the axis before it, so that rows
  // are as long as possible and there are few axes to divide by.
  std::vector<Axis> axes;
  int64_t inner = 1;
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    const size_t i = 2 * static_cast<size_t>(axis);
    const int64_t dim = x[axis] * inner;
    if (Width(borders, axis) == 0 && axis > 0) {
      inner = dim;
      continue;
    }
    axes.push_back({dim, borders[i] * inner, borders[i + 1] * inner});
    inner = 1;
  }
  if (axes.empty()) axes.push_back({});
  row_ = axes.front();
  outer_.assign(axes.rbegin(), axes.rend() - 1);
  for (const Axis& axis : outer_) rows_ *= axis.padded();
}

// The axes are divided off from the innermost one; a row is in the border as soon as one index is.
int64_t ConstantPad::SourceOf(int64_t row) const {
  int64_t source = 0;
  int64_t stride = row_.dim;
  for (auto axis = outer_.rbegin(); axis != outer_.rend(); ++axis) {
    const int64_t at = row % axis->padded() - axis->before;
    if (at < 0 || at >= axis->dim) return -1;
    row /= axis->padded();
    source += at * stride;
    stride *= axis->dim;
  }
  return source;
}

template <typename T>
void ConstantPad::Run(const T* x, T value, T* out) const {
  const int64_t width = row_.padded();
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width));
  ParallelFor(rows_, grain, [=, this](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* to = out + row * width;
      const int64_t source = SourceOf(row);
      if (source < 0) {
        std::fill_n(to, width, value);
        continue;
      }
      to = std::fill_n(to, row_.before, value);
      to = std::copy_n(x + source, row_.dim, to);
      std::fill_n(to, row_.after, value);
    }
  });
}

template void ConstantPad::Run(const float*, float, float*) const;
template void ConstantPad::Run(const double*, double, double*) const;
template void ConstantPad::Run(const BFloat16*, BFloat16, BFloat16*) const;
template void ConstantPad::Run(const Float16*, Float16, Float16*) const;
template void ConstantPad::Run(const int32_t*, int32_t, int32_t*) const;
template void ConstantPad::Run(const int64_t*, int64_t, int64_t*) const;

Unpad::Unpad(const Shape& x, const Borders& borders, DType dtype) {
  const auto padded_strides = RowMajorStrides(PaddedShape(x, borders));
  const auto x_strides = RowMajorStrides(x);
  for (int axis = 0; axis < x.rank(); ++axis) {
    offset_bytes_ += borders[2 * static_cast<size_t>(axis)] * padded_strides[axis] * SizeOf(dtype);
  }
  copy_ = StridedCopy(x.dims(), padded_strides, x_strides, SizeOf(dtype));
}

void Unpad::Run(const KernelContext& run, const void* padded, void* x) const {
  MoverOf(run).Copy(run, copy_, static_cast<const char*>(padded) + offset_bytes_, x);
}

}  // namespace skiff
