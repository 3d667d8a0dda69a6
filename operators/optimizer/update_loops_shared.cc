#include "operators/optimizer/update_loops_shared.h"

#include <cmath>

#include "framework/base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/update_loops_shared.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body(tag, i) for whole vectors from `begin` on, then for single elements. Both are vector
// code, so that a product and a sum are fused in both or in neither.
template <class Body>
HWY_INLINE void ForEachVector(int64_t begin, int64_t end, const Body& body) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> single;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) body(d, i);
  for (; i < end; ++i) body(single, i);
}

// What a part of a loop runs on.
struct SgdBody {
  const SgdArrays<float>& arrays;
  float learning_rate;

  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto param = hn::LoadU(d, arrays.param + i);
    const auto grad = hn::LoadU(d, arrays.grad + i);
    hn::StoreU(hn::NegMulAdd(hn::Set(d, learning_rate), grad, param), d, arrays.param_out + i);
  }
};

struct MomentumBody {
  const MomentumArrays<float>& arrays;
  const MomentumSettings& settings;

  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto number = [d](double value) { return hn::Set(d, static_cast<float>(value)); };
    const auto param = hn::LoadU(d, arrays.param + i);
    auto grad = hn::Mul(hn::LoadU(d, arrays.grad + i), number(settings.rescale_grad));
    grad = hn::MulAdd(number(settings.l2_decay), param, grad);
    const auto velocity = hn::MulAdd(number(settings.mu), hn::LoadU(d, arrays.velocity + i), grad);
    const auto step =
        settings.use_nesterov ? hn::MulAdd(number(settings.mu), velocity, grad) : velocity;
    hn::StoreU(velocity, d, arrays.velocity_out + i);
    hn::StoreU(hn::NegMulAdd(number(settings.learning_rate), step, param), d, arrays.param_out + i);
  }
};

struct AdamBody {
  const AdamArrays<float>& arrays;
  const AdamSettings& settings;

  template <class D>
  HWY_INLINE void operator()(D d, int64_t i) const {
    const auto number = [d](double value) { return hn::Set(d, static_cast<float>(value)); };
    const auto grad = hn::LoadU(d, arrays.grad + i);
    const auto moment1 = hn::MulAdd(number(settings.beta1), hn::LoadU(d, arrays.moment1 + i),
                                    hn::Mul(number(1.0 - settings.beta1), grad));
    const auto moment2 = hn::MulAdd(number(settings.beta2), hn::LoadU(d, arrays.moment2 + i),
                                    hn::Mul(hn::Mul(number(1.0 - settings.beta2), grad), grad));
    const auto ratio = hn::Div(moment1, hn::Add(hn::Sqrt(moment2), number(settings.epsilon)));
    const auto param = hn::LoadU(d, arrays.param + i);
    hn::StoreU(moment1, d, arrays.moment1_out + i);
    hn::StoreU(moment2, d, arrays.moment2_out + i);
    hn::StoreU(hn::NegMulAdd(number(settings.step_size), ratio, param), d, arrays.param_out + i);
  }
};

void SgdPart(const SgdArrays<float>& arrays, int64_t begin, int64_t end, float learning_rate) {
  ForEachVector(begin, end, SgdBody{arrays, learning_rate});
}

void MomentumPart(const MomentumArrays<float>& arrays, int64_t begin, int64_t end,
                  const MomentumSettings& settings) {
  ForEachVector(begin, end, MomentumBody{arrays, settings});
}

void AdamPart(const AdamArrays<float>& arrays, int64_t begin, int64_t end,
              const AdamSettings& settings) {
  ForEachVector(begin, end, AdamBody{arrays, settings});
}

}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(SgdPart);
HWY_EXPORT(MomentumPart);
HWY_EXPORT(AdamPart);

constexpr int64_t kGrain = 8192;  // elements

}  // namespace

void SgdUpdate(const SgdArrays<float>& arrays, int64_t count, double learning_rate) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SgdPart)(arrays, begin, end, static_cast<float>(learning_rate));
  });
}

void SgdUpdate(const SgdArrays<double>& arrays, int64_t count, double learning_rate) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      arrays.param_out[i] = arrays.param[i] - learning_rate * arrays.grad[i];
    }
  });
}

void MomentumUpdate(const MomentumArrays<float>& arrays, int64_t count,
                    const MomentumSettings& settings) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(MomentumPart)(arrays, begin, end, settings);
  });
}

void MomentumUpdate(const MomentumArrays<double>& arrays, int64_t count,
                    const MomentumSettings& settings) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double grad =
          arrays.grad[i] * settings.rescale_grad + settings.l2_decay * arrays.param[i];
      const double velocity = settings.mu * arrays.velocity[i] + grad;
      const double step = settings.use_nesterov ? grad + settings.mu * velocity : velocity;
      arrays.param_out[i] = arrays.param[i] - settings.learning_rate * step;
      arrays.velocity_out[i] = velocity;
    }
  });
}

void AdamUpdate(const AdamArrays<float>& arrays, int64_t count, const AdamSettings& settings) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AdamPart)(arrays, begin, end, settings);
  });
}

void AdamUpdate(const AdamArrays<double>& arrays, int64_t count, const AdamSettings& settings) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double grad = arrays.grad[i];
      const double moment1 = settings.beta1 * arrays.moment1[i] + (1.0 - settings.beta1) * grad;
      const double moment2 =
          settings.beta2 * arrays.moment2[i] + (1.0 - settings.beta2) * grad * grad;
      arrays.param_out[i] =
          arrays.param[i] - settings.step_size * moment1 / (std::sqrt(moment2) + settings.epsilon);
      arrays.moment1_out[i] = moment1;
      arrays.moment2_out[i] = moment2;
    }
  });
}

}  // namespace skiff
#endif
