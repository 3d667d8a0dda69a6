// Convolutions and normalisation.
#include <algorithm>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/normalization_ops.h"
#include "framework/onnx/onnx_node.h"
#include "framework/onnx/shape_dims.h"
#include "framework/onnx/window.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

Variable WithBias(const OnnxNode& node, const Variable& y) {
  if (!node.Has(2)) return y;
  return layers::ElementwiseAdd(y, node.In(2), {.axis = 1});
}

Variable ConvOp(const OnnxNode& node, const std::string& type, const Variable& x,
                const Variable& filter, const OnnxWindow& w, int64_t groups,
                const Ints& output_padding) {
  Op op(type);
  op.SetInput("Input", {x.name()}).SetInput("Filter", {filter.name()});
  op.SetAttr("strides", w.strides).SetAttr("dilations", w.dilations).SetAttr("groups", groups);
  op.SetAttr("paddings", PaddingsOf(w));
  if (!output_padding.empty()) op.SetAttr("output_padding", output_padding);
  return node.Emit(std::move(op), "Output");
}

Ints KernelOf(const OnnxNode& node, const Variable& filter) {
  if (filter.dims().size() < 3) node.Invalid("its filter is of rank ", filter.dims().size());
  const Ints dims(filter.dims().begin() + 2, filter.dims().end());
  const Ints kernel = node.IntList("kernel_shape", dims);
  if (std::ranges::any_of(dims, [](int64_t dim) { return dim < 1; })) {
    node.Unsupported("the extents of its filter are known only in a run");
  }
  if (kernel != dims) node.Invalid("kernel_shape isn't that of the filter");
  return kernel;
}

void Conv(const OnnxNode& node) {
  node.CheckInputs(2, 3);
  const Variable x = node.In(0);
  const Variable filter = node.In(1);
  OnnxWindow w = WindowOf(node, x, KernelOf(node, filter));
  ApplyAutoPad(node, x, &w);
  MakeTwoAxes(&w);
  const char* type = w.axes == 3 ? "conv3d" : "conv2d";
  const Variable y =
      ConvOp(node, type, AsImages(x, w), AsImages(filter, w), w, node.Int("group", 1), {});
  node.Out(0, WithBias(node, FromImages(y, w)));
}

// The pads of a transposed convolution that makes the output_shape asked for.
void ApplyOutputShape(const OnnxNode& node, const Variable& x, const Ints& output_padding,
                      OnnxWindow* w) {
  const std::string mode = node.String("auto_pad", "NOTSET");
  const bool is_same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  Ints shape = node.IntList("output_shape");
  if (shape.size() == w->axes + 2) shape.erase(shape.begin(), shape.begin() + 2);
  if (shape.empty() && !is_same) {
    if (mode == "VALID") ApplyAutoPad(node, x, w);
    return;
  }
  if (!shape.empty() && shape.size() != w->axes)
    node.Invalid("output_shape has ", shape.size(), " numbers");
  if (std::ranges::any_of(shape, [](int64_t extent) { return extent < 1; })) {
    node.Invalid("has an extent below 1 in its output_shape");
  }
  for (size_t i = 0; i < w->axes; ++i) {
    const int64_t extent = x.dims()[i + 2];
    if (extent < 0) node.Unsupported("output_shape where an extent is known only in a run");
    for (const int64_t number : {extent, output_padding[i], shape.empty() ? 0 : shape[i]}) {
      if (number > kMostOfWindow) node.Unsupported("a number of its output is ", number);
    }
    const int64_t wanted = shape.empty() ? extent * w->strides[i] : shape[i];
    const int64_t reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
    const int64_t pad = w->strides[i] * (extent - 1) + output_padding[i] + reach - wanted;
    if (pad < 0) node.Unsupported("output_shape is larger than what the windows reach");
    w->before[i] = mode == "SAME_UPPER" ? pad / 2 : pad - pad / 2;
    w->after[i] = pad - w->before[i];
  }
}

void ConvTranspose(const OnnxNode& node) {
  node.CheckInputs(2, 3);
  const Variable x = node.In(0);
  const Variable filter = node.In(1);
  OnnxWindow w = WindowOf(node, x, KernelOf(node, filter));
  Ints output_padding = node.IntList("output_padding", Ints(w.axes, 0));
  if (output_padding.size() != w.axes)
    node.Invalid("output_padding has ", output_padding.size(), " numbers");
  if (std::ranges::any_of(output_padding, [](int64_t padding) { return padding < 0; })) {
    node.Invalid("has an output_padding below 0");
  }
  ApplyOutputShape(node, x, output_padding, &w);
  // Points after the last window are pads that aren't cut off.
  for (size_t i = 0; i < w.axes; ++i) {
    const int64_t used = std::min(output_padding[i], w.after[i]);
    w.after[i] -= used;
    output_padding[i] -= used;
  }
  MakeTwoAxes(&w);
  if (w.axes == 1) output_padding.insert(output_padding.begin(), 0);
  if (std::ranges::count(output_padding, 0) == static_cast<long>(output_padding.size())) {
    output_padding.clear();
  }
  const char* type = w.axes == 3 ? "conv3d_transpose" : "conv2d_transpose";
  const Variable y = ConvOp(node, type, AsImages(x, w), AsImages(filter, w), w,
                            node.Int("group", 1), output_padding);
  node.Out(0, WithBias(node, FromImages(y, w)));
}

template <Variable (*Function)(const Variable&, const layers::ReduceOptions&, layers::Site)>
void GlobalPool(const OnnxNode& node) {
  const Variable x = node.In(0);
  layers::ReduceOptions options = {.keep_dim = true};
  for (int64_t i = 2; i < RankOf(x); ++i) options.dims.push_back(i);
  if (options.dims.empty()) node.Unsupported("its input is of rank ", RankOf(x));
  node.Out(0, Function(x, options, layers::Site::current()));
}

void BatchNormalization(const OnnxNode& node) {
  node.CheckInputs(5, 5);
  if (node.Int("training_mode", 0) != 0 || node.Wants(1)) {
    node.Unsupported("normalises by the batch and updates statistics");
  }
  if (node.opset() < 9 && node.Int("spatial", 1) == 0) node.Unsupported("spatial = 0");
  const Variable x = node.In(0);
  // The running statistics are no parameters.
  for (const size_t i : {size_t{3}, size_t{4}}) {
    Var& statistic = node.In(i).var();
    if (!statistic.is_parameter) continue;
    statistic.is_parameter = false;
    statistic.stop_gradient = true;
  }
  Op op("batch_norm");
  op.SetInput("X", {x.name()}).SetInput("Scale", {node.In(1).name()});
  op.SetInput("Bias", {node.In(2).name()}).SetInput("Mean", {node.In(3).name()});
  op.SetInput("Variance", {node.In(4).name()});
  const LayerCall layer("batch_norm", "", std::source_location::current());
  const Variable y = layer.NewOutput();
  op.SetOutput("Y", {y.name()});
  op.SetOutput("MeanOut", {node.In(3).name()}).SetOutput("VarianceOut", {node.In(4).name()});
  op.SetOutput("SavedMean", {layer.NewSavedOutput()});
  op.SetOutput("SavedVariance", {layer.NewSavedOutput()});
  op.SetAttr("epsilon", node.Float("epsilon", 1e-5f));
  op.SetAttr("momentum", node.Float("momentum", 0.9f));
  op.SetAttr("is_test", false).SetAttr("use_global_stats", true);
  op.SetAttr("data_layout", std::string("NCHW"));
  layer.Append(std::move(op));
  node.Out(0, y);
}

void InstanceNormalization(const OnnxNode& node) {
  node.CheckInputs(3, 3);
  Op op("instance_norm");
  op.SetInput("X", {node.In(0).name()}).SetInput("Scale", {node.In(1).name()});
  op.SetInput("Bias", {node.In(2).name()});
  op.SetAttr("epsilon", node.Float("epsilon", 1e-5f));
  const LayerCall layer("instance_norm", "", std::source_location::current());
  op.SetOutput("SavedMean", {layer.NewSavedOutput()});
  op.SetOutput("SavedVariance", {layer.NewSavedOutput()});
  node.Out(0, layer.AppendFor(std::move(op), "Y"));
}

// Normalised over the axes from `axis` on, without scale and shift.
struct Normalised {
  Variable y, mean, inverse_deviation;
};
Normalised NormaliseFrom(const Variable& x, int64_t axis, double epsilon) {
  layers::ReduceOptions options = {.keep_dim = true};
  for (int64_t i = axis; i < RankOf(x); ++i) options.dims.push_back(i);
  const Variable mean = layers::ReduceMean(x, options);
  const Variable centered = x - mean;
  const Variable variance = layers::ReduceMean(layers::Square(centered), options);
  const Variable inverse = layers::Rsqrt(variance + epsilon);
  return {centered * inverse, mean, inverse};
}

void LayerNormalization(const OnnxNode& node) {
  node.CheckInputs(2, 3);
  const Variable x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", -1), x.dims().size());
  const float epsilon = node.Float("epsilon", 1e-5f);
  const Variable scale = node.In(1);
  const Ints tail(x.dims().begin() + axis, x.dims().end());
  const bool is_plain = axis > 0 && !node.Wants(1) && !node.Wants(2) && scale.dims() == tail &&
                        (!node.Has(2) || node.In(2).dims() == tail);
  if (!is_plain) {
    const Normalised normal = NormaliseFrom(x, axis, epsilon);
    const Variable scaled = normal.y * scale;
    node.Out(0, node.Has(2) ? scaled + node.In(2) : scaled);
    node.Out(1, normal.mean);
    return node.Out(2, normal.inverse_deviation);
  }
  node.Out(0, LayerNormOf({.x = x,
                           .scale = scale,
                           .shift = node.Has(2) ? node.In(2) : Variable(),
                           .axis = axis,
                           .epsilon = epsilon}));
}

void RmsNormalization(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  const Variable x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", -1), x.dims().size());
  const float epsilon = node.Float("epsilon", 1e-5f);
  const Variable scale = node.In(1);
  if (axis > 0 && scale.dims() == Ints(x.dims().begin() + axis, x.dims().end())) {
    return node.Out(
        0, RmsNormOf({.x = x, .scale = scale, .shift = {}, .axis = axis, .epsilon = epsilon}));
  }
  layers::ReduceOptions options = {.keep_dim = true};
  for (int64_t i = axis; i < RankOf(x); ++i) options.dims.push_back(i);
  const Variable mean = layers::ReduceMean(layers::Square(x), options);
  node.Out(0, x * layers::Rsqrt(mean + double{epsilon}) * scale);
}

void GroupNormalization(const OnnxNode& node) {
  node.CheckInputs(3, 3);
  if (node.opset() < 21) node.Unsupported("has a scale for each group, which version 21 changed");
  Op op("group_norm");
  op.SetInput("X", {node.In(0).name()}).SetInput("Scale", {node.In(1).name()});
  op.SetInput("Bias", {node.In(2).name()});
  op.SetAttr("epsilon", node.Float("epsilon", 1e-5f)).SetAttr("groups", node.Int("num_groups", -1));
  const LayerCall layer("group_norm", "", std::source_location::current());
  op.SetOutput("Mean", {layer.NewSavedOutput()}).SetOutput("Variance", {layer.NewSavedOutput()});
  node.Out(0, layer.AppendFor(std::move(op), "Y"));
}

void MeanVarianceNormalization(const OnnxNode& node) {
  const Variable x = node.In(0);
  layers::ReduceOptions options = {.keep_dim = true};
  for (const int64_t axis : node.IntList("axes", {0, 2, 3})) {
    options.dims.push_back(node.Axis(axis, x.dims().size()));
  }
  const Variable mean = layers::ReduceMean(x, options);
  const Variable square = layers::ReduceMean(layers::Square(x), options);
  const Variable deviation = layers::Sqrt(square - layers::Square(mean));
  node.Out(0, (x - mean) / (deviation + 1e-9));
}

void LpNormalization(const OnnxNode& node) {
  const Variable x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", -1), x.dims().size());
  const int64_t p = node.Int("p", 2);
  if (p != 1 && p != 2) node.Invalid("p = ", p);
  const layers::ReduceOptions options = {.dims = {axis}, .keep_dim = true};
  const Variable sum = layers::ReduceSum(p == 1 ? layers::Abs(x) : layers::Square(x), options);
  // Zeros stay zeros. A sum is changed before its root is taken, whose gradient is infinite at 0.
  const Variable divisor = layers::Where(layers::Equal(sum, 0.0), 1.0, sum);
  node.Out(0, x / (p == 1 ? divisor : layers::Sqrt(divisor)));
}

void Lrn(const OnnxNode& node) {
  const Variable x = node.In(0);
  if (RankOf(x) < 3) node.Unsupported("its input is of rank ", RankOf(x));
  const int64_t size = node.Int("size", 0);
  if (size < 1) node.Invalid("size = ", size);
  const double alpha = node.Float("alpha", 1e-4f);
  const double bias = node.Float("bias", 1.0f);
  // Means of squares over neighbouring channels: channels are the height of an image.
  const Variable squares = layers::Square(x);
  const Variable image = layers::Reshape(squares, {0, 1, x.dims()[1], -1});
  OnnxWindow w;
  w.axes = 2;
  w.kernel = {size, 1};
  w.strides = w.dilations = {1, 1};
  w.before = {(size - 1) / 2, 0};
  w.after = {size - 1 - (size - 1) / 2, 0};
  if (x.dims()[1] < 0) node.Unsupported("its number of channels is known only in a run");
  const Variable means = PooledBy(node, image, w, "avg", false, false);
  const Variable flat = CanReshape(x.dims()) ? layers::Reshape(means, x.dims())
                                             : ReshapedToParts(means, {DimsOf(x, 0, RankOf(x))});
  node.Out(0, x / layers::Pow(flat * alpha + bias, node.Float("beta", 0.75f)));
}

}  // namespace

std::vector<OnnxConverterEntry> NnConverters() {
  return {
      {"BatchNormalization", BatchNormalization},
      {"Conv", Conv},
      {"ConvTranspose", ConvTranspose},
      {"GlobalAveragePool", GlobalPool<layers::ReduceMean>},
      {"GlobalMaxPool", GlobalPool<layers::ReduceMax>},
      {"GroupNormalization", GroupNormalization},
      {"InstanceNormalization", InstanceNormalization},
      {"LRN", Lrn},
      {"LayerNormalization", LayerNormalization},
      {"LpNormalization", LpNormalization},
      {"MeanVarianceNormalization", MeanVarianceNormalization},
      {"RMSNormalization", RmsNormalization},
  };
}

}  // namespace skiff
