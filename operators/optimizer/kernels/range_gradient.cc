#include "operators/optimizer/kernels/range_gradient.h"

#include <algorithm>
#include <type_traits>

#include "operators/common/half_arrays.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/kernels/range_gradient.cc"
#include "hwy/foreach_target.h"
#include "operators/optimizer/kernels/update_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

template <typename T, class D>
HWY_INLINE void FormVector(const VectorMath<T, D>& math, const GradientForm<T>& form, const T* grad,
                           const T* param, T* formed) {
  const D d;
  const auto g = GradientFormula::Formed(math, form, hn::LoadU(d, grad), hn::LoadU(d, param));
  hn::StoreU(g, d, formed);
}

template <typename T>
void FormGradientOf(const GradientForm<T>& form, const T* grad, const T* param, int64_t count,
                    T* formed) {
  const VectorMath<T> math({});
  // The remaining elements are computed by vectors of one lane, with the same formula.
  const VectorMath<T, hn::CappedTag<T, 1>> math_of_one({});
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) FormVector(math, form, grad + i, param + i, formed + i);
  for (; i < count; ++i) FormVector(math_of_one, form, grad + i, param + i, formed + i);
}

// HWY_EXPORT takes no templates, hence a function for each dtype.
void FormFloats(const GradientForm<float>& form, const float* grad, const float* param,
                int64_t count, float* formed) {
  FormGradientOf(form, grad, param, count, formed);
}

void FormDoubles(const GradientForm<double>& form, const double* grad, const double* param,
                 int64_t count, double* formed) {
  FormGradientOf(form, grad, param, count, formed);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(FormFloats);
HWY_EXPORT(FormDoubles);

void FormGradient(const GradientForm<float>& form, const float* grad, const float* param,
                  int64_t count, float* formed) {
  HWY_DYNAMIC_DISPATCH(FormFloats)(form, grad, param, count, formed);
}

void FormGradient(const GradientForm<double>& form, const double* grad, const double* param,
                  int64_t count, double* formed) {
  HWY_DYNAMIC_DISPATCH(FormDoubles)(form, grad, param, count, formed);
}

}  // namespace

template <typename T>
const T* GradientOf(const UpdateRange<T>& range, const HalfArrays& halves, int64_t begin,
                    int64_t end, T* buffer) {
  if (range.grad != nullptr) return range.grad + begin;
  // Rows without a gradient, of a parameter whose gradient is selected rows.
  if (range.half_grad == nullptr) {
    std::fill_n(buffer, end - begin, T{0});
  } else if constexpr (std::is_same_v<T, float>) {
    halves.to_floats(range.half_grad + begin, end - begin, buffer);
  }
  return buffer;
}

template <typename T>
const T* FormedGradientOf(const UpdateRange<T>& range, const HalfArrays& halves, int64_t begin,
                          int64_t end, T* buffer) {
  const T* grad = GradientOf(range, halves, begin, end, buffer);
  // Nothing to scale or to add, so the gradient needn't be copied.
  if (range.gradient.is_plain()) return grad;
  FormGradient(range.gradient, grad, range.param + begin, end - begin, buffer);
  return buffer;
}

template const float* GradientOf(const UpdateRange<float>&, const HalfArrays&, int64_t, int64_t,
                                 float*);
template const double* GradientOf(const UpdateRange<double>&, const HalfArrays&, int64_t, int64_t,
                                  double*);
template const float* FormedGradientOf(const UpdateRange<float>&, const HalfArrays&, int64_t,
                                       int64_t, float*);
template const double* FormedGradientOf(const UpdateRange<double>&, const HalfArrays&, int64_t,
                                        int64_t, double*);

}  // namespace skiff
#endif  // HWY_ONCE
