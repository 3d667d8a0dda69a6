// average_accumulates: keeps the sums from which the average of a parameter's last values is
// computed.
//
//   num_updates += 1, num_accumulates += 1, sum_1 += param
//   if num_updates % max_num_accumulates == 0: sum_2 += sum_1, sum_1 = 0
//   if num_accumulates >= min_average_window and
//      num_accumulates >= min(max_average_window, trunc(num_updates * average_window)):
//     sum_3 = sum_1 + sum_2, sum_1 = sum_2 = 0
//     old_num_accumulates = num_accumulates, num_accumulates = 0
//
// The average is (sum_1 + sum_2 + sum_3) / (num_accumulates + old_num_accumulates), over a window
// that grows to twice its length and is then halved. sum_2 is there for accuracy: it adds up sums
// of similar size, instead of one value after the other to a large sum.
//
// Source: Fluid's average_accumulates, whose kernel is right only if the outputs are the inputs,
// and which rounds num_updates * average_window to float32. Fluid has neither the lists nor
// max_num_accumulates (it is a constant there) nor SkipUpdate.
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "operators/common/cpu/array_reduction.h"
#include "operators/optimizer/kernels/average_op.h"
#include "operators/optimizer/kernels/update_op.h"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/average_accumulates_formula-inl.h"

template <typename T>
class AverageAccumulates final : public AverageKernel {
 public:
  explicit AverageAccumulates(const OpContext& context)
      : AverageKernel(context), rule_(context), folds_(parameter_count()) {}

 private:
  void Advance(const KernelContext&, size_t i) override {
    // Reads all counts before it writes any, as outputs may be inputs.
    int64_t counts[kCounts];
    for (size_t k = 0; k < kCounts; ++k) counts[k] = *StateIn<int64_t>(kSums + k, i);
    folds_[i] = rule_.Advance(counts);
    for (size_t k = 0; k < kCounts; ++k) *StateOut<int64_t>(kSums + k, i) = counts[k];
  }

  void KeepSum(size_t k, size_t i, int64_t begin, int64_t end) const {
    const T* from = StateIn<T>(k, i) + begin;
    T* to = StateOut<T>(k, i) + begin;
    if (from != to) std::memcpy(to, from, static_cast<size_t>(end - begin) * sizeof(T));
  }
  void Clear(size_t k, size_t i, int64_t begin, int64_t end) const {
    std::memset(StateOut<T>(k, i) + begin, 0, static_cast<size_t>(end - begin) * sizeof(T));
  }

  // Sets state k to sum_1 + param + sum_2, and sum_1 to 0.
  void FoldSum1(size_t i, int64_t begin, int64_t end, size_t k) const {
    T* sum_1 = StateOut<T>(kSum1, i) + begin;
    AddParam(i, begin, end);
    AddArrays(sum_1, StateIn<T>(kSum2, i) + begin, StateOut<T>(k, i) + begin, end - begin);
    Clear(kSum1, i, begin, end);
  }
  void AddParam(size_t i, int64_t begin, int64_t end) const {
    AddArrays(StateIn<T>(kSum1, i) + begin, Param<T>(i) + begin, StateOut<T>(kSum1, i) + begin,
              end - begin);
  }

  void Accumulate(size_t i, int64_t begin, int64_t end) const override {
    switch (folds_[i]) {
      case Fold::kNowhere:
        AddParam(i, begin, end);
        KeepSum(kSum2, i, begin, end);
        KeepSum(kSum3, i, begin, end);
        return;
      case Fold::kToSum2:
        FoldSum1(i, begin, end, kSum2);
        KeepSum(kSum3, i, begin, end);
        return;
      case Fold::kToSum3:
        FoldSum1(i, begin, end, kSum3);
        Clear(kSum2, i, begin, end);
        return;
    }
  }

  WindowRule rule_;
  std::vector<Fold> folds_;  // by parameter, of the run
};

AttrDef CountAttr(StaticText name, int64_t default_value, StaticText doc) {
  return {.name = name, .type = AttrType::kLong, .default_value = default_value, .doc = doc};
}

void CheckWindow(const OpContext& context) {
  const int64_t min = context.IntAttr("min_average_window");
  const int64_t max = context.IntAttr("max_average_window");
  SKIFF_ENFORCE(min <= max, kInvalidArgument, "average_accumulates: min_average_window = ", min,
                " is above max_average_window = ", max);
  const float rate = context.Attr<float>("average_window");
  SKIFF_ENFORCE(rate >= 0 && std::isfinite(rate), kInvalidArgument,
                "average_accumulates: average_window = ", rate,
                ", expected a finite number, not negative");
  const int64_t folded = context.IntAttr("max_num_accumulates");
  SKIFF_ENFORCE(folded >= 1, kInvalidArgument,
                "average_accumulates: max_num_accumulates = ", folded, ", expected at least 1");
}

AverageOp AverageAccumulatesOp() {
  return {.type = "average_accumulates",
          .doc =
              "Adds Param to the sums that its average over the last steps is computed from, "
              "(sum_1 + sum_2 + "
              "sum_3) / (num_accumulates + old_num_accumulates): sum_1 += param; every "
              "max_num_accumulates updates sum_2 += sum_1, sum_1 = 0; and once num_accumulates is "
              "at least min_average_window and min(max_average_window, num_updates * "
              "average_window), sum_3 = sum_1 + sum_2, sum_1 = sum_2 = 0, old_num_accumulates = "
              "num_accumulates, num_accumulates = 0.",
          .param = "param",
          .arrays = {{"in_sum_1", "out_sum_1", "Sums of the latest values."},
                     {"in_sum_2", "out_sum_2", "Sums of earlier values of this window."},
                     {"in_sum_3", "out_sum_3", "Sums of the values of the previous window."}},
          .scalars = {{"in_num_accumulates", "out_num_accumulates",
                       "int64 of one element: values in sum_1 and sum_2."},
                      {"in_old_num_accumulates", "out_old_num_accumulates",
                       "int64 of one element: values in sum_3."},
                      {"in_num_updates", "out_num_updates", "int64 of one element: all values."}},
          .scalar_dtype = DType::kInt64,
          .attrs = {FloatAttr("average_window", 0.0f,
                              "The length of a window, as a share of all updates."),
                    CountAttr("max_average_window", std::numeric_limits<int64_t>::max(),
                              "The length that is always enough for a window."),
                    CountAttr("min_average_window", 10000,
                              "The least length of a window; at most max_average_window."),
                    CountAttr("max_num_accumulates", 16384,
                              "How many values sum_1 takes. Not in PaddlePaddle, where it always "
                              "is the default.")},
          .check = CheckWindow};
}

}  // namespace

void RegisterAverageAccumulates(OpRegistry& registry) {
  registry.Add(MakeAverageOpDef(AverageAccumulatesOp()));
  registry.AddCpuKernels<float, double>(
      "average_accumulates", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<AverageAccumulates<T>>(context);
      });
}

}  // namespace skiff
