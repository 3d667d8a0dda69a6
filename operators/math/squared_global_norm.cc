// squared_global_norm: Out = the sum of x² over all elements of all X, of shape [1]: the squared L2
// norm of the tensors as one vector.
//
// The sum of each tensor is rounded to the dtype, and then the sums are added in order. So the bits
// are those of one squared_l2_norm per tensor and a sum, which passes replace by this op. Among
// float32 tensors, some may be float16 or bfloat16; they are converted as by cast.
#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/half.h"
#include "operators/common/merged_rows.h"
#include "operators/common/wide_float32.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const size_t count = context.InputCount("X");
  SKIFF_ENFORCE(count > 0, kInvalidArgument, "squared_global_norm: no X, expected at least one");
  const auto sum_of = [](DType dtype) { return IsHalf(dtype) ? DType::kFloat32 : dtype; };
  const DType dtype = sum_of(context.Input("X").dtype);
  for (size_t i = 0; i < count; ++i) {
    const TensorMeta& x = context.Input("X", i);
    SKIFF_ENFORCE(!IsHalf(x.dtype) || !x.is_selected_rows(), kInvalidArgument,
                  "squared_global_norm: X[", i, "] is selected rows of ", x.dtype,
                  ", expected float32 or float64");
    SKIFF_ENFORCE(sum_of(x.dtype) == dtype, kInvalidArgument, "squared_global_norm: X[", i, "] is ",
                  x.dtype, ", expected ", dtype,
                  dtype == DType::kFloat32 ? " or a two-byte float" : "", " as X[0]");
  }
  context.SetOutput("Out", Shape{1}, SumDType(context, dtype));
}

template <typename T>
class SquaredGlobalNormKernel final : public Kernel {
 public:
  explicit SquaredGlobalNormKernel(PrepareContext& context)
      : out_(context, "Out"),
        is_wide_(IsWideFloat32(context)),
        dense_(IndicesOf(context, false)),
        sparse_(IndicesOf(context, true)),
        squares_of_dense_(CountsOf(context, dense_)),
        workspace_(context.RequestWorkspace(squares_of_dense_.workspace_bytes())),
        arrays_(dense_.size()),
        sums_of_dense_(dense_.size()),
        sums_(context.inputs().size()) {
    for (const size_t i : sparse_) squares_of_sparse_.emplace_back(context, i);
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    for (size_t k = 0; k < dense_.size(); ++k) {
      const Tensor& x = run.input(static_cast<int>(dense_[k]));
      arrays_[k] = {.data = x.raw_data(), .dtype = x.dtype(), .count = x.element_count()};
    }
    squares_of_dense_.Compute(arrays_, run.workspace(workspace_), sums_of_dense_.data());
    for (size_t k = 0; k < dense_.size(); ++k) sums_[dense_[k]] = sums_of_dense_[k];
    for (size_t k = 0; k < sparse_.size(); ++k) {
      sums_[sparse_[k]] = squares_of_sparse_[k].Of(run, run.input(static_cast<int>(sparse_[k])));
    }
    Tensor& out = out_.tensor(run);
    const auto round = [this](double sum) {
      return is_wide_ ? NearestFloat32(sum) : static_cast<double>(static_cast<T>(sum));
    };
    double total = round(sums_[0]);
    for (size_t i = 1; i < sums_.size(); ++i) total = round(total + round(sums_[i]));
    StoreSum(total, &out, is_wide_);
  }

 private:
  static std::vector<size_t> IndicesOf(const OpContext& context, bool is_sparse) {
    std::vector<size_t> indices;
    for (size_t i = 0; i < context.inputs().size(); ++i) {
      if (context.inputs()[i].is_selected_rows() == is_sparse) indices.push_back(i);
    }
    return indices;
  }

  static std::vector<int64_t> CountsOf(const OpContext& context,
                                       const std::vector<size_t>& indices) {
    std::vector<int64_t> counts;
    for (const size_t i : indices) counts.push_back(context.inputs()[i].shape.element_count());
    return counts;
  }

  Out<> out_;
  bool is_wide_;
  std::vector<size_t> dense_;
  std::vector<size_t> sparse_;
  SumsOfSquares<T> squares_of_dense_;
  int workspace_;
  std::vector<MergedSquares<T>> squares_of_sparse_;
  std::vector<typename SumsOfSquares<T>::Array> arrays_;
  std::vector<double> sums_of_dense_;
  std::vector<double> sums_;  // by X
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return std::make_unique<SquaredGlobalNormKernel<T>>(context);
}

}  // namespace

void RegisterSquaredGlobalNorm(OpRegistry& registry) {
  registry.Add({.type = "squared_global_norm",
                .doc = "Out = the sum of the squares of all elements of all X: the squared L2 norm "
                       "of the tensors as one vector.",
                .inputs = {{.name = "X",
                            .doc = "One tensor or more, of any shapes, float64, or float32, "
                                   "float16 and bfloat16; selected rows, which aren't of two "
                                   "bytes, count as the dense tensor that they represent.",
                            .duplicable = true,
                            .selected_rows = true}},
                .outputs = {{.name = "Out", .doc = "The sum, of shape [1]: float64, or float32."}},
                .attrs = {WideFloat32Attr()},
                .infer = Infer,
                .no_gradient_reason = "passes create it, for gradients that are clipped",
                .kernel_dtype_slot = "Out",
                // Its kernels read half, and add to float32.
                .precision = Precision::kNone});
  // Of float64 for a wide Out, too.
  const auto prepare = []<typename T>(PrepareContext& context) {
    return IsWideFloat32(context) ? Prepare<float>(context) : Prepare<T>(context);
  };
  registry.AddCpuKernels<float, double>("squared_global_norm", prepare);
  registry.AddSelectedRowsKernels<float, double>("squared_global_norm", prepare);
}

}  // namespace skiff
