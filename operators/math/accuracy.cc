// accuracy: counts the rows of a batch whose label is among the k classes that top_k chose.
// Accuracy = Correct / Total, or 0 for an empty batch.
// Source: Fluid's accuracy. All outputs are scalars (rank 0), and Accuracy is always float32.
#include "framework/base/error.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const Shape& indices = context.Input("Indices").shape;
  const TensorMeta& label = context.Input("Label");
  SKIFF_ENFORCE(indices.rank() == 2, kInvalidArgument, "accuracy: Indices is of shape ", indices,
                ", expected [rows, k]");
  SKIFF_ENFORCE(context.Input("Indices").dtype == DType::kInt64, kInvalidArgument,
                "accuracy: Indices is ", context.Input("Indices").dtype, ", expected int64");
  const bool is_column =
      label.shape.rank() == 1 || (label.shape.rank() == 2 && label.shape[1] == 1);
  SKIFF_ENFORCE(is_column, kInvalidArgument, "accuracy: Label is of shape ", label.shape,
                ", expected [rows, 1]");
  SKIFF_ENFORCE(label.dtype == DType::kInt64 || label.dtype == DType::kInt32, kInvalidArgument,
                "accuracy: Label is ", label.dtype, ", expected int64 or int32");
  MergeDims(indices[0], label.shape[0], "accuracy: rows of Indices and of Label");
  context.SetOutput("Accuracy", Shape{}, DType::kFloat32);
  context.SetOutput("Correct", Shape{}, DType::kInt32);
  context.SetOutput("Total", Shape{}, DType::kInt32);
}

template <typename L>
int64_t CountCorrect(const int64_t* indices, const L* labels, int64_t rows, int64_t k) {
  int64_t correct = 0;
  for (int64_t row = 0; row < rows; ++row) {
    bool found = false;
    // No early exit: k is small, and without branches the loop can be vectorized.
    for (int64_t i = row * k; i < (row + 1) * k; ++i) found |= indices[i] == labels[row];
    correct += found ? 1 : 0;
  }
  return correct;
}

std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int64_t k = context.Input("Indices").shape[1];
  const bool is_int64 = context.Input("Label").dtype == DType::kInt64;
  const In<int64_t> indices(context, "Indices");
  const In<> label(context, "Label");
  const Out<float> accuracy(context, "Accuracy");
  const Out<int32_t> correct(context, "Correct");
  const Out<int32_t> total(context, "Total");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t rows = indices.shape(run)[0];
    const int64_t* found = indices(run);
    const Tensor& labels = label.tensor(run);
    const int64_t count = is_int64 ? CountCorrect(found, labels.data<int64_t>(), rows, k)
                                   : CountCorrect(found, labels.data<int32_t>(), rows, k);
    if (accuracy.is_there()) {
      *accuracy(run) = rows == 0 ? 0.0f : static_cast<float>(count) / static_cast<float>(rows);
    }
    if (correct.is_there()) *correct(run) = static_cast<int32_t>(count);
    if (total.is_there()) *total(run) = static_cast<int32_t>(rows);
  });
}

}  // namespace

void RegisterAccuracy(OpRegistry& registry) {
  registry.Add({.type = "accuracy",
                .doc = "The share of rows whose label is among the classes that top_k chose. "
                       "Fluid's accuracy.",
                .inputs = {{.name = "Out", .doc = "The values of top_k.", .shape_only = true},
                           {.name = "Indices", .doc = "The classes, [rows, k]."},
                           {.name = "Label", .doc = "[rows, 1], int64 or int32."}},
                .outputs = {{.name = "Accuracy", .doc = "Correct / Total, float32 of rank 0."},
                            {.name = "Correct",
                             .doc = "The number of rows with a correct class, int32.",
                             .dispensable = true},
                            {.name = "Total", .doc = "Rows, int32.", .dispensable = true}},
                .infer = Infer,
                .no_gradient_reason = "a count has no derivative",
                .precision = Precision::kHigh});
  registry.AddCpuKernels<float, double>(
      "accuracy", []<typename T>(PrepareContext& context) { return Prepare(context); });
}

}  // namespace skiff
