// CUDA kernels of gradient_merge_rows; gradient_merge_rows.cc has the formula.
//
// The device reads Count, so the CPU waits for nothing: all launches are those of the last run of a
// round, and in other runs some do nothing.
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "framework/base/element_count.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_division.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_numbering.cuh"
#include "operators/common/cuda/cuda_selected_rows.h"
#include "operators/common/cuda/cuda_sorted_rows.cuh"
#include "operators/optimizer/kernels/update_arguments.h"

namespace skiff {
namespace {

// In the first run of a round, no row is touched as yet.
struct BeginRound {
  __device__ void operator()(int64_t row) const {
    if (*run_of_round <= 1) touched[row] = false;
  }

  const int64_t* run_of_round;
  bool* touched;
};

// Adds the sums of a gradient's rows, which are at their first slots, to those of the round. So a
// repeated row is rounded otherwise than on the CPU, which adds its slots to the round's sum.
template <typename T>
struct AddTouchedRows {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    const CudaDivision at = Divide(i, width);
    if (!IsFirstOfRow(sorted, at.quotient)) return;
    const int64_t row = sorted.rows[at.quotient];
    const int64_t slot = sorted.positions[at.quotient];
    CudaValues<T, kCount> sum = LoadValues<kCount>(gradients + slot * width + at.rest, is_aligned);
    T* const to = sums + row * width + at.rest;
    if (touched[row]) {
      const CudaValues<T, kCount> before = LoadValues<kCount>(to, is_aligned);
#pragma unroll
      for (int k = 0; k < kCount; ++k) sum.at[k] += before.at[k];
    }
    StoreValues(sum, is_aligned, to);
  }

  SortedRows sorted;
  int64_t width;
  const T* gradients;
  const bool* touched;
  T* sums;
  bool is_aligned;
};

struct TouchRows {
  __device__ void operator()(int64_t k) const {
    if (IsFirstOfRow(sorted, k)) touched[sorted.rows[k]] = true;
  }

  SortedRows sorted;
  bool* touched;
};

struct IsInRound {
  __device__ bool operator()(int64_t row) const { return *run_of_round >= steps && touched[row]; }

  const int64_t* run_of_round;
  int64_t steps;
  const bool* touched;
};

struct ListTouchedRow {
  __device__ void operator()(int64_t row, int64_t number, bool is_touched) const {
    if (is_touched) rows[number] = row;
  }

  int64_t* rows;
};

// Out has the sums of the listed rows.
template <typename T>
struct GatherSums {
  template <int kCount>
  __device__ void Do(int64_t i) const {
    const CudaDivision at = Divide(i, width);
    const int64_t row = rows[at.quotient];
    if (row < 0) return;
    // By Count, not by `steps`, as on the CPU.
    const T factor = mean ? static_cast<T>(1.0 / static_cast<double>(*run_of_round)) : T{1};
    CudaValues<T, kCount> sum = LoadValues<kCount>(sums + row * width + at.rest, is_aligned);
#pragma unroll
    for (int k = 0; k < kCount; ++k) sum.at[k] *= factor;
    StoreValues(sum, is_aligned, out + i);
  }

  const int64_t* run_of_round;
  bool mean;
  const int64_t* rows;
  int64_t width;
  const T* sums;
  T* out;
  bool is_aligned;
};

template <typename T>
class GradientMergeRows final : public Kernel {
 public:
  explicit GradientMergeRows(PrepareContext& context)
      : sums_(PairsOf(context, "Accumulated", "AccumulatedOut").front()),
        touched_(PairsOf(context, "Touched", "TouchedOut").front()),
        grad_(context, "Grad"),
        count_(context, "Count"),
        out_(context, "Out"),
        steps_(context.IntAttr("steps")),
        mean_(context.Attr<bool>("mean")),
        merged_(context, context.Input("Grad")),
        numbering_(context, context.Input("Touched").shape[0]),
        gradients_(context.RequestWorkspace(
            ByteCount(context.Input("Grad").shape.element_count(), kDTypeOf<T>))) {}

  void Run(const KernelContext& run) override {
    // Untouched rows must have the same values in the outputs, if these aren't the inputs.
    for (const UpdateArguments::Pair& pair : {sums_, touched_}) {
      const Tensor& from = run.input(pair.in);
      CopyOnDevice(run, from.raw_data(), run.output(pair.out).raw_data(), from.byte_count());
    }
    const int64_t* const run_of_round = count_(run);
    bool* const touched = run.output(touched_.out).template data<bool>();
    const int64_t height = run.output(touched_.out).element_count();
    ForEachOnDevice(run, kWhat, height, BeginRound{run_of_round, touched});
    Add(run, touched);
    Tensor& out = out_.tensor(run);
    // -1: unused.
    FillBytesOnDevice(run, out.rows().data(), 0xFF, static_cast<int64_t>(out.rows().size_bytes()));
    int64_t* const rows = out.rows().data();
    numbering_.Run(run, kWhat, height, IsInRound{run_of_round, steps_, touched},
                   ListTouchedRow{rows});
    const T* const sums = run.output(sums_.out).template data<T>();
    T* const values = out.data<T>();
    const int64_t width = RowWidth(out.shape());
    ForEachPackOnDevice<T>(run, kWhat, out.element_count(), width,
                           GatherSums<T>{run_of_round, mean_, rows, width, sums, values,
                                         ArePacksAligned(sums, values)});
  }

 private:
  static constexpr const char* kWhat = "gradient_merge_rows";

  void Add(const KernelContext& run, bool* touched) {
    const Tensor& grad = grad_.tensor(run);
    const SortedRows sorted = merged_.Sort(run, grad);
    const int64_t width = RowWidth(grad.shape());
    auto* const gradients = static_cast<T*>(run.workspace(gradients_));
    merged_.SetAtFirst(run, sorted, width, grad.data<T>(), gradients);
    T* const sums = run.output(sums_.out).template data<T>();
    ForEachPackOnDevice<T>(run, kWhat, grad.element_count(), width,
                           AddTouchedRows<T>{sorted, width, gradients, touched, sums,
                                             ArePacksAligned(gradients, sums)});
    ForEachOnDevice(run, kWhat, sorted.count, TouchRows{sorted, touched});
  }

  UpdateArguments::Pair sums_;
  UpdateArguments::Pair touched_;
  In<T> grad_;
  In<int64_t> count_;
  Out<T> out_;
  int64_t steps_;
  bool mean_;
  CudaMergedRows<T> merged_;
  CudaNumbering numbering_;
  int gradients_;  // workspace
};

}  // namespace

void RegisterGradientMergeRowsCuda(OpRegistry& registry) {
  registry.AddSelectedRowsKernels<float, double>(
      "gradient_merge_rows",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<GradientMergeRows<T>>(context);
      },
      PlaceKind::kCuda);
}

}  // namespace skiff
