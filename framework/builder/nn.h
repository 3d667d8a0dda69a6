// Layers with parameters, and layers that are used between them in a network.
//
// Where PyTorch and PaddlePaddle 2 agree on a default, the layer has this default, even if the op
// has Fluid's: docs/changes.md.
//
// Parameters are made in the root block of the main program and initialised by the startup program.
// Default initializers are Fluid's: Xavier uniform for weights and transposed filters, 0 for
// biases, and for filters a normal distribution with deviation sqrt(2 / (points of the kernel ·
// input channels)).
//
// Errors of all layers: layers.h. Layers with parameters also throw the Errors of
// LayerCall::CreateParameter.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct FcOptions {
  // How many leading dims index the rows; negative from the back: -1 multiplies the last dim alone.
  int64_t num_flatten_dims = -1;
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string act = {};
  std::string name = {};
};
// act(x · W + b): [dims[0, num_flatten_dims)…, size]; W is [Π dims[num_flatten_dims, …), size]. So
// x [N, T, D] makes [N, T, size], and images [N, C, H, W] need num_flatten_dims = 1 (or Flatten)
// for [N, size]. Throws an Error (kInvalidArgument) if size < 1, if num_flatten_dims, counted from
// the front, isn't in [1, rank), or if an extent of W is unknown.
Variable Fc(const Variable& x, int64_t size, const FcOptions& options = {},
            Site site = Site::current());
// The same for the sum of the products of several inputs, at least one, each with a W of its own (a
// named or shared param_attr is used by all).
Variable Fc(const std::vector<Variable>& xs, int64_t size, const FcOptions& options = {},
            Site site = Site::current());

// Height and width; one number for both.
struct Extent2d {
  // NOLINTNEXTLINE(google-explicit-constructor): {.kernel = 3}
  Extent2d(int64_t both) : height(both), width(both) {}
  Extent2d(int64_t height, int64_t width) : height(height), width(width) {}

  int64_t height;
  int64_t width;
};

struct Conv2dOptions {
  int64_t filters = 0;  // output channels; must be set
  Extent2d kernel = 1;
  Extent2d stride = 1;
  Extent2d padding = 0;  // on both sides
  Extent2d dilation = 1;
  int64_t groups = 1;
  // The op depthwise_conv2d, which PaddlePaddle takes without cuDNN where groups = C. The names of
  // parameters follow the op.
  bool depthwise = false;
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string act = {};
  std::string data_format = "NCHW";
  std::string name = {};
};
// The convolution of x [N, C, H, W]: [N, filters, H', W']; the filter is
// [filters, C / groups, kernel…]. Throws an Error (kInvalidArgument) if C is unknown, if filters or
// a kernel extent isn't positive, if groups doesn't divide C and filters, or if a depthwise one has
// groups != C.
Variable Conv2d(const Variable& x, const Conv2dOptions& options, Site site = Site::current());

struct Pool2dOptions {
  Extent2d kernel = 1;
  std::string type = "max";             // or "avg"
  std::optional<Extent2d> stride = {};  // undefined: the kernel
  Extent2d padding = 0;
  bool global = false;     // the whole image; kernel and padding don't count
  bool ceil_mode = false;  // rounds output extents up
  bool exclusive = true;   // padding doesn't count in an average
  bool adaptive = false;   // kernel is the output's extent
  std::string data_format = "NCHW";
};
// The maximum or the average of each window of x [N, C, H, W]: [N, C, H', W']. As in Fluid, with
// ceil_mode or a padding of at least the kernel, a window may have no pixel, only padding. Its
// maximum is the lowest number, -3.4e38 in float32, which a convolution turns into infinities, and
// its average is 0; a warning on standard error tells of it, if H and W are known. Throws an Error
// (kInvalidArgument) if type is neither "max" nor "avg".
Variable Pool2d(const Variable& x, const Pool2dOptions& options, Site site = Site::current());

struct BatchNormOptions {
  std::string act = {};
  bool is_test = false;  // normalises by the moving statistics
  // The share of a moving statistic that stays in a step, as in PaddlePaddle; PyTorch's momentum is
  // 1 minus this.
  float momentum = 0.9f;
  float epsilon = 1e-5f;
  ParamAttr param_attr = {};  // the scale, which starts at 1
  ParamAttr bias_attr = {};   // the shift, which starts at 0
  std::string data_layout = "NCHW";
  // The names of the moving statistics. A name that exists shares the statistic, which each layer
  // then updates in turn.
  std::string moving_mean_name = {};
  std::string moving_variance_name = {};
  Variable moving_mean = {};
  Variable moving_variance = {};
  bool use_global_stats = false;
  std::string name = {};
};
// Normalises each channel over the batch. The moving statistics are persistable, not trained, and
// updated by the op in training. Throws an Error (kInvalidArgument) if the number of channels is
// unknown.
Variable BatchNorm(const Variable& x, const BatchNormOptions& options = {},
                   Site site = Site::current());

struct LayerNormOptions {
  // The first of the dims that are normalised together; negative from the back: -1 is the last dim
  // alone.
  int64_t begin_norm_axis = -1;
  float epsilon = 1e-5f;
  OptionalParamAttr param_attr = {};  // the scale, which starts at 1
  BiasAttr bias_attr = {};            // the shift, which starts at 0
  std::string act = {};
  std::string name = {};
};
// Normalises each row. Throws an Error (kInvalidArgument) if begin_norm_axis, counted from the
// front, isn't in [1, rank), or if an extent of a parameter is unknown.
Variable LayerNorm(const Variable& x, const LayerNormOptions& options = {},
                   Site site = Site::current());

struct GroupNormOptions {
  float epsilon = 1e-5f;
  OptionalParamAttr param_attr = {};  // the scale, which starts at 1
  BiasAttr bias_attr = {};            // the shift, which starts at 0
  std::string act = {};
  std::string data_layout = "NCHW";
  std::string name = {};
};
// Normalises each group of neighbouring channels of each image. Throws an Error (kInvalidArgument)
// if the number of channels is unknown.
Variable GroupNorm(const Variable& x, int64_t groups, const GroupNormOptions& options = {},
                   Site site = Site::current());

struct InstanceNormOptions {
  float epsilon = 1e-5f;
  OptionalParamAttr param_attr = {};  // the scale, which starts at 1
  BiasAttr bias_attr = {};            // the shift, which starts at 0
  std::string name = {};
};
// Normalises each channel of each image [N, C, ...]. Throws an Error (kInvalidArgument) if the
// number of channels is unknown.
Variable InstanceNorm(const Variable& x, const InstanceNormOptions& options = {},
                      Site site = Site::current());

struct RmsNormOptions {
  // The first of the dims that are normalised together; negative from the back.
  int64_t begin_norm_axis = -1;
  float epsilon = 1e-6f;
  OptionalParamAttr param_attr = {};  // the scale, which starts at 1
  std::string act = {};
  std::string name = {};
};
// Divides each row by the root of the mean of its squares, x / sqrt(mean(x²) + epsilon) · scale
// (Zhang & Sennrich 2019): a LayerNorm without mean and shift, as Llama has it. Throws an Error
// (kInvalidArgument) if begin_norm_axis, counted from the front, isn't in [1, rank), or if an
// extent of the scale is unknown.
Variable RmsNorm(const Variable& x, const RmsNormOptions& options = {},
                 Site site = Site::current());

struct DropoutOptions {
  bool is_test = false;
  int32_t seed = 0;  // 0: drawn from the program's seed
  // "upscale_in_train" scales by 1 / (1 - p) in training, "downgrade_in_infer" by 1 - p in
  // evaluation.
  std::string implementation = "upscale_in_train";
};
// In training, x with each element replaced by 0 with probability p. Throws an Error
// (kInvalidArgument) if p isn't in [0, 1].
Variable Dropout(const Variable& x, float p = 0.5f, const DropoutOptions& options = {},
                 Site site = Site::current());

struct EmbeddingOptions {
  int64_t rows = 0;                         // size of the vocabulary; must be set
  int64_t width = 0;                        // of a vector; must be set
  std::optional<int64_t> padding_idx = {};  // its vector is zero; negative from the back
  bool is_sparse = false;                   // the gradient is selected rows, of the ids alone
  ParamAttr param_attr = {};
  DType dtype = DType::kFloat32;
  std::string name = {};
};
// The rows of a table [rows, width] by int64 ids: ids [...] give [..., width]. Throws an Error
// (kInvalidArgument) if an extent of the table isn't positive, or if padding_idx isn't in
// [-rows, rows).
Variable Embedding(const Variable& ids, const EmbeddingOptions& options,
                   Site site = Site::current());

struct PreluOptions {
  // "all": one slope for all; "channel": one per channel; "element": one per element.
  std::string mode = "all";
  ParamAttr param_attr = {};  // the slopes, which start at 0.25
  std::string data_format = "NCHW";
  std::string name = {};
};
// x where x is positive, slope · x elsewhere. Throws an Error (kInvalidArgument) if the number of
// channels is unknown in mode "channel", or a dim after the first in mode "element".
Variable Prelu(const Variable& x, const PreluOptions& options = {}, Site site = Site::current());

struct Conv2dTransposeOptions {
  int64_t filters = 0;  // output channels; must be set
  Extent2d kernel = 1;
  Extent2d stride = 1;
  Extent2d padding = 0;  // cut off the output on both sides
  Extent2d dilation = 1;
  std::optional<Extent2d> output_size = {};  // where a stride leaves a choice
  int64_t groups = 1;
  bool depthwise = false;  // the op depthwise_conv2d_transpose: as in Conv2dOptions
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string act = {};
  std::string data_format = "NCHW";
  std::string name = {};
};
// x [N, C, H, W] to [N, filters, H', W'], H' = (H - 1) · stride - 2 · padding + dilation · (kernel
// - 1) + 1 or output_size; the filter is [C, filters / groups, kernel…]. Throws as Conv2d does.
Variable Conv2dTranspose(const Variable& x, const Conv2dTransposeOptions& options,
                         Site site = Site::current());

// Depth, height and width; one number for all.
struct Extent3d {
  // NOLINTNEXTLINE(google-explicit-constructor): {.kernel = 3}
  Extent3d(int64_t all) : depth(all), height(all), width(all) {}
  Extent3d(int64_t depth, int64_t height, int64_t width)
      : depth(depth), height(height), width(width) {}

  int64_t depth;
  int64_t height;
  int64_t width;
};

struct Conv3dOptions {
  int64_t filters = 0;  // output channels; must be set
  Extent3d kernel = 1;
  Extent3d stride = 1;
  Extent3d padding = 0;  // on both sides
  Extent3d dilation = 1;
  int64_t groups = 1;
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string act = {};
  std::string data_format = "NCDHW";
  std::string name = {};
};
// x [N, C, D, H, W] to [N, filters, D', H', W']; otherwise as Conv2d.
Variable Conv3d(const Variable& x, const Conv3dOptions& options, Site site = Site::current());

struct Conv3dTransposeOptions {
  int64_t filters = 0;  // output channels; must be set
  Extent3d kernel = 1;
  Extent3d stride = 1;
  Extent3d padding = 0;  // cut off the output on both sides
  Extent3d dilation = 1;
  std::optional<Extent3d> output_size = {};  // where a stride leaves a choice
  int64_t groups = 1;
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string act = {};
  std::string data_format = "NCDHW";
  std::string name = {};
};
// x [N, C, D, H, W] to [N, filters, D', H', W']; otherwise as Conv2dTranspose.
Variable Conv3dTranspose(const Variable& x, const Conv3dTransposeOptions& options,
                         Site site = Site::current());

struct Pool3dOptions {
  Extent3d kernel = 1;
  std::string type = "max";             // or "avg"
  std::optional<Extent3d> stride = {};  // undefined: the kernel
  Extent3d padding = 0;
  bool global = false;     // the whole volume; kernel and padding don't count
  bool ceil_mode = false;  // rounds output extents up
  bool exclusive = true;   // padding doesn't count in an average
  bool adaptive = false;   // kernel is the output's extent
  std::string data_format = "NCDHW";
};
// x [N, C, D, H, W] to [N, C, D', H', W']; otherwise as Pool2d.
Variable Pool3d(const Variable& x, const Pool3dOptions& options, Site site = Site::current());

struct ResizeOptions {
  std::optional<Extent2d> size = {};  // of the output; or
  float scale = 0;                    // its pixels for each of x
  bool align_corners = false;         // the centers of the corner pixels coincide
  // Bilinear, without align_corners: 0 measures from the centers of pixels, 1 from their corners.
  int64_t align_mode = 0;
  std::string data_layout = "NCHW";
};
// x [N, C, H, W] resized to [N, C, H', W']; the docs of the ops have the formulas. By default they
// sample as torch.nn.Upsample and paddle.nn.Upsample do. Throws an Error (kInvalidArgument) if both
// or neither of size and scale are set.
Variable ResizeBilinear(const Variable& x, const ResizeOptions& options,
                        Site site = Site::current());
Variable ResizeNearest(const Variable& x, const ResizeOptions& options,
                       Site site = Site::current());

struct Conv1dOptions {
  int64_t filters = 0;  // output channels; must be set
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;  // on both sides
  int64_t dilation = 1;
  int64_t groups = 1;
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string act = {};
  std::string name = {};
};
// The convolution of sequences x [N, C, L]: [N, filters, L']; the filter is
// [filters, C / groups, kernel]. It runs as Conv2d of images of height 1. Throws as Conv2d does.
Variable Conv1d(const Variable& x, const Conv1dOptions& options, Site site = Site::current());

struct Conv1dTransposeOptions {
  int64_t filters = 0;  // output channels; must be set
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;  // cut off the output on both sides
  int64_t dilation = 1;
  std::optional<int64_t> output_size = {};  // where a stride leaves a choice
  int64_t groups = 1;
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string act = {};
  std::string name = {};
};
// x [N, C, L] to [N, filters, L'], L' = (L - 1) · stride - 2 · padding + dilation · (kernel - 1) +
// 1 or output_size; the filter is [C, filters / groups, kernel]. Throws as Conv2d does.
Variable Conv1dTranspose(const Variable& x, const Conv1dTransposeOptions& options,
                         Site site = Site::current());

struct Pool1dOptions {
  int64_t kernel = 1;
  std::string type = "max";            // or "avg"
  std::optional<int64_t> stride = {};  // undefined: the kernel
  int64_t padding = 0;
  bool global = false;     // the whole sequence; kernel and padding don't count
  bool ceil_mode = false;  // rounds output extents up
  bool exclusive = true;   // padding doesn't count in an average
  bool adaptive = false;   // kernel is the output's extent
};
// The maximum or the average of each window of sequences x [N, C, L]: [N, C, L']; otherwise as
// Pool2d.
Variable Pool1d(const Variable& x, const Pool1dOptions& options, Site site = Site::current());

struct MaxPool2dWithIndexOptions {
  Extent2d kernel = 1;
  std::optional<Extent2d> stride = {};  // undefined: the kernel
  Extent2d padding = 0;
  bool global = false;    // the whole image; kernel and padding don't count
  bool adaptive = false;  // kernel is the output's extent
};
struct MaxPool2dResult {
  Variable values = {};
  Variable indices = {};  // int32: row · W + column of the pixel in its channel
};
// The maximum of each window of x [N, C, H, W] as by Pool2d, and which pixel it is. There is no
// ceil_mode, and no dilation.
MaxPool2dResult MaxPool2dWithIndex(const Variable& x, const MaxPool2dWithIndexOptions& options,
                                   Site site = Site::current());

struct MaxUnpool2dOptions {
  Extent2d kernel = 1;                  // of the pooling
  std::optional<Extent2d> stride = {};  // undefined: the kernel
  Extent2d padding = 0;
  std::optional<Extent2d> output_size = {};  // undefined: follows from the other options
};
// Puts x [N, C, H, W] back to the pixels that MaxPool2dWithIndex has taken, among zeros:
// [N, C, H', W'], H' = (H - 1) · stride - 2 · padding + kernel or output_size. If several elements
// of a channel name the same pixel, the last element remains, and only that element gets the
// gradient. An index outside the image is an Error (kOutOfRange) of the run.
Variable MaxUnpool2d(const Variable& x, const Variable& indices, const MaxUnpool2dOptions& options,
                     Site site = Site::current());

struct UnfoldOptions {
  Extent2d kernel = 1;
  Extent2d stride = 1;
  Extent2d padding = 0;  // on both sides
  Extent2d dilation = 1;
};
// The windows of x [N, C, H, W] as columns (im2col): [N, C · kernel…, windows].
Variable Unfold(const Variable& x, const UnfoldOptions& options, Site site = Site::current());

struct FoldOptions {
  Extent2d output_size = 0;  // must be set
  Extent2d kernel = 1;
  Extent2d stride = 1;
  Extent2d padding = 0;  // cut off the output on both sides
  Extent2d dilation = 1;
};
// Adds up columns x [N, C · kernel…, windows], as Unfold makes them, into images
// [N, C, output_size…]. Throws an Error (kInvalidArgument) if output_size isn't positive.
Variable Fold(const Variable& x, const FoldOptions& options, Site site = Site::current());

struct GridSampleOptions {
  std::string mode = "bilinear";       // or "nearest", or for images "bicubic"
  std::string padding_mode = "zeros";  // or "border", "reflection"
  // -1 and 1 are the centers of the outer elements, as by default in PaddlePaddle; else their outer
  // ends, as by default in PyTorch.
  bool align_corners = true;
};
// x [N, C, H, W] sampled at the places (x, y) of grid [N, H', W', 2], whose coordinates are from -1
// to 1: [N, C, H', W']. Of volumes x [N, C, D, H, W] at the places (x, y, z) of
// [N, D', H', W', 3].
Variable GridSample(const Variable& x, const Variable& grid, const GridSampleOptions& options = {},
                    Site site = Site::current());
// The grid that samples images of the dims output_shape, [N, C, H, W] or [N, C, D, H, W], moved by
// the matrices theta, [N, 2, 3] or [N, 3, 4]: [N, H, W, 2] or [N, D, H, W, 3]. N may be -1.
Variable AffineGrid(const Variable& theta, const std::vector<int64_t>& output_shape,
                    bool align_corners = true, Site site = Site::current());

}  // namespace skiff::layers
