// squared_global_norm: Out = the sum of x² over all elements of all X, of shape [1]: the squared L2
// norm of the tensors as one vector.
//
// The sum of each tensor is rounded to the dtype, and then they are added up in their order: the
// bits are those of squared_l2_norm of each and a sum, in whose place passes put this op.
#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/reduce.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const size_t count = context.InputCount("X");
  SKIFF_ENFORCE(count > 0, kInvalidArgument, "squared_global_norm: no X, expected at least one");
  const DType dtype = context.Input("X").dtype;
  for (size_t i = 1; i < count; ++i) {
    const TensorMeta& x = context.Input("X", i);
    SKIFF_ENFORCE(x.dtype == dtype, kInvalidArgument, "squared_global_norm: X[", i, "] is ",
                  x.dtype, ", expected ", dtype, " as X[0]");
  }
  context.SetOutput("Out", Shape{1}, dtype);
}

template <typename T>
class SquaredGlobalNormKernel final : public Kernel {
 public:
  explicit SquaredGlobalNormKernel(PrepareContext& context)
      : out_(context.OutputIndex("Out")),
        sums_of_squares_(CountsOf(context)),
        workspace_(context.RequestWorkspace(sums_of_squares_.workspace_bytes())),
        arrays_(context.InputCount("X")),
        sums_(arrays_.size()) {}

  void Run(const KernelContext& run) override {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const Tensor& x = run.input(static_cast<int>(i));
      arrays_[i] = x.data<T>();
    }
    sums_of_squares_.Add(arrays_, run.workspace(workspace_), sums_.data());
    T total = static_cast<T>(sums_[0]);
    for (size_t i = 1; i < sums_.size(); ++i) total += static_cast<T>(sums_[i]);
    T* out = run.output(out_).template data<T>();
    *out = total;
  }

 private:
  static std::vector<int64_t> CountsOf(const OpContext& context) {
    std::vector<int64_t> counts;
    for (const TensorMeta& x : context.inputs()) counts.push_back(x.shape.element_count());
    return counts;
  }

  int out_;
  SumsOfSquares<T> sums_of_squares_;
  int workspace_;
  std::vector<const T*> arrays_;
  std::vector<double> sums_;
};

}  // namespace

void RegisterSquaredGlobalNorm(OpRegistry& registry) {
  registry.Add({.type = "squared_global_norm",
                .doc = "Out = the sum of the squares of all elements of all X: the squared L2 norm "
                       "of the tensors as one vector.",
                .inputs = {{.name = "X",
                            .doc = "One tensor or more, of any shapes and one dtype.",
                            .duplicable = true}},
                .outputs = {{.name = "Out", .doc = "The sum, of shape [1]."}},
                .infer = Infer,
                .no_gradient_reason = "passes make it, of gradients that are clipped"});
  registry.AddCpuKernels<float, double>(
      "squared_global_norm", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<SquaredGlobalNormKernel<T>>(context);
      });
}

}  // namespace skiff
