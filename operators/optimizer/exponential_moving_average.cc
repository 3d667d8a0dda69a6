// exponential_moving_average: AverageOut = d * Average + (1 - d) * Param, DecayProductOut =
// d * DecayProduct, where d = decay, or min(decay, (1 + ThresSteps) / (10 + ThresSteps)).
//
// If averages begin with 0 and products with 1, Average / (1 - DecayProduct) is the mean of the
// parameter's values, weighted by the decays since, however these change: the weights add up to 1 -
// DecayProduct. (Fluid divides by 1 - d^steps, which is the same only for a constant d.)
//
// Source: Fluid's ExponentialMovingAverage, which composes it of other ops.
#include <memory>
#include <utility>

#include "operators/optimizer/kernels/average_op.h"
#include "operators/optimizer/kernels/update_op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/optimizer/exponential_moving_average.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T, class D>
HWY_INLINE void MixVector(D d, T decay, T rest, const T* average, const T* param, T* mixed) {
  const auto added = hn::Mul(hn::Set(d, rest), hn::LoadU(d, param));
  hn::StoreU(hn::MulAdd(hn::Set(d, decay), hn::LoadU(d, average), added), d, mixed);
}

template <typename T>
void MixArrays(T decay, T rest, const T* average, const T* param, int64_t count, T* mixed) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    MixVector(d, decay, rest, average + i, param + i, mixed + i);
  }
  // One lane at a time, with the same rounding, so an element's result doesn't depend on its
  // position.
  for (; i < count; ++i) MixVector(one, decay, rest, average + i, param + i, mixed + i);
}

void MixFloats(float decay, float rest, const float* average, const float* param, int64_t count,
               float* mixed) {
  MixArrays(decay, rest, average, param, count, mixed);
}
void MixDoubles(double decay, double rest, const double* average, const double* param,
                int64_t count, double* mixed) {
  MixArrays(decay, rest, average, param, count, mixed);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(MixFloats);
HWY_EXPORT(MixDoubles);

void Mix(float decay, float rest, const float* average, const float* param, int64_t count,
         float* mixed) {
  HWY_DYNAMIC_DISPATCH(MixFloats)(decay, rest, average, param, count, mixed);
}
void Mix(double decay, double rest, const double* average, const double* param, int64_t count,
         double* mixed) {
  HWY_DYNAMIC_DISPATCH(MixDoubles)(decay, rest, average, param, count, mixed);
}

#include "operators/optimizer/kernels/exponential_moving_average_formula-inl.h"

template <typename T>
class ExponentialMovingAverage final : public AverageKernel {
 public:
  explicit ExponentialMovingAverage(const OpContext& context)
      : AverageKernel(context),
        decay_(static_cast<T>(context.Attr<float>("decay"))),
        thres_steps_(context, "ThresSteps") {}

 private:
  enum { kAverage, kDecayProduct };

  void Advance(const KernelContext& run, size_t i) override {
    step_decay_ = thres_steps_.is_there() ? DecayAt(decay_, *thres_steps_(run)) : decay_;
    *StateOut<double>(kDecayProduct, i) = *StateIn<double>(kDecayProduct, i) * step_decay_;
  }

  void Accumulate(size_t i, int64_t begin, int64_t end) const override {
    Mix(step_decay_, 1 - step_decay_, StateIn<T>(kAverage, i) + begin, Param<T>(i) + begin,
        end - begin, StateOut<T>(kAverage, i) + begin);
  }

  T decay_;
  T step_decay_ = 0;  // of the run
  In<int64_t> thres_steps_;
};

void CheckThresSteps(const OpContext& context) {
  if (!context.HasInput("ThresSteps")) return;
  const TensorMeta& steps = context.Input("ThresSteps");
  const bool is_one = !steps.shape.is_known() || steps.shape.element_count() == 1;
  SKIFF_ENFORCE(is_one && steps.dtype == DType::kInt64, kInvalidArgument,
                "exponential_moving_average: ThresSteps is ", steps.dtype, " ", steps.shape,
                ", expected int64 of one element");
}

AverageOp ExponentialMovingAverageOp() {
  return {
      .type = "exponential_moving_average",
      .doc =
          "AverageOut = d * Average + (1 - d) * Param; DecayProductOut = d * DecayProduct; d = "
          "decay, or min(decay, (1 + ThresSteps) / (10 + ThresSteps)). The bias-corrected mean is "
          "Average / (1 - DecayProduct).",
      .param = "Param",
      .arrays = {{"Average", "AverageOut", "The averages, which begin with 0."}},
      .scalars = {{"DecayProduct", "DecayProductOut",
                   "float64 of one element: the product of all decays so far, which begins with "
                   "1."}},
      .scalar_dtype = DType::kFloat64,
      .shared_inputs = {{.name = "ThresSteps",
                         .doc = "int64 of one element, for all parameters: a number of steps, from "
                                "which d grows towards decay; below 0 it counts as 0.",
                         .dispensable = true}},
      .attrs = {{.name = "decay",
                 .type = AttrType::kFloat,
                 .default_value = 0.999f,
                 .doc = "The factor of the old average in a step.",
                 .accepts =
                     [](const Attribute& value) {
                       const auto* decay = std::get_if<float>(&value);
                       return decay != nullptr && *decay >= 0 && *decay < 1;
                     },
                 .expected = "a number in [0, 1)"}},
      .check = CheckThresSteps};
}

}  // namespace

void RegisterExponentialMovingAverage(OpRegistry& registry) {
  registry.Add(MakeAverageOpDef(ExponentialMovingAverageOp()));
  registry.AddCpuKernels<float, double>(
      "exponential_moving_average",
      []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<ExponentialMovingAverage<T>>(context);
      });
}

}  // namespace skiff
#endif  // HWY_ONCE
