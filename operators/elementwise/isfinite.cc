// isfinite: Out = whether every element of X is finite, as one bool. Source: the op of that name in
// Fluid 1.x (PaddlePaddle 2 has isfinite_v2, which works element by element). If X is selected
// rows, it checks the slots in use.
#include <atomic>
#include <cmath>
#include <type_traits>
#include <utility>

#include "operators/common/selected_rows.h"
#include "operators/elementwise/kernels/unary.h"

namespace skiff {
namespace {

// The number of elements that a thread checks before it looks whether another one has the answer.
constexpr int64_t kStride = 4096;

template <typename T>
bool AreFinite(const T* x, int64_t count) {
  bool finite = true;
  // x - x is 0 for a finite number, and NaN for an infinity or NaN. Without a branch, the compiler
  // vectorizes the loop.
  for (int64_t i = 0; i < count; ++i) finite &= x[i] - x[i] == T{0};
  return finite;
}

template <typename T>
bool AllFinite(const T* x, int64_t count) {
  if constexpr (!std::is_floating_point_v<T>) return true;
  std::atomic<bool> finite{true};
  ParallelFor(count, kVectorGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && finite.load(std::memory_order_relaxed); i += kStride) {
      if (!AreFinite(x + i, std::min(kStride, end - i))) {
        finite.store(false, std::memory_order_relaxed);
      }
    }
  });
  return finite.load();
}

template <typename T>
void AddIsfiniteKernel(OpRegistry& registry) {
  registry.AddCpuKernels<T>("isfinite", []<typename U>(PrepareContext& context) {
    const In<U> x(context, "X");
    const Out<bool> out(context, "Out");
    return MakeRowsKernel(
        [=](const KernelContext& run) { out(run)[0] = AllFinite(x(run), x.count(run)); });
  });
}

template <typename T>
bool AllFinite(const Tensor& selected) {
  const int64_t width = RowWidth(selected.shape());
  const T* values = selected.data<T>();
  for (const int64_t row : selected.rows()) {
    if (row >= 0 && !AllFinite(values, width)) return false;
    values += width;
  }
  return true;
}

}  // namespace

void RegisterIsfinite(OpRegistry& registry) {
  OpDef def;
  def.type = "isfinite";
  def.doc = "Out = whether no element of X is infinite or NaN.";
  def.inputs = {{.name = "X", .doc = "Any tensor.", .selected_rows = true}};
  def.outputs = {{.name = "Out", .doc = "One bool, of shape [1]."}};
  def.infer = [](OpContext& context) { context.SetOutput("Out", {1}, DType::kBool); };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "a bool has no gradient";
  registry.Add(std::move(def));
  AddIsfiniteKernel<float>(registry);
  AddIsfiniteKernel<double>(registry);
  AddIsfiniteKernel<int32_t>(registry);
  AddIsfiniteKernel<int64_t>(registry);
  registry.AddSelectedRowsKernels<float, double>(
      "isfinite", []<typename T>(PrepareContext& context) {
        const In<T> x(context, "X");
        const Out<bool> out(context, "Out");
        return MakeRowsKernel(
            [=](const KernelContext& run) { out(run)[0] = AllFinite<T>(x.tensor(run)); });
      });
}

}  // namespace skiff
