#include "framework/builder/nn.h"

#include <cmath>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/tensor_layers.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

std::vector<int64_t> ValuesOf(int64_t extent) { return {extent}; }
std::vector<int64_t> ValuesOf(const Extent2d& extent) { return {extent.height, extent.width}; }
std::vector<int64_t> ValuesOf(const Extent3d& extent) {
  return {extent.depth, extent.height, extent.width};
}

// Returns the product of dims [begin, rank), on which a parameter's shape depends.
int64_t KnownProduct(const LayerCall& call, const Variable& x, int64_t begin) {
  const std::vector<int64_t> tail(x.dims().begin() + begin, x.dims().end());
  for (const int64_t dim : tail) {
    call.Enforce(dim > 0, "dims ", begin, " and later of X \"", x.name(), "\" of shape ",
                 Shape(x.dims()), " make up a parameter, expected known and positive ones");
  }
  return ElementCount(tail);
}

// Returns an option that divides the dims of x into leading and trailing ones: how many leading
// ones there are. Negative values of the option count from the back. There must be some of both.
int64_t LeadingDims(const LayerCall& call, const Variable& x, const char* option, int64_t value) {
  const auto rank = static_cast<int64_t>(x.dims().size());
  call.Enforce(rank >= 2, "X \"", x.name(), "\" of shape ", Shape(x.dims()),
               " has no rows, expected a rank of at least 2: Unsqueeze with axis 1 makes [N, 1]");
  const int64_t leading = value < 0 ? value + rank : value;
  call.Enforce(leading >= 1 && leading < rank, option, " = ", value, " is outside [1, ", rank - 1,
               "] and [", 1 - rank, ", -1] for X \"", x.name(), "\" of shape ", Shape(x.dims()));
  return leading;
}

Variable FcProduct(const LayerCall& call, const Variable& x, int64_t size,
                   const FcOptions& options) {
  const int64_t rows = LeadingDims(call, x, "num_flatten_dims", options.num_flatten_dims);
  const Variable weight =
      call.CreateParameter(options.param_attr, "w", {KnownProduct(call, x, rows), size}, x.dtype(),
                           initializer::Xavier());
  Op op("mul");
  op.SetInput("X", {x.name()}).SetInput("Y", {weight.name()});
  op.SetAttr("x_num_col_dims", rows).SetAttr("y_num_col_dims", int64_t{1});
  return call.AppendFor(std::move(op));
}

struct FormatNames {
  const char* channels_first = "NCHW";
  const char* channels_last = "NHWC";
};
constexpr FormatNames kVolumeFormats = {"NCDHW", "NDHWC"};

size_t ChannelAxis(const LayerCall& call, const Variable& x, const std::string& format,
                   const FormatNames& names = {}) {
  call.Enforce(format == names.channels_first || format == names.channels_last, "data format \"",
               format, "\", expected ", names.channels_first, " or ", names.channels_last);
  const size_t axis = format == names.channels_first ? 1 : x.dims().size() - 1;
  call.Enforce(x.dims().size() >= 2 && x.dims()[axis] > 0, "X \"", x.name(), "\" has the shape ",
               Shape(x.dims()), ", expected at least 2 dims and a known number of channels (dim ",
               axis, ")");
  return axis;
}

// Returns the dims with which PaddlePaddle saves the slopes: those of channels have four dims,
// whatever the rank of x.
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

// Creates the filter of a convolution, or of a transposed one, for x with its channels at `axis`.
template <typename Options>
Variable CreateFilter(const LayerCall& call, const Variable& x, size_t axis, const Options& options,
                      bool transposed) {
  const std::vector<int64_t> kernel = ValuesOf(options.kernel);
  const int64_t channels = x.dims()[axis];
  const int64_t groups = options.groups;
  call.Enforce(options.filters > 0, "filters = ", options.filters, ", expected a positive number");
  call.Enforce(groups > 0 && channels % groups == 0 && options.filters % groups == 0,
               "groups = ", groups, ", expected a divisor of the ", channels,
               " channels and of the ", options.filters, " filters");
  // A transposed convolution is the gradient of a convolution, whose filter has the input channels
  // first.
  std::vector<int64_t> dims = {options.filters, channels / groups};
  if (transposed) dims = {channels, options.filters / groups};
  for (const int64_t extent : kernel) {
    call.Enforce(extent > 0, "kernel = ", Join(kernel, " x "), ", expected positive extents");
    dims.push_back(extent);
  }
  // He et al. 2015 with the fan-in of all channels, as in Fluid, also for groups.
  const auto points = static_cast<double>(ElementCount(dims) / (dims[0] * dims[1]));
  const Initializer normal = initializer::Normal(
      {.stddev = static_cast<float>(std::sqrt(2.0 / (points * static_cast<double>(channels))))});
  return call.CreateParameter(options.param_attr, "w", dims, x.dtype(),
                              transposed ? initializer::Xavier() : normal);
}

void CheckRank(const LayerCall& call, const Variable& x, size_t rank) {
  call.Enforce(x.dims().size() == rank, "X \"", x.name(), "\" has the shape ", Shape(x.dims()),
               ", expected ", rank, " dims");
}

// Appends `op`, a convolution or a transposed one, with its filter, bias and activation.
template <typename Options>
Variable Convolve(const LayerCall& call, const Variable& x, Op op, const Options& options,
                  bool transposed, const FormatNames& formats = {}) {
  op.SetInput("Input", {call.CheckedName(x)});
  CheckRank(call, x, ValuesOf(options.kernel).size() + 2);
  const size_t axis = ChannelAxis(call, x, options.data_format, formats);
  const Variable filter = CreateFilter(call, x, axis, options, transposed);
  op.SetInput("Filter", {filter.name()});
  op.SetAttr("strides", ValuesOf(options.stride)).SetAttr("paddings", ValuesOf(options.padding));
  op.SetAttr("dilations", ValuesOf(options.dilation)).SetAttr("groups", options.groups);
  op.SetAttr("padding_algorithm", std::string("EXPLICIT"));
  op.SetAttr("data_format", options.data_format);
  const Variable out = call.AppendFor(std::move(op), "Output");
  return call.Activate(call.AddBias(out, options.bias_attr, axis, axis + 1), options.act);
}

template <typename Options>
Variable ConvolveTransposed(const LayerCall& call, const Variable& x, const char* type,
                            const Options& options, const FormatNames& formats = {}) {
  Op op(type);
  if (options.output_size.has_value()) op.SetAttr("output_size", ValuesOf(*options.output_size));
  return Convolve(call, x, std::move(op), options, /*transposed=*/true, formats);
}

// Appends `op`, which works on images, to sequences [N, C, L] as images of height 1.
template <typename Options>
Variable Convolve1d(const LayerCall& call, const Variable& x, Op op, const Options& options,
                    bool transposed, Site site) {
  call.CheckedName(x);
  CheckRank(call, x, 3);
  const size_t axis = ChannelAxis(call, x, "NCHW");
  const Variable filter = CreateFilter(call, x, axis, options, transposed);
  op.SetInput("Input", {Unsqueeze(x, {2}, site).name()});
  op.SetInput("Filter", {Unsqueeze(filter, {2}, site).name()});
  op.SetAttr("strides", ValuesOf(Extent2d(1, options.stride)));
  op.SetAttr("paddings", ValuesOf(Extent2d(0, options.padding)));
  op.SetAttr("dilations", ValuesOf(Extent2d(1, options.dilation)));
  op.SetAttr("groups", options.groups);
  op.SetAttr("padding_algorithm", std::string("EXPLICIT"));
  const Variable out = call.AppendFor(std::move(op), "Output");
  const Variable y = call.AddBias(out, options.bias_attr, axis, axis + 1);
  return call.Activate(Squeeze(y, {2}, site), options.act);
}

template <typename Options>
void CheckDepthwise(const LayerCall& call, const Variable& x, const Options& options) {
  const int64_t channels = x.dims()[ChannelAxis(call, x, options.data_format)];
  // Fluid's depthwise op is conv2d with one group per channel; its kernels rely on that.
  call.Enforce(options.groups == channels, "groups = ", options.groups,
               ", expected a group for each of the ", channels, " channels of a depthwise one");
}

template <typename Options>
Variable Pool(const char* op_type, const Variable& x, const Options& options, const Site& site) {
  const LayerCall call(op_type, "", site);
  call.Enforce(options.type == "max" || options.type == "avg", "type \"", options.type,
               "\", expected max or avg");
  // One window, or windows that the output's extents decide: the op ignores the stride.
  const bool has_own_windows = options.global || options.adaptive;
  const auto stride = options.stride.value_or(has_own_windows ? 1 : options.kernel);
  Op op(op_type);
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("pooling_type", options.type);
  op.SetAttr("ksize", ValuesOf(options.kernel)).SetAttr("strides", ValuesOf(stride));
  op.SetAttr("paddings", ValuesOf(options.padding)).SetAttr("global_pooling", options.global);
  op.SetAttr("ceil_mode", options.ceil_mode).SetAttr("exclusive", options.exclusive);
  op.SetAttr("adaptive", options.adaptive).SetAttr("data_format", options.data_format);
  op.SetAttr("padding_algorithm", std::string("EXPLICIT"));
  return call.AppendFor(std::move(op));
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

Variable MovingStatistic(const LayerCall& call, const std::string& name, const Variable& shared,
                         int64_t channels, DType dtype, double start) {
  ParamAttr attr{.shared = shared, .name = name};
  // A shared one keeps its settings, and CreateParameter refuses others; a new one isn't trained.
  attr.trainable = shared.defined();
  return call.CreateParameter(attr, "w", {channels}, dtype, initializer::Constant(start));
}

// Appends a normalisation, with a scale and a shift of `extent` values if they are asked for.
Variable Normalize(const LayerCall& call, Op op, const Variable& x, int64_t extent,
                   const OptionalParamAttr& scale, const BiasAttr& shift,
                   const std::vector<std::string>& statistics) {
  op.SetInput("X", {call.CheckedName(x)});
  const auto add_parameter = [&](const char* slot, const OptionalParamAttr& attr,
                                 const char* suffix, double start) {
    if (!attr.has_value()) return;
    const Variable parameter =
        call.CreateParameter(*attr, suffix, {extent}, x.dtype(), initializer::Constant(start));
    op.SetInput(slot, {parameter.name()});
  };
  add_parameter("Scale", scale, "w", 1.0);
  add_parameter("Bias", shift, "b", 0.0);
  for (const std::string& slot : statistics) op.SetOutput(slot, {call.NewSavedOutput()});
  return call.AppendFor(std::move(op), "Y");
}

Variable Resize(const char* type, const char* method, const Variable& x,
                const ResizeOptions& options, const Site& site) {
  const LayerCall call(type, "", site);
  call.Enforce(options.size.has_value() != (options.scale != 0),
               "expected either a size or a scale");
  Op op(type);
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("interp_method", std::string(method));
  if (options.size.has_value()) {
    op.SetAttr("out_h", options.size->height).SetAttr("out_w", options.size->width);
  } else {
    op.SetAttr("scale", std::vector<float>{options.scale, options.scale});
  }
  op.SetAttr("align_corners", options.align_corners).SetAttr("align_mode", options.align_mode);
  op.SetAttr("data_layout", options.data_layout);
  return call.AppendFor(std::move(op));
}

// Appends unfold or fold.
template <typename Options>
Variable Unfolded(const char* type, const Variable& x, Op op, const Options& options,
                  const Site& site) {
  const LayerCall call(type, "", site);
  const std::vector<int64_t> padding = ValuesOf(options.padding);
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("kernel_sizes", ValuesOf(options.kernel));
  op.SetAttr("strides", ValuesOf(options.stride)).SetAttr("dilations", ValuesOf(options.dilation));
  op.SetAttr("paddings", std::vector<int64_t>{padding[0], padding[1], padding[0], padding[1]});
  return call.AppendFor(std::move(op), "Y");
}

}  // namespace

Variable Fc(const Variable& x, int64_t size, const FcOptions& options, Site site) {
  return Fc(std::vector<Variable>{x}, size, options, site);
}

Variable Fc(const std::vector<Variable>& xs, int64_t size, const FcOptions& options, Site site) {
  const LayerCall call("fc", options.name, site);
  call.Enforce(!xs.empty(), "there is no input");
  call.Enforce(size >= 1, "size = ", size, ", expected a positive number");
  call.CheckedNames(xs);
  std::vector<Variable> products;
  for (const Variable& x : xs) products.push_back(FcProduct(call, x, size, options));
  Variable out = products[0];
  if (products.size() > 1) {
    Op op("sum");
    op.SetInput("X", call.CheckedNames(products));
    out = call.AppendFor(std::move(op));
  }
  const size_t last = out.dims().size() - 1;
  return call.Activate(call.AddBias(out, options.bias_attr, last, last + 1), options.act);
}

Variable Conv2d(const Variable& x, const Conv2dOptions& options, Site site) {
  const char* type = options.depthwise ? "depthwise_conv2d" : "conv2d";
  const LayerCall call(type, options.name, site);
  call.CheckedName(x);
  if (options.depthwise) CheckDepthwise(call, x, options);
  return Convolve(call, x, Op(type), options, /*transposed=*/false);
}

Variable Conv2dTranspose(const Variable& x, const Conv2dTransposeOptions& options, Site site) {
  const char* type = options.depthwise ? "depthwise_conv2d_transpose" : "conv2d_transpose";
  const LayerCall call(type, options.name, site);
  call.CheckedName(x);
  if (options.depthwise) CheckDepthwise(call, x, options);
  return ConvolveTransposed(call, x, type, options);
}

Variable Conv3dTranspose(const Variable& x, const Conv3dTransposeOptions& options, Site site) {
  const LayerCall call("conv3d_transpose", options.name, site);
  return ConvolveTransposed(call, x, "conv3d_transpose", options, kVolumeFormats);
}

Variable Conv3d(const Variable& x, const Conv3dOptions& options, Site site) {
  const LayerCall call("conv3d", options.name, site);
  return Convolve(call, x, Op("conv3d"), options, /*transposed=*/false, kVolumeFormats);
}

Variable Conv1d(const Variable& x, const Conv1dOptions& options, Site site) {
  const LayerCall call("conv1d", options.name, site);
  return Convolve1d(call, x, Op("conv2d"), options, /*transposed=*/false, site);
}

Variable Conv1dTranspose(const Variable& x, const Conv1dTransposeOptions& options, Site site) {
  const LayerCall call("conv1d_transpose", options.name, site);
  Op op("conv2d_transpose");
  if (options.output_size.has_value())
    op.SetAttr("output_size", std::vector<int64_t>{1, *options.output_size});
  return Convolve1d(call, x, std::move(op), options, /*transposed=*/true, site);
}

Variable Pool1d(const Variable& x, const Pool1dOptions& options, Site site) {
  const LayerCall call("pool1d", "", site);
  call.CheckedName(x);
  CheckRank(call, x, 3);
  const Variable y = Pool2d(Unsqueeze(x, {2}, site),
                            {.kernel = {1, options.kernel},
                             .type = options.type,
                             .stride = Extent2d(1, options.stride.value_or(options.kernel)),
                             .padding = {0, options.padding},
                             .global = options.global,
                             .ceil_mode = options.ceil_mode,
                             .exclusive = options.exclusive,
                             .adaptive = options.adaptive},
                            site);
  return Squeeze(y, {2}, site);
}

Variable Pool2d(const Variable& x, const Pool2dOptions& options, Site site) {
  return Pool("pool2d", x, options, site);
}

Variable Pool3d(const Variable& x, const Pool3dOptions& options, Site site) {
  return Pool("pool3d", x, options, site);
}

Variable BatchNorm(const Variable& x, const BatchNormOptions& options, Site site) {
  const LayerCall call("batch_norm", options.name, site);
  const std::string input = call.CheckedName(x);
  const int64_t channels = x.dims()[ChannelAxis(call, x, options.data_layout)];
  const ScaleAndShift affine =
      CreateScaleAndShift(call, options.param_attr, options.bias_attr, channels, x.dtype());
  const Variable mean = MovingStatistic(call, options.moving_mean_name, options.moving_mean,
                                        channels, x.dtype(), 0.0);
  const Variable variance = MovingStatistic(call, options.moving_variance_name,
                                            options.moving_variance, channels, x.dtype(), 1.0);
  Op op("batch_norm");
  op.SetInput("X", {input}).SetInput("Scale", {affine.scale.name()});
  op.SetInput("Bias", {affine.shift.name()}).SetInput("Mean", {mean.name()});
  op.SetInput("Variance", {variance.name()});
  op.SetAttr("momentum", options.momentum).SetAttr("epsilon", options.epsilon);
  op.SetAttr("is_test", options.is_test).SetAttr("data_layout", options.data_layout);
  op.SetAttr("use_global_stats", options.use_global_stats);
  op.SetOutput("MeanOut", {mean.name()}).SetOutput("VarianceOut", {variance.name()});
  op.SetOutput("SavedMean", {call.NewSavedOutput()});
  op.SetOutput("SavedVariance", {call.NewSavedOutput()});
  // PaddlePaddle doesn't train without this output.
  if (!options.is_test) op.SetOutput("ReserveSpace", {call.NewSavedOutput()});
  return call.Activate(call.AppendFor(std::move(op), "Y"), options.act);
}

Variable LayerNorm(const Variable& x, const LayerNormOptions& options, Site site) {
  const LayerCall call("layer_norm", options.name, site);
  call.CheckedName(x);
  const int64_t axis = LeadingDims(call, x, "begin_norm_axis", options.begin_norm_axis);
  Op op("layer_norm");
  op.SetAttr("begin_norm_axis", axis).SetAttr("epsilon", options.epsilon);
  const Variable y = Normalize(call, std::move(op), x, KnownProduct(call, x, axis),
                               options.param_attr, options.bias_attr, {"Mean", "Variance"});
  return call.Activate(y, options.act);
}

Variable GroupNorm(const Variable& x, int64_t groups, const GroupNormOptions& options, Site site) {
  const LayerCall call("group_norm", options.name, site);
  call.CheckedName(x);
  Op op("group_norm");
  op.SetAttr("groups", groups).SetAttr("epsilon", options.epsilon);
  op.SetAttr("data_layout", options.data_layout);
  const int64_t channels = x.dims()[ChannelAxis(call, x, options.data_layout)];
  const Variable y = Normalize(call, std::move(op), x, channels, options.param_attr,
                               options.bias_attr, {"Mean", "Variance"});
  return call.Activate(y, options.act);
}

Variable InstanceNorm(const Variable& x, const InstanceNormOptions& options, Site site) {
  const LayerCall call("instance_norm", options.name, site);
  call.CheckedName(x);
  Op op("instance_norm");
  op.SetAttr("epsilon", options.epsilon);
  return Normalize(call, std::move(op), x, x.dims()[ChannelAxis(call, x, "NCHW")],
                   options.param_attr, options.bias_attr, {"SavedMean", "SavedVariance"});
}

Variable RmsNorm(const Variable& x, const RmsNormOptions& options, Site site) {
  const LayerCall call("rms_norm", options.name, site);
  call.CheckedName(x);
  const int64_t axis = LeadingDims(call, x, "begin_norm_axis", options.begin_norm_axis);
  Op op("rms_norm");
  op.SetAttr("begin_norm_axis", axis).SetAttr("epsilon", options.epsilon);
  const Variable y = Normalize(call, std::move(op), x, KnownProduct(call, x, axis),
                               options.param_attr, false, {"MeanSquare"});
  return call.Activate(y, options.act);
}

Variable Dropout(const Variable& x, float p, const DropoutOptions& options, Site site) {
  const LayerCall call("dropout", "", site);
  call.Enforce(p >= 0.0f && p <= 1.0f, "p = ", p, " is outside [0, 1]");
  Op op("dropout");
  op.SetInput("X", {call.CheckedName(x)})
      .SetAttr("dropout_prob", p)
      .SetAttr("is_test", options.is_test);
  op.SetAttr("seed", options.seed).SetAttr("fix_seed", options.seed != 0);
  op.SetAttr("dropout_implementation", options.implementation);
  op.SetOutput("Mask", {call.NewSavedOutput()});
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
  op.SetInput("Ids", {call.CheckedName(ids)});
  const Variable table = call.CreateParameter(
      options.param_attr, "w", {options.rows, options.width}, options.dtype, initializer::Xavier());
  op.SetInput("W", {table.name()});
  op.SetAttr("padding_idx", padding).SetAttr("is_sparse", options.is_sparse);
  return call.AppendFor(std::move(op));
}

Variable Prelu(const Variable& x, const PreluOptions& options, Site site) {
  const LayerCall call("prelu", options.name, site);
  Op op("prelu");
  op.SetInput("X", {call.CheckedName(x)});
  const Variable slopes = call.CreateParameter(options.param_attr, "w", SlopeDims(call, x, options),
                                               x.dtype(), initializer::Constant(0.25));
  op.SetInput("Alpha", {slopes.name()});
  op.SetAttr("mode", options.mode).SetAttr("data_format", options.data_format);
  return call.AppendFor(std::move(op));
}

Variable ResizeBilinear(const Variable& x, const ResizeOptions& options, Site site) {
  return Resize("bilinear_interp_v2", "bilinear", x, options, site);
}

Variable ResizeNearest(const Variable& x, const ResizeOptions& options, Site site) {
  return Resize("nearest_interp_v2", "nearest", x, options, site);
}

MaxPool2dResult MaxPool2dWithIndex(const Variable& x, const MaxPool2dWithIndexOptions& options,
                                   Site site) {
  const LayerCall call("max_pool2d_with_index", "", site);
  const bool has_own_windows = options.global || options.adaptive;
  const Extent2d stride = options.stride.value_or(has_own_windows ? 1 : options.kernel);
  Op op("max_pool2d_with_index");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("ksize", ValuesOf(options.kernel));
  op.SetAttr("strides", ValuesOf(stride)).SetAttr("paddings", ValuesOf(options.padding));
  op.SetAttr("global_pooling", options.global).SetAttr("adaptive", options.adaptive);
  const MaxPool2dResult result{call.NewOutput(), call.NewOutput()};
  op.SetOutput("Out", {result.values.name()}).SetOutput("Mask", {result.indices.name()});
  call.Append(std::move(op));
  result.indices.StopGradient();
  return result;
}

Variable MaxUnpool2d(const Variable& x, const Variable& indices, const MaxUnpool2dOptions& options,
                     Site site) {
  const LayerCall call("unpool", "", site);
  Op op("unpool");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Indices", {call.CheckedName(indices)});
  CheckRank(call, x, 4);
  const std::vector<int64_t> kernel = ValuesOf(options.kernel);
  const std::vector<int64_t> strides = ValuesOf(options.stride.value_or(options.kernel));
  const std::vector<int64_t> paddings = ValuesOf(options.padding);
  op.SetAttr("ksize", kernel).SetAttr("strides", strides).SetAttr("paddings", paddings);
  // PaddlePaddle has no default for this one, and takes the size of the output from output_size.
  op.SetAttr("unpooling_type", std::string("max"));
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < 2 && x.dims()[2] > 0 && x.dims()[3] > 0; ++i) {
    sizes.push_back((x.dims()[i + 2] - 1) * strides[i] - 2 * paddings[i] + kernel[i]);
  }
  if (options.output_size.has_value()) sizes = ValuesOf(*options.output_size);
  op.SetAttr("output_size", sizes);
  return call.AppendFor(std::move(op));
}

Variable Unfold(const Variable& x, const UnfoldOptions& options, Site site) {
  return Unfolded("unfold", x, Op("unfold"), options, site);
}

Variable Fold(const Variable& x, const FoldOptions& options, Site site) {
  Op op("fold");
  op.SetAttr("output_sizes", ValuesOf(options.output_size));
  return Unfolded("fold", x, std::move(op), options, site);
}

Variable GridSample(const Variable& x, const Variable& grid, const GridSampleOptions& options,
                    Site site) {
  const LayerCall call("grid_sampler", "", site);
  Op op("grid_sampler");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Grid", {call.CheckedName(grid)});
  op.SetAttr("mode", options.mode).SetAttr("padding_mode", options.padding_mode);
  op.SetAttr("align_corners", options.align_corners);
  return call.AppendFor(std::move(op), "Output");
}

Variable AffineGrid(const Variable& theta, const std::vector<int64_t>& output_shape,
                    bool align_corners, Site site) {
  const LayerCall call("affine_grid", "", site);
  Op op("affine_grid");
  op.SetInput("Theta", {call.CheckedName(theta)}).SetAttr("output_shape", output_shape);
  op.SetAttr("align_corners", align_corners);
  return call.AppendFor(std::move(op), "Output");
}

}  // namespace skiff::layers
