// randperm: Out is 0, 1, …, n - 1 in a random order, all orders equally likely.
//
// Source: Fluid's randperm. The algorithm is the inside-out shuffle of Fisher and Yates: words 2i
// and 2i + 1 of the stream choose one of the first i + 1 places for element i, and the element
// there moves to place i. Each step depends on the ones before, so there is only one thread.
#include <algorithm>

#include "framework/base/error.h"
#include "operators/random/kernels/random_tensor.h"

namespace skiff {
namespace {

constexpr int64_t kBatch = 512;  // elements, of two words each

template <typename T>
void Shuffle(const RandomKey& key, int64_t count, T* out) {
  uint32_t words[2 * kBatch];
  for (int64_t first = 0; first < count; first += kBatch) {
    const int64_t batch = std::min(kBatch, count - first);
    PhiloxWords(key, static_cast<uint64_t>(first / 2), (batch + 1) / 2, words);
    for (int64_t k = 0; k < batch; ++k) {
      const int64_t i = first + k;
      const int64_t place = NumberBelow(i + 1, words[2 * k], words[2 * k + 1]);
      if (place < i) out[i] = out[place];
      out[place] = static_cast<T>(i);
    }
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareRandperm(PrepareContext& context) {
  return MakeKernel([out = Out<T>(context, "Out")](const KernelContext& run) {
    Shuffle(run.random_key(), out.count(run), out(run));
  });
}

void InferRandperm(OpContext& context) {
  const int64_t n = context.IntAttr("n");
  SKIFF_ENFORCE(n >= 0, kOutOfRange, "randperm: n = ", n, ", expected 0 or more");
  const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
  VisitDType<int32_t, int64_t, float, double>(dtype, "randperm: dtype", [](auto) {});
  // Beyond 2^24, not every integer is a float.
  SKIFF_ENFORCE(dtype != DType::kFloat32 || n <= (int64_t{1} << 24), kOutOfRange,
                "randperm: n = ", n, " is too large for float32, expected int64");
  context.SetOutput("Out", {n}, dtype);
}

}  // namespace

void RegisterRandperm(OpRegistry& registry) {
  OpDef def;
  def.type = "randperm";
  def.doc = "Out is 0, 1, …, n - 1 in a random order.";
  def.outputs = {{.name = "Out", .doc = "[n]."}};
  def.attrs = {{.name = "n", .type = AttrType::kInt, .doc = "How many numbers."},
               {.name = "dtype",
                .type = AttrType::kInt,
                .default_value = int32_t{3},
                .doc = "The element type of Out, as Fluid's enumerator: float or integer."}};
  def.infer = InferRandperm;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output is random and depends on no input";
  def.kernel_dtype_slot = "Out";
  def.random = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "randperm", []<typename T>(PrepareContext& context) { return PrepareRandperm<T>(context); });
}

}  // namespace skiff
