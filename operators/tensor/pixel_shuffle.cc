// pixel_shuffle: groups of r * r channels become blocks of r by r pixels (r = upscale_factor).
//
//   NCHW: Out[n, c, h * r + i, w * r + j] = X[n, (c * r + i) * r + j, h, w]
//   NHWC: Out[n, h * r + i, w * r + j, c] = X[n, h, w, (c * r + i) * r + j]
//
// Source: Fluid's pixel_shuffle (Shi et al. 2016). The gradient is the reverse permutation.
#include <array>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

bool IsNhwc(const OpContext& context) { return context.Attr<std::string>("data_format") == "NHWC"; }

// Returns the shape of Out for an X of shape `x`, or with `reverse` that of X for an Out.
Shape ShuffledShape(const OpContext& context, const Shape& x, bool reverse) {
  const std::string& op = context.op().type;
  const int64_t factor = context.IntAttr("upscale_factor");
  SKIFF_ENFORCE(x.rank() == 4, kInvalidArgument, op, ": the tensor has shape ", x,
                ", expected 4 dims");
  Shape out = x;
  const int channel = IsNhwc(context) ? 3 : 1;
  const int row = IsNhwc(context) ? 1 : 2;
  const auto scale = [&](int axis, int64_t by, bool up) {
    if (x[axis] < 0) return;
    SKIFF_ENFORCE(up || x[axis] % by == 0, kInvalidArgument, op, ": dim ", axis, " of shape ", x,
                  " is not a multiple of ", by, "; upscale_factor = ", factor);
    out[axis] = up ? MultiplyCounts(x[axis], by) : x[axis] / by;
  };
  scale(channel, factor * factor, reverse);
  scale(row, factor, !reverse);
  scale(row + 1, factor, !reverse);
  return out;
}

// Returns the copy from X, of shape `x`, to Out, or with `reverse` back. Each axis of X and Out is
// a product of some of six axes, so the shuffle is a permutation of these.
StridedCopy ShuffleCopy(const OpContext& context, const Shape& x, DType dtype, bool reverse) {
  const int64_t r = context.IntAttr("upscale_factor");
  const bool nhwc = IsNhwc(context);
  const int64_t height = nhwc ? x[1] : x[2];
  const int64_t width = nhwc ? x[2] : x[3];
  const int64_t channels = (nhwc ? x[3] : x[1]) / (r * r);
  // Axes n, h, w, c, i, j.
  const std::array<int64_t, 6> dims = {x[0], height, width, channels, r, r};
  const int64_t pixels = height * width;
  const int64_t image = channels * r * r * pixels;
  std::array<int64_t, 6> x_strides;
  std::array<int64_t, 6> out_strides;
  if (nhwc) {
    const int64_t out_row = width * r * channels;
    x_strides = {image, width * channels * r * r, channels * r * r, r * r, r, 1};
    out_strides = {image, out_row * r, r * channels, 1, out_row, channels};
  } else {
    const int64_t out_row = width * r;
    x_strides = {image, width, 1, r * r * pixels, r * pixels, pixels};
    out_strides = {image, out_row * r, r, r * r * pixels, out_row, 1};
  }
  return reverse ? StridedCopy(dims, out_strides, x_strides, SizeOf(dtype))
                 : StridedCopy(dims, x_strides, out_strides, SizeOf(dtype));
}

std::unique_ptr<Kernel> MakeShuffleKernel(const StridedCopy& copy, const In<>& from,
                                          const Out<>& to) {
  return MakeKernel(
      [=](const KernelContext& run) { MoverOf(run).Copy(run, copy, from(run), to(run)); });
}

}  // namespace

void RegisterPixelShuffle(OpRegistry& registry) {
  OpDef def;
  def.type = "pixel_shuffle";
  def.doc =
      "Out[n, c, h * r + i, w * r + j] = X[n, (c * r + i) * r + j, h, w], r = upscale_factor.";
  def.inputs = {{.name = "X", .doc = "[n, c * r * r, h, w], or [n, h, w, c * r * r]."}};
  def.outputs = {{.name = "Out", .doc = "[n, c, h * r, w * r], or [n, h * r, w * r, c]."}};
  def.attrs = {{.name = "upscale_factor",
                .type = AttrType::kInt,
                .default_value = int32_t{1},
                .doc = "r, 1 or more.",
                .accepts =
                    [](const Attribute& attribute) {
                      const int32_t factor = std::get<int32_t>(attribute);
                      return factor >= 1 && factor <= 32768;
                    },
                .expected = "1 to 32768",
                .refusal = ErrorCode::kOutOfRange},
               ChoiceAttr("data_format", "NCHW", {"NCHW", "NHWC"}, "\"NCHW\" or \"NHWC\".")};
  def.infer = [](OpContext& context) {
    const TensorMeta& x = context.Input("X");
    context.SetOutput("Out", ShuffledShape(context, x.shape, /*reverse=*/false), x.dtype);
  };
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {"Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = the pixels of Out@GRAD back in their channels.";
  grad.infer = [](OpContext& context) {
    const TensorMeta& out_grad = context.Input("Out@GRAD");
    context.SetOutput("X@GRAD", ShuffledShape(context, out_grad.shape, /*reverse=*/true),
                      out_grad.dtype);
  };
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "pixel_shuffle", [](PrepareContext& context) {
    const TensorMeta& x = context.Input("X");
    return MakeShuffleKernel(ShuffleCopy(context, x.shape, x.dtype, /*reverse=*/false),
                             {context, "X"}, {context, "Out"});
  });
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "pixel_shuffle_grad", [](PrepareContext& context) {
    const TensorMeta& out_grad = context.Input("Out@GRAD");
    const Shape x = ShuffledShape(context, out_grad.shape, /*reverse=*/true);
    return MakeShuffleKernel(ShuffleCopy(context, x, out_grad.dtype, /*reverse=*/true),
                             {context, "Out@GRAD"}, {context, "X@GRAD"});
  });
}

}  // namespace skiff
