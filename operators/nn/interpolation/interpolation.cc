// Each output row and each output column has a Blend, two input indices and a weight, computed once
// per plan: when the kernel is bound, so after memory for as large an output was found. A row of
// output then reads two rows of input, so forward splits rows among threads. Backward adds to the
// input's pixels, which several output rows share, so it splits planes only, and each sum has a
// fixed order.
#include "operators/nn/interpolation/interpolation.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/arguments.h"
#include "framework/op/grad.h"
#include "operators/nn/interpolation/resizing.h"

namespace skiff {
namespace {

// The most pixels along an axis.
constexpr auto kMostPixels = static_cast<float>(std::numeric_limits<int32_t>::max());

std::string NameOf(Interpolation method) {
  return method == Interpolation::kNearest ? "nearest" : "bilinear";
}

void Infer(OpContext& context, const InterpolationOp& op) {
  const Resizing resizing = ParseResizing(context, op);
  context.SetOutputLike("Out", "X");
  context.SetOutput("Out", ShapeOf(resizing.output, resizing.order), context.Input("X").dtype);
}

template <typename T>
class ResizingLoops {
 public:
  ResizingLoops(const OpContext& context, const InterpolationOp& op)
      : resizing_(ParseResizing(context, op)),
        in_(StridesOf(resizing_.input, resizing_.order)),
        out_(StridesOf(resizing_.output, resizing_.order)) {
    SKIFF_ENFORCE(resizing_.input.size[0] > 0 && resizing_.input.size[1] > 0, kInvalidArgument,
                  context.op().type, ": X of shape ", context.Input("X").shape,
                  " has no pixels, expected at least one");
  }

  // Must come before Forward and Backward. Does nothing if it was called before.
  void MakeBlends() {
    if (!blends_[0].empty()) return;
    // Both or, if memory runs out, neither.
    std::array<std::vector<Blend>, 2> blends;
    for (size_t axis = 0; axis < 2; ++axis) {
      const ResizedAxis resized = ResizedAxisOf(resizing_, axis);
      blends[axis].reserve(static_cast<size_t>(resized.outputs));
      for (int64_t pixel = 0; pixel < resized.outputs; ++pixel) {
        blends[axis].push_back(BlendOf(resized, resizing_.method, pixel));
      }
    }
    blends_ = std::move(blends);
  }

  void Forward(const T* input, T* output) const {
    const int64_t rows = resizing_.output.size[0];
    const auto& [images, lines] = Planes();
    ParallelFor(
        images * rows, GrainOf(resizing_.output.size[1] * lines), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            ForwardRow(input + InputPlane(i / rows), i % rows, output + OutputPlane(i / rows));
          }
        });
  }

  void Backward(const T* output_gradient, T* input_gradient) const {
    const int64_t rows = resizing_.output.size[0];
    const auto& [images, lines] = Planes();
    const int64_t pixels = resizing_.input.size[0] * resizing_.input.size[1] * lines;
    ParallelFor(images, GrainOf(rows * resizing_.output.size[1] * lines),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    T* to = input_gradient + InputPlane(i);
                    std::fill_n(to, pixels, T{0});
                    for (int64_t row = 0; row < rows; ++row) {
                      BackwardRow(output_gradient + OutputPlane(i), row, to);
                    }
                  }
                });
  }

 private:
  struct PlaneCount {
    int64_t count;
    int64_t values_a_pixel;
  };

  bool is_first() const { return resizing_.order == ChannelOrder::kFirst; }
  // A plane is resized as a unit: a channel with channels first, or an image whose pixels hold all
  // channels with channels last.
  PlaneCount Planes() const {
    const int64_t channels = resizing_.input.channels;
    if (is_first()) return {resizing_.input.batch * channels, 1};
    return {resizing_.input.batch, channels};
  }
  int64_t InputPlane(int64_t i) const { return i * (is_first() ? in_.channel : in_.batch); }
  int64_t OutputPlane(int64_t i) const { return i * (is_first() ? out_.channel : out_.batch); }

  void ForwardRow(const T* plane, int64_t row, T* output) const {
    const Blend& rows = blends_[0][static_cast<size_t>(row)];
    const T* top = plane + rows.low * in_.size[0];
    const T* bottom = plane + rows.high * in_.size[0];
    T* to = output + row * out_.size[0];
    const int64_t step = in_.size[1];
    const auto down = static_cast<T>(rows.weight);
    for (const Blend& columns : blends_[1]) {
      const int64_t left = columns.low * step;
      const int64_t right = columns.high * step;
      // A copy, not a blend of weight 0: 0 times an infinite pixel would be NaN.
      if (resizing_.method == Interpolation::kNearest) {
        std::copy_n(top + left, step, to);
      } else {
        const auto across = static_cast<T>(columns.weight);
        for (int64_t c = 0; c < step; ++c) {
          const T above = top[left + c] * (1 - across) + top[right + c] * across;
          const T below = bottom[left + c] * (1 - across) + bottom[right + c] * across;
          to[c] = above * (1 - down) + below * down;
        }
      }
      to += step;
    }
  }

  void BackwardRow(const T* output_gradient, int64_t row, T* plane) const {
    const Blend& rows = blends_[0][static_cast<size_t>(row)];
    T* top = plane + rows.low * in_.size[0];
    T* bottom = plane + rows.high * in_.size[0];
    const T* from = output_gradient + row * out_.size[0];
    const int64_t step = in_.size[1];
    const auto down = static_cast<T>(rows.weight);
    for (const Blend& columns : blends_[1]) {
      const int64_t left = columns.low * step;
      const int64_t right = columns.high * step;
      const auto across = static_cast<T>(columns.weight);
      for (int64_t c = 0; c < step; ++c) {
        if (resizing_.method == Interpolation::kNearest) {
          top[left + c] += from[c];
          continue;
        }
        const T above = from[c] * (1 - down);
        const T below = from[c] * down;
        top[left + c] += above * (1 - across);
        top[right + c] += above * across;
        bottom[left + c] += below * (1 - across);
        bottom[right + c] += below * across;
      }
      from += step;
    }
  }

  Resizing resizing_;
  ImageStrides in_;
  ImageStrides out_;
  std::array<std::vector<Blend>, 2> blends_;
};

template <typename T>
class ResizingKernel final : public Kernel {
 public:
  ResizingKernel(const OpContext& context, const InterpolationOp& op, bool is_gradient)
      : loops_(context, op),
        from_(context, is_gradient ? "Out@GRAD" : "X"),
        to_(context, is_gradient ? "X@GRAD" : "Out"),
        is_gradient_(is_gradient) {}

  void Bind(const KernelContext&) override { loops_.MakeBlends(); }

  void Run(const KernelContext& run) override {
    const T* from = from_(run);
    T* to = to_(run);
    is_gradient_ ? loops_.Backward(from, to) : loops_.Forward(from, to);
  }

 private:
  ResizingLoops<T> loops_;
  In<T> from_;
  Out<T> to_;
  bool is_gradient_;
};

AttrDef ScaleAttr(InterpolationVersion version) {
  if (version == InterpolationVersion::kFirst) {
    return {.name = "scale",
            .type = AttrType::kFloat,
            .default_value = 0.0f,
            .doc = "Output pixels for each of the input, along both axes; 0: out_h and out_w."};
  }
  return {.name = "scale",
          .type = AttrType::kFloats,
          .default_value = Attribute(std::vector<float>{}),
          .doc = "Output pixels for each of the input: one value, or height and width."};
}

// Returns the values of the attribute, none if it isn't set.
std::vector<float> ScaleOf(const OpContext& context, InterpolationVersion version) {
  if (version == InterpolationVersion::kSecond) return context.Attr<std::vector<float>>("scale");
  const auto scale = context.Attr<float>("scale");
  return scale == 0 ? std::vector<float>() : std::vector<float>{scale};
}

std::vector<AttrDef> Attributes(InterpolationVersion version) {
  const auto size = [](StaticText name, StaticText doc) {
    return AttrDef{
        .name = name, .type = AttrType::kInt, .default_value = Attribute(int32_t{0}), .doc = doc};
  };
  return {ChannelOrderAttr("data_layout"),
          {.name = "out_size",
           .type = AttrType::kInts,
           .default_value = Attribute(std::vector<int32_t>{}),
           .doc = "Not Fluid's: height and width of the output, which OutSize and SizeTensor give. "
                  "Empty: as the other attributes say."},
          size("out_d", "Of volumes; unused."),
          size("out_h", "Height of the output, unless scale is set."),
          size("out_w", "Width of the output, unless scale is set."),
          ScaleAttr(version),
          {.name = "interp_method",
           .type = AttrType::kString,
           .default_value = std::string("bilinear"),
           .doc = "bilinear or nearest, in agreement with the op's type."},
          {.name = "align_corners",
           .type = AttrType::kBool,
           .default_value = Attribute(true),
           .doc = "The corner pixels of input and output have the same centers."},
          {.name = "align_mode",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{1}),
           .doc = "Bilinear, without align_corners: 0 measures from centers of pixels, 1 from "
                  "their corners."}};
}

}  // namespace

Resizing ParseResizing(const OpContext& context, const InterpolationOp& op) {
  const std::string& type = context.op().type;
  // PaddlePaddle follows the attribute, whatever the op's type. Here the two must agree.
  SKIFF_ENFORCE(context.Attr<std::string>("interp_method") == NameOf(op.method), kInvalidArgument,
                type, ": interp_method = \"", context.Attr<std::string>("interp_method"),
                "\", expected \"", NameOf(op.method), "\"");
  Resizing resizing;
  resizing.method = op.method;
  resizing.order = ParseChannelOrder(context, "data_layout");
  resizing.input = ImageOf(context, "X", context.Input("X").shape, resizing.order);
  resizing.align_corners = context.Attr<bool>("align_corners");
  resizing.align_mode = context.IntAttr("align_mode");
  SKIFF_ENFORCE(resizing.align_mode == 0 || resizing.align_mode == 1, kInvalidArgument, type,
                ": align_mode = ", resizing.align_mode, ", expected 0 or 1");
  const bool knows_size = context.Knows("out_size");
  const std::vector<int64_t> out_size =
      knows_size ? context.IntsAttr("out_size") : std::vector<int64_t>();
  SKIFF_ENFORCE(out_size.empty() || out_size.size() == 2, kInvalidArgument, type, ": out_size has ",
                out_size.size(), " numbers, expected height and width");
  // A size goes before a scale, as in Fluid.
  const bool is_scaled = knows_size && out_size.empty();
  const bool is_known = knows_size && (!is_scaled || context.Knows("scale"));
  const std::vector<float> scale =
      is_scaled && is_known ? ScaleOf(context, op.version) : std::vector<float>();
  SKIFF_ENFORCE(scale.size() <= 2, kInvalidArgument, type, ": scale has ", scale.size(),
                " values, expected none, one, or one for height and one for width");
  resizing.output = {resizing.input.batch, resizing.input.channels, {}};
  const char* const names[] = {"out_h", "out_w"};
  for (size_t axis = 0; axis < 2; ++axis) {
    int64_t& size = resizing.output.size[axis];
    size = -1;
    if (!is_known) continue;
    if (scale.empty()) {
      size = out_size.empty() ? context.IntAttr(names[axis]) : out_size[axis];
    } else {
      const float factor = scale[scale.size() == 1 ? 0 : axis];
      SKIFF_ENFORCE(factor > 0, kInvalidArgument, type, ": scale = ", factor,
                    ", expected a value above 0");
      // Version 1 measures distances by the sizes alone.
      if (op.version == InterpolationVersion::kSecond) {
        resizing.scale[axis] = static_cast<double>(factor);
      }
      const int64_t input = resizing.input.size[axis];
      // In float32, as in Fluid, so that rounding gives the same size.
      const float pixels = static_cast<float>(input) * factor;
      SKIFF_ENFORCE(pixels < kMostPixels, kInvalidArgument, type, ": scale = ", factor,
                    " makes more than ", kMostPixels, " pixels of the ", input, " of X");
      if (input < 0) continue;
      size = static_cast<int64_t>(pixels);
    }
    SKIFF_ENFORCE(size >= 1, kInvalidArgument, type, ": ", axis == 0 ? "height" : "width", " of ",
                  size, " for X of shape ", context.Input("X").shape,
                  ", expected at least 1; set out_h and out_w, or scale");
  }
  return resizing;
}

ResizedAxis ResizedAxisOf(const Resizing& resizing, size_t axis) {
  ResizedAxis resized{.inputs = resizing.input.size[axis],
                      .outputs = resizing.output.size[axis],
                      .align_corners = resizing.align_corners,
                      .by_centers = resizing.align_mode == 0 && !resizing.align_corners};
  const auto inputs = static_cast<double>(resized.inputs);
  // An output of the input's size is a copy, as in Fluid, whatever the scale: 1.1 times 4 pixels
  // are 4.
  if (resizing.input.size == resizing.output.size) {
    resized.ratio = 1;
  } else if (resized.outputs <= 1) {
    resized.ratio = 0;
  } else if (resizing.align_corners) {
    resized.ratio = (inputs - 1) / static_cast<double>(resized.outputs - 1);
  } else if (resizing.scale[axis] > 0) {
    resized.ratio = 1 / resizing.scale[axis];
  } else {
    resized.ratio = inputs / static_cast<double>(resized.outputs);
  }
  return resized;
}

void RegisterInterpolation(OpRegistry& registry, StaticText type, const InterpolationOp& op) {
  const std::string what = op.method == Interpolation::kNearest
                               ? "Each pixel of Out is the nearest one of X."
                               : "Each pixel of Out is blended from the four around it in X.";
  OpDef def = {.type = type,
               .doc = StrCat(what, " Fluid's ", type, "."),
               .inputs = {{.name = "X", .doc = "Images, [N, C, H, W] or [N, H, W, C]."},
                          AttributeListSlot("SizeTensor", "out_size"),
                          AttributeSlot("OutSize", "out_size"),
                          AttributeSlot("Scale", "scale")},
               .outputs = {{.name = "Out", .doc = "Images of the requested size."}},
               .attrs = Attributes(op.version),
               .infer = [op](OpContext& context) { Infer(context, op); }};
  def.precision = Precision::kHigh;
  OpDef grad =
      GradientOf(&def, {ForShape("X"), "SizeTensor", "OutSize", "Scale", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = StrCat("The gradient of ", type,
                    ": X@GRAD sums Out@GRAD times the weights that the pixel had.");
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  for (const bool is_gradient : {false, true}) {
    registry.AddCpuKernels<float, double>(is_gradient ? StrCat(type, "_grad") : std::string(type),
                                          [op, is_gradient]<typename T>(PrepareContext& context) {
                                            return std::make_unique<ResizingKernel<T>>(context, op,
                                                                                       is_gradient);
                                          });
  }
}

}  // namespace skiff
