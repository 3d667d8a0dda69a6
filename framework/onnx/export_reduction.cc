// Reductions, norms and softmaxes.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"

namespace skiff::onnx_export {
namespace {

struct Axes {
  std::vector<int64_t> reduced;  // none: all
  bool keeps_dims = false;
};

Axes AxesOf(OpExport& op, std::string_view dim, std::string_view keep) {
  Axes axes;
  axes.keeps_dims = op.Bool(keep);
  const bool all = op.Bool("reduce_all");
  const int64_t rank = op.Rank("X");
  if (all) {
    op.Ignore(dim);
  } else if (rank > 0) {
    axes.reduced = op.Ints(dim);
    for (int64_t& axis : axes.reduced) axis += axis < 0 ? rank : 0;
  } else {
    op.Ignore(dim);
  }
  return axes;
}

// The dtypes that these name are those of X and Out: the definition refuses others.
void IgnoreDTypes(OpExport& op) {
  op.Ignore("in_dtype");
  op.Ignore("out_dtype");
}

void ReduceBy(OpExport& op, const std::string& type) {
  IgnoreDTypes(op);
  const Axes axes = AxesOf(op, "dim", "keep_dim");
  std::string x = op.In("X");
  // Sums of int32 are int64.
  if (op.OutDType("Out") != op.DTypeOf("X")) x = op.Cast(x, op.OutDType("Out"));
  op.Set("Out", Reduced(op, type, x, axes.reduced, axes.keeps_dims));
}

void ReduceSum(OpExport& op) { ReduceBy(op, "ReduceSum"); }
void ReduceMax(OpExport& op) { ReduceBy(op, "ReduceMax"); }
void ReduceMin(OpExport& op) { ReduceBy(op, "ReduceMin"); }
void ReduceProd(OpExport& op) { ReduceBy(op, "ReduceProd"); }

void ReduceMean(OpExport& op) {
  if (!op.IsFloatIn("X")) Refuse("means of integers are rounded towards 0, and not in ONNX");
  ReduceBy(op, "ReduceMean");
}

void ReduceBools(OpExport& op, const std::string& type) {
  IgnoreDTypes(op);
  const Axes axes = AxesOf(op, "dim", "keep_dim");
  const std::string x = op.Cast(op.In("X"), DType::kInt32);
  // Of no elements, ONNX's extremes are the ends of int32.
  const std::string extreme = Reduced(op, type, x, axes.reduced, axes.keeps_dims);
  op.Set("Out", op.Node("Greater", {extreme, op.Number(DType::kInt32, 0)}));
}

void ReduceAll(OpExport& op) { ReduceBools(op, "ReduceMin"); }
void ReduceAny(OpExport& op) { ReduceBools(op, "ReduceMax"); }

void LogSumExp(OpExport& op) {
  const Axes axes = AxesOf(op, "axis", "keepdim");
  op.Set("Out", Reduced(op, "ReduceLogSumExp", op.In("X"), axes.reduced, axes.keeps_dims));
}

void Mean(OpExport& op) { op.Set("Out", Reduced(op, "ReduceMean", op.In("X"), {}, false)); }

void Norm(OpExport& op) {
  op.Ignore("is_test");
  const int64_t rank = op.Rank("X");
  if (rank == 0) Refuse("X is a scalar");
  const int64_t axis = op.Axis("axis", rank);
  const std::string x = op.In("X");
  const std::string squares = Reduced(op, "ReduceSumSquare", x, {axis}, true);
  const std::string epsilon = op.Number(op.DTypeOf("X"), static_cast<double>(op.Float("epsilon")));
  const std::string norm = op.Node("Sqrt", {op.Node("Add", {squares, epsilon})});
  op.Set("Out", op.Node("Div", {x, norm}));
  op.Set("Norm", norm);
}

std::string PNormOf(OpExport& op, const std::string& x, float p, const std::vector<int64_t>& axes,
                    bool keeps) {
  if (p == 2) return Reduced(op, "ReduceL2", x, axes, keeps);
  if (p == 1) return Reduced(op, "ReduceL1", x, axes, keeps);
  const std::string size = op.Node("Abs", {x});
  if (std::isinf(p)) return Reduced(op, p > 0 ? "ReduceMax" : "ReduceMin", size, axes, keeps);
  if (p == 0) {
    const std::string is_zero = op.Node("Equal", {size, op.Number(op.DTypeOf("X"), 0)});
    const std::string counts = op.Cast(op.Node("Not", {is_zero}), op.DTypeOf("X"));
    return Reduced(op, "ReduceSum", counts, axes, keeps);
  }
  const auto power = static_cast<double>(p);
  const std::string powers = op.Node("Pow", {size, op.Number(op.DTypeOf("X"), power)});
  const std::string sum = Reduced(op, "ReduceSum", powers, axes, keeps);
  return op.Node("Pow", {sum, op.Number(op.DTypeOf("X"), 1 / power)});
}

void PNorm(OpExport& op) {
  op.Ignore("epsilon");
  const bool is_vector = op.Bool("asvector");
  const bool keeps = op.Bool("keepdim");
  const int64_t axis = op.Axis("axis", op.Rank("X"));
  const std::vector<int64_t> axes = is_vector ? std::vector<int64_t>{} : std::vector{axis};
  op.Set("Out", PNormOf(op, op.In("X"), op.Float("porder"), axes, keeps));
}

void SquaredL2Norm(OpExport& op) {
  if (op.Bool("wide_float32")) Refuse("wide_float32 = true");
  op.Set("Out", Reshaped(op, Reduced(op, "ReduceSumSquare", op.In("X"), {}, false), {1}));
}

void ClipByNorm(OpExport& op) {
  const DType dtype = op.DTypeOf("X");
  const std::string x = op.In("X");
  const std::string limit = op.Number(dtype, static_cast<double>(op.Float("max_norm")));
  const std::string norm = Reduced(op, "ReduceL2", x, {}, false);
  const std::string scaled = op.Node("Mul", {x, op.Node("Div", {limit, norm})});
  op.Set("Out", op.Node("Where", {op.Node("Greater", {norm, limit}), scaled, x}));
}

void Dot(OpExport& op) {
  const std::string product = op.Node("Mul", {op.In("X"), op.In("Y")});
  const int64_t rank = op.Rank("X");
  if (rank == 0) return op.Set("Out", product);
  op.Set("Out", Reduced(op, "ReduceSum", product, {rank - 1}, op.OutShape("Out").rank() == rank));
}

// Where no item weighs anything, the mean is NaN in ONNX, and 0 in Skiff.
void NllLoss(OpExport& op) {
  const std::string reduction = op.Text("reduction");
  const bool label_has_classes = op.Rank("Label") == op.Rank("X");
  std::string label = op.In("Label");
  if (label_has_classes) label = Squeezed(op, label, {1});
  std::vector<std::string> inputs = {op.In("X"), label};
  if (op.Has("Weight")) inputs.push_back(op.In("Weight"));
  const std::string loss =
      op.Node("NegativeLogLikelihoodLoss", inputs,
              {{"ignore_index", op.Int("ignore_index")}, {"reduction", reduction}});
  const bool restores = label_has_classes && reduction == "none";
  op.Set("Out", restores ? Unsqueezed(op, loss, {1}) : loss);
}

void IsFinite(OpExport& op) {
  if (!op.IsFloatIn("X")) Refuse("X isn't of floats");
  // ONNX asks this of float32 and float64 alone.
  const std::string x = op.In("X");
  const std::string is_bad = op.Node("Or", {op.Node("IsNaN", {x}), op.Node("IsInf", {x})});
  const std::string any = Reduced(op, "ReduceMax", op.Cast(is_bad, DType::kInt32), {}, false);
  const std::string none = op.Node("LessOrEqual", {any, op.Number(DType::kInt32, 0)});
  op.Set("Out", Reshaped(op, none, {1}));
}

void SoftmaxBy(OpExport& op, const std::string& type) {
  const int64_t rank = op.Rank("X");
  if (rank == 0) Refuse("X is a scalar");
  op.Set("Out", op.Node(type, {op.In("X")}, {{"axis", op.Axis("axis", rank)}}));
}

void Softmax(OpExport& op) { SoftmaxBy(op, "Softmax"); }
void LogSoftmax(OpExport& op) { SoftmaxBy(op, "LogSoftmax"); }

// Returns the logarithms of the probabilities that Logits give, and sets these.
std::string LogProbabilities(OpExport& op, int64_t axis) {
  const std::string logits = op.In("Logits");
  const bool is_softmax = op.Bool("use_softmax");
  const NodeAttrs attrs = {{"axis", axis}};
  op.Set("Softmax",
         op.Node(is_softmax ? "Softmax" : "Identity", {logits}, is_softmax ? attrs : NodeAttrs{}));
  return is_softmax ? op.Node("LogSoftmax", {logits}, attrs) : op.Node("Log", {logits});
}

void SoftmaxWithCrossEntropy(OpExport& op) {
  const int64_t axis = op.Axis("axis", op.Rank("Logits"));
  const DType dtype = op.DTypeOf("Logits");
  const int64_t ignored = op.Int("ignore_index");
  const std::string logs = LogProbabilities(op, axis);
  if (op.Bool("soft_label")) {
    const std::string products = op.Node("Mul", {op.In("Label"), logs});
    return op.Set("Loss", op.Node("Neg", {Reduced(op, "ReduceSum", products, {axis}, true)}));
  }
  std::string label = op.Cast(op.In("Label"), DType::kInt64);
  if (op.Rank("Label") < op.Rank("Logits")) label = Unsqueezed(op, label, {axis});
  const std::string is_ignored =
      op.Node("Equal", {label, op.Number(DType::kInt64, static_cast<double>(ignored))});
  const std::string place = op.Node("Where", {is_ignored, op.Number(DType::kInt64, 0), label});
  const std::string found = op.Node("GatherElements", {logs, place}, {{"axis", axis}});
  op.Set("Loss", op.Node("Where", {is_ignored, op.Number(dtype, 0), op.Node("Neg", {found})}));
}

}  // namespace

void AddReductionExporters(ExporterTable* table) {
  table->Add("reduce_sum", ReduceSum);
  table->Add("reduce_max", ReduceMax);
  table->Add("reduce_min", ReduceMin);
  table->Add("reduce_prod", ReduceProd);
  table->Add("reduce_mean", ReduceMean);
  table->Add("reduce_all", ReduceAll);
  table->Add("reduce_any", ReduceAny);
  table->Add("logsumexp", LogSumExp);
  table->Add("mean", Mean);
  table->Add("norm", Norm);
  table->Add("p_norm", PNorm);
  table->Add("squared_l2_norm", SquaredL2Norm);
  table->Add("clip_by_norm", ClipByNorm);
  table->Add("dot", Dot);
  table->Add("isfinite", IsFinite);
  table->Add("nll_loss", NllLoss);
  table->Add("softmax", Softmax);
  table->Add("log_softmax", LogSoftmax);
  table->Add("softmax_with_cross_entropy", SoftmaxWithCrossEntropy);
}

}  // namespace skiff::onnx_export
