// gaussian_random: Out[i] is normal with mean `mean` and standard deviation `std`.
//
// Source: Fluid's gaussian_random; Box & Muller (1958). NormalPair computes elements 2i and 2i + 1
// from the four words of block i, in double precision, whatever the dtype. So a thread needs no
// state, and every number of threads draws the same numbers.
#include "framework/base/error.h"
#include "operators/random/kernels/random_tensor.h"

namespace skiff {
namespace {

void InferGaussian(OpContext& context) {
  InferRandomTensor(context);
  const float deviation = context.Attr<float>("std");
  SKIFF_ENFORCE(deviation >= 0, kInvalidArgument, "gaussian_random: std = ", deviation,
                ", expected 0 or more");
}

template <typename T>
void FillGaussian(const RandomKey& key, double mean, double deviation, Tensor* out) {
  const int64_t count = out->element_count();
  T* data = out->data<T>();
  const Philox philox(key);
  ParallelFor((count + 1) / 2, 256, [=](int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair) {
      const auto [first, second] = NormalPair(philox.At(static_cast<uint64_t>(pair)));
      data[2 * pair] = static_cast<T>(mean + deviation * first);
      if (2 * pair + 1 < count) data[2 * pair + 1] = static_cast<T>(mean + deviation * second);
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGaussian(PrepareContext& context) {
  return MakeKernel([mean = context.Attr<float>("mean"), deviation = context.Attr<float>("std"),
                     seed = context.IntAttr("seed"),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    FillGaussian<T>(InitializerKey(seed, run), mean, deviation, &out.tensor(run));
  });
}

}  // namespace

void RegisterGaussianRandom(OpRegistry& registry) {
  OpDef def;
  def.type = "gaussian_random";
  def.doc =
      "Out[i] is drawn from the normal distribution of mean `mean`, standard deviation `std`.";
  def.inputs = ShapeSlots();
  def.outputs = {{.name = "Out", .doc = "Random numbers."}};
  def.attrs = RandomTensorAttrs(AttrType::kLongs);
  def.attrs.push_back(
      {.name = "mean", .type = AttrType::kFloat, .default_value = 0.0f, .doc = "The mean."});
  def.attrs.push_back({.name = "std",
                       .type = AttrType::kFloat,
                       .default_value = 1.0f,
                       .doc = "The standard deviation."});
  def.infer = InferGaussian;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output is random and depends on no input";
  def.kernel_dtype_slot = "Out";
  def.random = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("gaussian_random", []<typename T>(PrepareContext& context) {
    return PrepareGaussian<T>(context);
  });
}

}  // namespace skiff
