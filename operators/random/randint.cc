// randint: Out[i] is one of low, low + 1, …, high - 1, all equally likely.
//
// Source: Fluid's randint. Element i is drawn from words 2i and 2i + 1 of the stream.
#include "framework/base/error.h"
#include "operators/random/kernels/random_tensor.h"

namespace skiff {
namespace {

struct Interval {
  int64_t low = 0;
  int64_t high = 0;
};

Interval IntervalOf(const OpContext& context) {
  const Interval interval{context.IntAttr("low"), context.IntAttr("high")};
  SKIFF_ENFORCE(interval.low < interval.high, kInvalidArgument, "randint: low = ", interval.low,
                " and high = ", interval.high, ", expected low < high");
  return interval;
}

void InferRandint(OpContext& context) {
  IntervalOf(context);
  const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
  SKIFF_ENFORCE(dtype == DType::kInt32 || dtype == DType::kInt64, kInvalidArgument,
                "randint: dtype is ", dtype, ", expected int32 or int64");
  context.SetOutput("Out", RandomShapeOf(context), dtype);
}

template <typename T>
std::unique_ptr<Kernel> PrepareRandint(PrepareContext& context) {
  return MakeKernel([interval = IntervalOf(context), seed = context.IntAttr("seed"),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    FillFromWords<T>(InitializerKey(seed, run), 2, &out.tensor(run), [=](const uint32_t* words) {
      const int64_t number = NumberBelow(interval.high - interval.low, words[0], words[1]);
      return static_cast<T>(interval.low + number);
    });
  });
}

}  // namespace

void RegisterRandint(OpRegistry& registry) {
  OpDef def;
  def.type = "randint";
  def.doc = "Out[i] is an integer in [low, high), all equally likely.";
  def.inputs = ShapeSlots();
  def.outputs = {{.name = "Out", .doc = "Random numbers."}};
  def.attrs = {{.name = "low", .type = AttrType::kInt, .doc = "The least number."},
               {.name = "high", .type = AttrType::kInt, .doc = "The upper bound, never drawn."},
               {.name = "shape",
                .type = AttrType::kLongs,
                .default_value = std::vector<int64_t>{},
                .doc = "The shape of Out; empty: a scalar."},
               {.name = "dtype",
                .type = AttrType::kInt,
                .default_value = int32_t{3},
                .doc = "int32 or int64, as Fluid's enumerator."},
               {.name = "seed",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "Not 0: draw by this seed alone, the same numbers in every op and run."}};
  def.infer = InferRandint;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output is random and depends on no input";
  def.kernel_dtype_slot = "Out";
  def.random = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<int32_t, int64_t>(
      "randint", []<typename T>(PrepareContext& context) { return PrepareRandint<T>(context); });
}

}  // namespace skiff
