#include "framework/builder/nn.h"

#include <cmath>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/builder/layer_call.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

std::vector<int32_t> Pair(const Extent2d& extent) { return {extent.height, extent.width}; }

// The product of dims [begin, rank), which a parameter's shape depends on.
int64_t KnownProduct(const LayerCall& call, const Variable& x, int32_t begin) {
  const std::vector<int64_t> tail(x.dims().begin() + begin, x.dims().end());
  for (const int64_t dim : tail) {
    call.Enforce(dim > 0, "dims ", begin, " and later of X \"", x.name(), "\" of shape ",
                 Shape(x.dims()), " make up a parameter, expected known and positive ones");
  }
  return ElementCount(tail);
}

Variable FcProduct(const LayerCall& call, const Variable& x, int64_t size,
                   const FcOptions& options) {
  const int32_t rows = options.num_flatten_dims;
  const auto rank = static_cast<int32_t>(x.dims().size());
  call.Enforce(rows >= 1 && rows < rank, "num_flatten_dims = ", rows, " is outside [1, ", rank - 1,
               "] for X \"", x.name(), "\" of shape ", Shape(x.dims()));
  const Variable weight =
      call.CreateParameter(options.param_attr, "w", {KnownProduct(call, x, rows), size}, x.dtype(),
                           initializer::Xavier());
  Op op("mul");
  op.SetInput("X", {x.name()}).SetInput("Y", {weight.name()});
  op.SetAttr("x_num_col_dims", rows).SetAttr("y_num_col_dims", int32_t{1});
  return call.AppendFor(std::move(op));
}

size_t ChannelAxis(const LayerCall& call, const Variable& x, const std::string& format) {
  call.Enforce(format == "NCHW" || format == "NHWC", "data format \"", format,
               "\", expected NCHW or NHWC");
  const size_t axis = format == "NCHW" ? 1 : x.dims().size() - 1;
  call.Enforce(x.dims().size() >= 2 && x.dims()[axis] > 0, "X \"", x.name(), "\" has the shape ",
               Shape(x.dims()), ", expected at least 2 dims and a known number of channels (dim ",
               axis, ")");
  return axis;
}

// As PaddlePaddle saves the slopes: those of channels have four dims, whatever the rank of x.
std::vector<int64_t> SlopeDims(const LayerCall& call, const Variable& x,
                               const PreluOptions& options) {
  if (options.mode == "channel") {
    const size_t axis = ChannelAxis(call, x, options.data_format);
    const int64_t channels = x.dims()[axis];
    return options.data_format == "NCHW" ? std::vector<int64_t>{1, channels, 1, 1}
                                         : std::vector<int64_t>{1, 1, 1, channels};
  }
  if (options.mode != "element") return {1};
  call.Enforce(!x.dims().empty(), "X \"", x.name(), "\" is of rank 0, expected at least one dim");
  KnownProduct(call, x, 1);
  std::vector<int64_t> dims = x.dims();
  dims[0] = 1;
  return dims;
}

Op Conv2dOp(const char* type, const Conv2dOptions& options) {
  Op op(type);
  op.SetAttr("strides", Pair(options.stride)).SetAttr("paddings", Pair(options.padding));
  op.SetAttr("dilations", Pair(options.dilation)).SetAttr("groups", options.groups);
  op.SetAttr("padding_algorithm", std::string("EXPLICIT"));
  op.SetAttr("data_format", options.data_format);
  return op;
}

struct ScaleAndShift {
  Variable scale;
  Variable shift;
};

ScaleAndShift CreateScaleAndShift(const LayerCall& call, const ParamAttr& scale,
                                  const ParamAttr& shift, int64_t extent, DType dtype) {
  return {call.CreateParameter(scale, "w", {extent}, dtype, initializer::Constant(1.0)),
          call.CreateParameter(shift, "b", {extent}, dtype, initializer::Constant(0.0))};
}

Variable MovingStatistic(const LayerCall& call, const std::string& name, int64_t channels,
                         DType dtype, double start) {
  return call.CreateParameter({.name = name, .trainable = false}, "w", {channels}, dtype,
                              initializer::Constant(start));
}

// An output that only the gradient op reads.
Variable SavedOutput(const LayerCall& call) {
  const Variable saved = call.NewOutput();
  saved.StopGradient();
  return saved;
}

}  // namespace

Variable Fc(const Variable& x, int64_t size, const FcOptions& options, Site site) {
  return Fc(std::vector<Variable>{x}, size, options, site);
}

Variable Fc(const std::vector<Variable>& xs, int64_t size, const FcOptions& options, Site site) {
  const LayerCall call("fc", options.name, site);
  call.Enforce(!xs.empty(), "there is no input");
  call.Enforce(size >= 1, "size = ", size, ", expected a positive number");
  call.Use(xs);
  std::vector<Variable> products;
  for (const Variable& x : xs) products.push_back(FcProduct(call, x, size, options));
  Variable out = products[0];
  if (products.size() > 1) {
    Op op("sum");
    op.SetInput("X", call.Use(products));
    out = call.AppendFor(std::move(op));
  }
  const size_t last = out.dims().size() - 1;
  return call.Activate(call.AddBias(out, options.bias_attr, last, last + 1), options.act);
}

Variable Conv2d(const Variable& x, const Conv2dOptions& options, Site site) {
  const char* type = options.depthwise ? "depthwise_conv2d" : "conv2d";
  const LayerCall call(type, options.name, site);
  const std::string input = call.Use(x);
  call.Enforce(x.dims().size() == 4, "X \"", x.name(), "\" has the shape ", Shape(x.dims()),
               ", expected 4 dims");
  const size_t axis = ChannelAxis(call, x, options.data_format);
  const int64_t channels = x.dims()[axis];
  call.Enforce(options.filters > 0, "filters = ", options.filters, ", expected a positive number");
  call.Enforce(
      options.groups > 0 && channels % options.groups == 0 && options.filters % options.groups == 0,
      "groups = ", options.groups, ", expected a divisor of the ", channels,
      " channels and of the ", options.filters, " filters");
  call.Enforce(!options.depthwise || options.groups == channels, "groups = ", options.groups,
               ", expected a group for each of the ", channels, " channels of a depthwise one");
  const int64_t height = options.kernel.height;
  const int64_t width = options.kernel.width;
  call.Enforce(height > 0 && width > 0, "kernel = ", height, " x ", width,
               ", expected positive extents");
  const double deviation = std::sqrt(2.0 / static_cast<double>(height * width * channels));
  const Variable filter = call.CreateParameter(
      options.param_attr, "w", {options.filters, channels / options.groups, height, width},
      x.dtype(), initializer::Normal({.stddev = static_cast<float>(deviation)}));
  Op op = Conv2dOp(type, options);
  op.SetInput("Input", {input}).SetInput("Filter", {filter.name()});
  const Variable out = call.AppendFor(std::move(op), "Output");
  return call.Activate(call.AddBias(out, options.bias_attr, axis, axis + 1), options.act);
}

Variable Pool2d(const Variable& x, const Pool2dOptions& options, Site site) {
  const LayerCall call("pool2d", "", site);
  call.Enforce(options.type == "max" || options.type == "avg", "type \"", options.type,
               "\", expected max or avg");
  Op op("pool2d");
  op.SetInput("X", {call.Use(x)}).SetAttr("pooling_type", options.type);
  op.SetAttr("ksize", Pair(options.kernel)).SetAttr("strides", Pair(options.stride));
  op.SetAttr("paddings", Pair(options.padding)).SetAttr("global_pooling", options.global);
  op.SetAttr("ceil_mode", options.ceil_mode).SetAttr("exclusive", options.exclusive);
  op.SetAttr("adaptive", options.adaptive).SetAttr("data_format", options.data_format);
  op.SetAttr("padding_algorithm", std::string("EXPLICIT"));
  return call.AppendFor(std::move(op));
}

Variable BatchNorm(const Variable& x, const BatchNormOptions& options, Site site) {
  const LayerCall call("batch_norm", options.name, site);
  const std::string input = call.Use(x);
  const int64_t channels = x.dims()[ChannelAxis(call, x, options.data_layout)];
  const ScaleAndShift affine =
      CreateScaleAndShift(call, options.param_attr, options.bias_attr, channels, x.dtype());
  const Variable mean = MovingStatistic(call, options.moving_mean_name, channels, x.dtype(), 0.0);
  const Variable variance =
      MovingStatistic(call, options.moving_variance_name, channels, x.dtype(), 1.0);
  Op op("batch_norm");
  op.SetInput("X", {input}).SetInput("Scale", {affine.scale.name()});
  op.SetInput("Bias", {affine.shift.name()}).SetInput("Mean", {mean.name()});
  op.SetInput("Variance", {variance.name()});
  op.SetAttr("momentum", options.momentum).SetAttr("epsilon", options.epsilon);
  op.SetAttr("is_test", options.is_test).SetAttr("data_layout", options.data_layout);
  op.SetAttr("use_global_stats", options.use_global_stats);
  op.SetOutput("MeanOut", {mean.name()}).SetOutput("VarianceOut", {variance.name()});
  op.SetOutput("SavedMean", {SavedOutput(call).name()});
  op.SetOutput("SavedVariance", {SavedOutput(call).name()});
  // PaddlePaddle does not train without it.
  if (!options.is_test) op.SetOutput("ReserveSpace", {SavedOutput(call).name()});
  return call.Activate(call.AppendFor(std::move(op), "Y"), options.act);
}

Variable Dropout(const Variable& x, float p, const DropoutOptions& options, Site site) {
  const LayerCall call("dropout", "", site);
  call.Enforce(p >= 0.0f && p <= 1.0f, "p = ", p, " is outside [0, 1]");
  Op op("dropout");
  op.SetInput("X", {call.Use(x)}).SetAttr("dropout_prob", p).SetAttr("is_test", options.is_test);
  op.SetAttr("seed", options.seed).SetAttr("fix_seed", options.seed != 0);
  op.SetAttr("dropout_implementation", options.implementation);
  op.SetOutput("Mask", {SavedOutput(call).name()});
  return call.AppendFor(std::move(op));
}

Variable Embedding(const Variable& ids, const EmbeddingOptions& options, Site site) {
  const LayerCall call("embedding", options.name, site);
  call.Enforce(options.rows > 0 && options.width > 0, "the table is [", options.rows, ", ",
               options.width, "], expected positive extents");
  int64_t padding = -1;
  if (options.padding_idx.has_value()) {
    padding = *options.padding_idx < 0 ? *options.padding_idx + options.rows : *options.padding_idx;
    call.Enforce(padding >= 0 && padding < options.rows, "padding_idx = ", *options.padding_idx,
                 " is outside [", -options.rows, ", ", options.rows - 1, "]");
  }
  Op op("lookup_table_v2");
  op.SetInput("Ids", {call.Use(ids)});
  const Variable table = call.CreateParameter(
      options.param_attr, "w", {options.rows, options.width}, options.dtype, initializer::Xavier());
  op.SetInput("W", {table.name()});
  op.SetAttr("padding_idx", padding);
  return call.AppendFor(std::move(op));
}

Variable Prelu(const Variable& x, const PreluOptions& options, Site site) {
  const LayerCall call("prelu", options.name, site);
  Op op("prelu");
  op.SetInput("X", {call.Use(x)});
  const Variable slopes = call.CreateParameter(options.param_attr, "w", SlopeDims(call, x, options),
                                               x.dtype(), initializer::Constant(0.25));
  op.SetInput("Alpha", {slopes.name()});
  op.SetAttr("mode", options.mode).SetAttr("data_format", options.data_format);
  return call.AppendFor(std::move(op));
}

}  // namespace skiff::layers
