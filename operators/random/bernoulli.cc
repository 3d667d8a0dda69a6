// bernoulli: Out[i] is 1 with probability X[i], else 0.
//
// Source: Fluid's bernoulli. Out[i] is 1 if word i of the stream is below X[i] * 2^32, whatever the
// dtype. An element of X outside [0, 1] is an Error.
#include <algorithm>

#include "framework/base/error.h"
#include "operators/random/kernels/random_tensor.h"

namespace skiff {
namespace {

template <typename T>
void CheckProbabilities(const T* x, int64_t count) {
  const auto is_bad = [](T p) { return !(p >= T{0} && p <= T{1}); };
  bool any_bad = false;
  for (int64_t i = 0; i < count; ++i) any_bad |= is_bad(x[i]);
  if (!any_bad) return;
  const int64_t bad = std::find_if(x, x + count, is_bad) - x;
  Throw(ErrorCode::kOutOfRange, "bernoulli: element ", bad, " of X is ", x[bad],
        ", expected a probability in [0, 1]");
}

template <typename T>
void DrawBernoulli(const RandomKey& key, const T* x, int64_t count, T* out) {
  constexpr int64_t kBatch = 1024;
  ParallelFor(count, kBatch, [=](int64_t begin, int64_t end) {
    uint32_t words[kBatch];
    for (int64_t first = begin; first < end; first += kBatch) {
      const int64_t batch = std::min(kBatch, end - first);
      PhiloxWords(key, static_cast<uint64_t>(first / 4), (batch + 3) / 4, words);
      for (int64_t k = 0; k < batch; ++k) {
        // In float64, where X * 2^32 is exact: a probability of 1 is above every word.
        const double bound = static_cast<double>(x[first + k]) * 0x1.0p32;
        out[first + k] = static_cast<double>(words[k]) < bound ? T{1} : T{0};
      }
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareBernoulli(PrepareContext& context) {
  return MakeRowsKernel(
      [x = In<T>(context, "X"), out = Out<T>(context, "Out")](const KernelContext& run) {
        const T* probabilities = x(run);
        const int64_t count = x.count(run);
        CheckProbabilities(probabilities, count);
        DrawBernoulli(run.random_key(), probabilities, count, out(run));
      });
}

}  // namespace

void RegisterBernoulli(OpRegistry& registry) {
  OpDef def;
  def.type = "bernoulli";
  def.doc = "Out[i] is 1 with probability X[i], else 0.";
  def.inputs = {{.name = "X", .doc = "Probabilities.", .checks_data = true}};
  def.outputs = {{.name = "Out", .doc = "Zeros and ones, of X's shape and dtype."}};
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "the output is a step function of X and a random number";
  def.in_place = {{"X", "Out"}};
  def.random = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("bernoulli", []<typename T>(PrepareContext& context) {
    return PrepareBernoulli<T>(context);
  });
}

}  // namespace skiff
