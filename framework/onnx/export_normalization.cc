// Normalizations, and ops that fuse others with them.
#include <algorithm>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/image_exports.h"

namespace skiff::onnx_export {
namespace {

std::string Epsilon(OpExport& op, std::string_view slot) {
  return op.Number(op.DTypeOf(slot), static_cast<double>(op.Float("epsilon")));
}

// Returns a vector of ones or zeros, as many as `like`, a known vector, has elements.
std::string VectorOf(OpExport& op, DType dtype, const std::string& like, double value) {
  return op.Node("Expand", {op.Number(dtype, value), op.Node("Shape", {like})});
}

void BatchNorm(OpExport& op) {
  op.Set("Y", BatchNormOf(op, "X", op.In("X"), op.Text("data_layout")));
  op.Set("MeanOut", op.In("Mean"));
  op.Set("VarianceOut", op.In("Variance"));
}

void BatchNormAct(OpExport& op) {
  op.Text("act_type");  // relu is the only one
  std::string y = BatchNormOf(op, "X", op.In("X"), op.Text("data_layout"));
  if (op.Has("Z")) y = op.Node("Add", {y, op.In("Z")});
  op.Set("Y", op.Node("Relu", {y}));
}

void BiasAct(OpExport& op) {
  op.Text("act_type");  // relu is the only one
  const int64_t rank = op.Rank("X");
  const bool is_last = op.Text("data_layout") == "NHWC";
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  dims[static_cast<size_t>(is_last ? rank - 1 : 1)] = -1;
  const std::string bias = Reshaped(op, op.In("Bias"), dims);
  op.Set("Out", op.Node("Relu", {op.Node("Add", {op.In("X"), bias})}));
}

void BiasGelu(OpExport& op) {
  const std::string sum = op.Node("Add", {op.In("X"), op.In("Bias")});
  op.Set("Out", GeluOf(op, sum, op.DTypeOf("X"), op.Bool("approximate")));
}

// Normalizes the dims from `begin` on; `scale` and `bias` are of one row, or empty.
std::string LayerNormOf(OpExport& op, const std::string& x, const Shape& shape, int64_t begin,
                        std::string scale, std::string bias, DType dtype) {
  const int64_t rank = shape.rank();
  const auto in_row_dims = [&](const std::string& value) {
    return rank - begin == 1 ? value : op.Node("Reshape", {value, DimsOf(op, x, begin, rank)});
  };
  std::vector<int64_t> axes;
  for (int64_t axis = begin; axis < rank; ++axis) axes.push_back(axis);
  const float epsilon = op.Float("epsilon");
  if (op.opset() >= 17) {
    scale = scale.empty() ? op.Node("Expand", {op.Number(dtype, 1), DimsOf(op, x, begin, rank)})
                          : in_row_dims(scale);
    std::vector<std::string> inputs = {x, scale};
    if (!bias.empty()) inputs.push_back(in_row_dims(bias));
    return op.Node("LayerNormalization", inputs, {{"axis", begin}, {"epsilon", epsilon}});
  }
  const std::string centered = op.Node("Sub", {x, Reduced(op, "ReduceMean", x, axes, true)});
  const std::string variance =
      Reduced(op, "ReduceMean", op.Node("Mul", {centered, centered}), axes, true);
  const std::string shifted =
      op.Node("Add", {variance, op.Number(dtype, static_cast<double>(epsilon))});
  std::string y = op.Node("Div", {centered, op.Node("Sqrt", {shifted})});
  if (!scale.empty()) y = op.Node("Mul", {y, in_row_dims(scale)});
  if (!bias.empty()) y = op.Node("Add", {y, in_row_dims(bias)});
  return y;
}

std::string InOrEmpty(OpExport& op, std::string_view slot) {
  return op.Has(slot) ? op.In(slot) : std::string();
}

void LayerNorm(OpExport& op) {
  const int64_t begin = op.Int("begin_norm_axis");
  op.Set("Y", LayerNormOf(op, op.In("X"), op.ShapeOf("X"), begin, InOrEmpty(op, "Scale"),
                          InOrEmpty(op, "Bias"), op.DTypeOf("X")));
}

void BiasResidualLayerNorm(OpExport& op) {
  const float dropped = op.Float("dropout_prob");
  if (dropped != 0 && !op.Bool("is_test")) Refuse("it draws random numbers");
  op.Ignore("seed");
  op.Ignore("fix_seed");
  const DType dtype = op.DTypeOf("X");
  const bool scales = op.Text("dropout_implementation") == "downgrade_in_infer" && dropped != 0;
  std::string sum = op.In("X");
  if (op.Has("Bias")) sum = op.Node("Add", {sum, op.In("Bias")});
  const double kept = 1.0 - static_cast<double>(dropped);
  if (scales) sum = op.Node("Mul", {sum, op.Number(dtype, kept)});
  if (op.Has("Residual")) sum = op.Node("Add", {op.In("Residual"), sum});
  const std::string y = LayerNormOf(op, sum, op.ShapeOf("X"), op.Rank("X") - 1,
                                    InOrEmpty(op, "LnScale"), InOrEmpty(op, "LnBias"), dtype);
  op.Set("Y", y);
  op.Set("Sum", sum);
}

void RmsNorm(OpExport& op) {
  const int64_t begin = op.Int("begin_norm_axis");
  const int64_t rank = op.Rank("X");
  std::vector<int64_t> axes;
  for (int64_t axis = begin; axis < rank; ++axis) axes.push_back(axis);
  const std::string x = op.In("X");
  const std::string squares = op.Node("Mul", {x, x});
  const std::string mean = Reduced(op, "ReduceMean", squares, axes, true);
  const std::string root = op.Node("Sqrt", {op.Node("Add", {mean, Epsilon(op, "X")})});
  std::string y = op.Node("Div", {x, root});
  if (op.Has("Scale")) {
    std::string scale = op.In("Scale");
    if (axes.size() > 1) scale = op.Node("Reshape", {scale, DimsOf(op, x, begin, rank)});
    y = op.Node("Mul", {y, scale});
  }
  op.Set("Y", y);
}

// Multiplies and adds numbers per channel, dim 1.
std::string WithChannelFactors(OpExport& op, std::string y, int64_t rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  dims[1] = -1;
  if (op.Has("Scale")) y = op.Node("Mul", {y, Reshaped(op, op.In("Scale"), dims)});
  if (op.Has("Bias")) y = op.Node("Add", {y, Reshaped(op, op.In("Bias"), dims)});
  return y;
}

// Each group is a channel of an instance norm over rows of all of its elements.
void GroupNorm(OpExport& op) {
  const int64_t groups = op.Int("groups");
  const int64_t rank = op.Rank("X");
  const bool is_last = op.Text("data_layout") == "NHWC" && rank > 2;
  std::string x = op.In("X");
  if (is_last) x = Transposed(op, x, ChannelsFirst(rank));
  const std::string rows = Reshaped(op, x, {0, groups, -1});
  const std::string group_dims = op.IntVector({groups});
  const auto vector = [&](double value) {
    return op.Node("Expand", {op.Number(op.DTypeOf("X"), value), group_dims});
  };
  const std::string normal = op.Node("InstanceNormalization", {rows, vector(1), vector(0)},
                                     {{"epsilon", op.Float("epsilon")}});
  std::string y = op.Node("Reshape", {normal, op.Node("Shape", {x})});
  y = WithChannelFactors(op, y, rank);
  op.Set("Y", is_last ? Transposed(op, y, ChannelsLast(rank)) : y);
}

void InstanceNorm(OpExport& op) {
  const int64_t rank = op.Rank("X");
  std::string x = op.In("X");
  if (rank == 2) x = Unsqueezed(op, x, {2});
  const std::string channels = DimsOf(op, x, 1, 2);
  const auto factor = [&](std::string_view slot, double absent) {
    return op.Has(slot) ? op.In(slot)
                        : op.Node("Expand", {op.Number(op.DTypeOf("X"), absent), channels});
  };
  const std::string y = op.Node("InstanceNormalization", {x, factor("Scale", 1), factor("Bias", 0)},
                                {{"epsilon", op.Float("epsilon")}});
  op.Set("Y", rank == 2 ? Squeezed(op, y, {2}) : y);
}

}  // namespace

std::string BatchNormOf(OpExport& op, std::string_view slot, std::string x,
                        const std::string& layout) {
  const bool has_training = op.Defines("is_test");
  if (has_training) {
    const bool by_running =
        (op.Bool("is_test") && !op.Bool("trainable_statistics")) || op.Bool("use_global_stats");
    if (!by_running) Refuse("it normalizes by the statistics of the batch");
    op.Ignore("momentum");
    op.Ignore("MomentumTensor");
  }
  const int64_t rank = op.Rank(slot);
  const bool is_last = layout == "NHWC" && rank > 2;
  if (is_last) x = Transposed(op, x, ChannelsFirst(rank));
  const std::string mean = op.In("Mean");
  const DType dtype = op.DTypeOf("Mean");
  const std::string scale = op.Has("Scale") ? op.In("Scale") : VectorOf(op, dtype, mean, 1);
  const std::string bias = op.Has("Bias") ? op.In("Bias") : VectorOf(op, dtype, mean, 0);
  const std::string y = op.Node("BatchNormalization", {x, scale, bias, mean, op.In("Variance")},
                                {{"epsilon", op.Float("epsilon")}});
  return is_last ? Transposed(op, y, ChannelsLast(rank)) : y;
}

void AddNormalizationExporters(ExporterTable* table) {
  table->Add("batch_norm", BatchNorm);
  table->Add("batch_norm_act", BatchNormAct);
  table->Add("bias_act", BiasAct);
  table->Add("bias_gelu", BiasGelu);
  table->Add("layer_norm", LayerNorm);
  table->Add("bias_dropout_residual_layer_norm", BiasResidualLayerNorm);
  table->Add("rms_norm", RmsNorm);
  table->Add("group_norm", GroupNorm);
  table->Add("instance_norm", InstanceNorm);
}

}  // namespace skiff::onnx_export
