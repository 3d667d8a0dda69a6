// grid_sampler: images, or volumes, sampled at places that a grid names.
//
//   Output[n, c, p] = X[n, c] at the place Grid[n, p], which is (x, y), or (x, y, z)
//
// A coordinate is -1 at one end of an axis and 1 at the other: at the centers of the outer elements
// (align_corners), else half an element further out. Modes: nearest takes the nearest element,
// halves to the even one; bilinear blends the two neighbours along each axis; bicubic four, by
// Keys' cubic convolution with a = -0.75, of images alone. Outside of X are zeros; or a place
// outside is moved to the border, or reflected at the ends (of bicubic, each of the elements around
// it). A coordinate that is NaN makes NaN.
//
// Source: Fluid's grid_sampler (PaddlePaddle 2.6). bicubic isn't Fluid's: it is PyTorch's
// grid_sample and ONNX Runtime's GridSample. Of nearest, Fluid rounds halves away from zero on the
// CPU.
//
// Gradients: X@GRAD of an element is the sum of its weights times Output@GRAD; Grid@GRAD of a
// coordinate is the sum over channels of the derivative of Output times Output@GRAD. It is 0 for
// nearest. With a border or a reflection, that of bilinear is 0 where the coordinate isn't strictly
// between the first and the last element, as PyTorch's; of a reflected one, the place counts.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/nn/sampling/grid_sampling.h"

namespace skiff {
namespace {

// The places whose taps a thread has at a time: they fit into the fastest cache.
constexpr int64_t kPlacesAtOnce = 32;
// To find a tap takes as long as to use it in this many channels.
constexpr int64_t kWorkOfTap = 8;

void Infer(OpContext& context) {
  const GridSampling sampling = ParseGridSampling(context);
  context.SetOutputLike("Output", "X");
  context.SetOutput("Output", ShapeOf(sampling.output, ChannelOrder::kFirst, sampling.axes),
                    context.Input("X").dtype);
}

template <typename T, SamplingMode kMode, int kAxes>
class SamplingLoops {
 public:
  SamplingLoops(const OpContext& context, const GridSampling& sampling)
      : axes_(sampling),
        batch_(sampling.input.batch),
        channels_(sampling.input.channels),
        elements_(sampling.input.points()),
        places_(sampling.output.points()) {
    CheckSampled(context, sampling);
  }

  void Forward(const T* x, const T* grid, T* output) const {
    ForEachPart(grid, [&](int64_t n, int64_t first, int64_t count, const Tap* taps) {
      for (int64_t c = 0; c < channels_; ++c) {
        const T* channel = x + (n * channels_ + c) * elements_;
        T* to = output + (n * channels_ + c) * places_ + first;
        for (int64_t p = 0; p < count; ++p) {
          T sum = 0;
          ForEachTap(taps + p * kTaps,
                     [&](const Tap& tap) { sum += tap.weight * channel[tap.offset]; });
          to[p] = sum;
        }
      }
    });
  }

  void BackwardToGrid(const T* x, const T* grid, const T* gradient, T* grid_gradient) const {
    ForEachPart(grid, [&](int64_t n, int64_t first, int64_t count, const Tap* taps) {
      // The slopes of a tap are the same in all channels, so the channels are added up before.
      T of_weights[kPlacesAtOnce * kTaps] = {};
      for (int64_t c = 0; c < channels_; ++c) {
        const T* channel = x + (n * channels_ + c) * elements_;
        const T* from = gradient + (n * channels_ + c) * places_ + first;
        for (int64_t p = 0; p < count; ++p) {
          ForEachTap(taps + p * kTaps, [&](const Tap& tap) {
            of_weights[&tap - taps] += from[p] * channel[tap.offset];
          });
        }
      }
      T* to = grid_gradient + (n * places_ + first) * kAxes;
      std::fill_n(to, count * kAxes, T{0});
      for (int64_t p = 0; p < count; ++p) {
        ForEachTap(taps + p * kTaps, [&](const Tap& tap) {
          for (int i = 0; i < kAxes; ++i) {
            to[p * kAxes + i] += tap.slopes[i] * of_weights[&tap - taps];
          }
        });
      }
    });
  }

  // The places add to elements that they share, so a channel is the work of one thread.
  void BackwardToX(const T* grid, const T* gradient, T* x_gradient) const {
    ParallelFor(batch_ * channels_, GrainOf(places_ * kTaps), [&](int64_t begin, int64_t end) {
      std::fill(x_gradient + begin * elements_, x_gradient + end * elements_, T{0});
      while (begin < end) {
        const int64_t n = begin / channels_;
        const int64_t last = std::min(end, (n + 1) * channels_);
        for (int64_t first = 0; first < places_; first += kPlacesAtOnce) {
          Tap taps[kPlacesAtOnce * kTaps];
          const int64_t count = Locate(grid, n, first, taps);
          for (int64_t c = begin; c < last; ++c) {
            T* channel = x_gradient + c * elements_;
            const T* from = gradient + c * places_ + first;
            for (int64_t p = 0; p < count; ++p) {
              ForEachTap(taps + p * kTaps,
                         [&](const Tap& tap) { channel[tap.offset] += tap.weight * from[p]; });
            }
          }
        }
        begin = last;
      }
    });
  }

 private:
  using Tap = PlaceTap<T, kAxes>;
  static constexpr int kTaps = TapsOf(kMode, kAxes);

  template <typename Visit>
  static void ForEachTap(const Tap* taps, const Visit& visit) {
    for (int k = 0; k < kTaps; ++k) {
      if (taps[k].offset >= 0) visit(taps[k]);
    }
  }

  // Sets the taps of the places of image n from `first` on, and returns how many places these are.
  int64_t Locate(const T* grid, int64_t n, int64_t first, Tap* taps) const {
    const int64_t count = std::min(kPlacesAtOnce, places_ - first);
    for (int64_t p = 0; p < count; ++p) {
      axes_.template Locate<kMode>(grid + (n * places_ + first + p) * kAxes, taps + p * kTaps);
    }
    return count;
  }

  // Calls visit(image, first place, places, their taps) for parts of all places, on several
  // threads.
  template <typename Visit>
  void ForEachPart(const T* grid, const Visit& visit) const {
    const int64_t parts = (places_ + kPlacesAtOnce - 1) / kPlacesAtOnce;
    ParallelFor(batch_ * parts, GrainOf(kPlacesAtOnce * kTaps * (channels_ + kWorkOfTap)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t part = begin; part < end; ++part) {
                    Tap taps[kPlacesAtOnce * kTaps];
                    const int64_t first = part % parts * kPlacesAtOnce;
                    const int64_t count = Locate(grid, part / parts, first, taps);
                    visit(part / parts, first, count, taps);
                  }
                });
  }

  SampledAxes<kAxes> axes_;
  int64_t batch_;
  int64_t channels_;
  int64_t elements_;  // of a channel
  int64_t places_;    // of an image
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const GridSampling sampling = ParseGridSampling(context);
  return VisitSampling(sampling, [&]<SamplingMode kMode, int kAxes>() {
    return MakeKernel([loops = SamplingLoops<T, kMode, kAxes>(context, sampling),
                       x = In<T>(context, "X"), grid = In<T>(context, "Grid"),
                       out = Out<T>(context, "Output")](const KernelContext& run) {
      loops.Forward(x(run), grid(run), out(run));
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const GridSampling sampling = ParseGridSampling(context);
  return VisitSampling(sampling, [&]<SamplingMode kMode, int kAxes>() {
    return MakeKernel([loops = SamplingLoops<T, kMode, kAxes>(context, sampling),
                       x = In<T>(context, "X"), grid = In<T>(context, "Grid"),
                       gradient = In<T>(context, "Output@GRAD"), dx = Out<T>(context, "X@GRAD"),
                       dgrid = Out<T>(context, "Grid@GRAD")](const KernelContext& run) {
      if (dx.is_there()) loops.BackwardToX(grid(run), gradient(run), dx(run));
      if (dgrid.is_there()) {
        loops.BackwardToGrid(x(run), grid(run), gradient(run), dgrid(run));
      }
    });
  });
}

std::vector<AttrDef> Attributes() {
  return {ChoiceAttr("mode", "bilinear", {"bilinear", "nearest", "bicubic"},
                     "bilinear, nearest or bicubic, which isn't Fluid's, of images alone."),
          ChoiceAttr("padding_mode", "zeros", {"zeros", "border", "reflection"},
                     "What is outside of X: zeros, its border, or its reflection."),
          {.name = "align_corners",
           .type = AttrType::kBool,
           .default_value = true,
           .doc = "Coordinates of -1 and 1 are the centers of the outer elements, not their outer "
                  "ends."}};
}

}  // namespace

GridSampling ParseGridSampling(const OpContext& context) {
  const std::string& type = context.op().type;
  const TensorMeta& x = context.Input("X");
  const TensorMeta& grid = context.Input("Grid");
  SKIFF_ENFORCE(x.shape.rank() == 4 || x.shape.rank() == 5, kInvalidArgument, type, ": X of shape ",
                x.shape, ", expected [N, C, H, W] or [N, C, D, H, W]");
  GridSampling sampling;
  if (x.shape.rank() == 5) sampling.axes = VolumeAxes::kVolume;
  sampling.input = VolumeOf(context, "X", x.shape, ChannelOrder::kFirst, sampling.axes);
  const auto axes = static_cast<int64_t>(AxisCount(sampling.axes));
  const int last = x.shape.rank() - 1;
  SKIFF_ENFORCE(
      grid.shape.rank() == x.shape.rank() && (grid.shape[last] < 0 || grid.shape[last] == axes),
      kInvalidArgument, type, ": Grid of shape ", grid.shape, " and X of shape ", x.shape,
      ", expected as many dims, the last one of ", axes, " coordinates");
  SKIFF_ENFORCE(grid.dtype == x.dtype, kInvalidArgument, type, ": Grid is ", grid.dtype,
                " and X is ", x.dtype, ", expected one dtype");
  sampling.output = VolumeOf(context, "Grid", grid.shape, ChannelOrder::kLast, sampling.axes);
  sampling.output.batch = MergeDims(sampling.input.batch, sampling.output.batch,
                                    StrCat(type, ": the numbers of images of X and of Grid"));
  sampling.output.channels = sampling.input.channels;
  const std::string& mode = context.Attr<std::string>("mode");
  if (mode == "nearest") sampling.mode = SamplingMode::kNearest;
  if (mode == "bicubic") sampling.mode = SamplingMode::kCubic;
  SKIFF_ENFORCE(sampling.mode != SamplingMode::kCubic || sampling.axes == VolumeAxes::kImage,
                kInvalidArgument, type, ": mode = \"bicubic\" and X of shape ", x.shape,
                ", expected images, [N, C, H, W]");
  const std::string& padding = context.Attr<std::string>("padding_mode");
  if (padding == "border") sampling.padding = SamplingPadding::kBorder;
  if (padding == "reflection") sampling.padding = SamplingPadding::kReflection;
  sampling.align_corners = context.Attr<bool>("align_corners");
  return sampling;
}

void CheckSampled(const OpContext& context, const GridSampling& sampling) {
  SKIFF_ENFORCE(sampling.input.points() > 0, kInvalidArgument, context.op().type, ": X of shape ",
                context.Input("X").shape, " has nothing to sample, expected at least one element");
}

void RegisterGridSampler(OpRegistry& registry) {
  OpDef def = {
      .type = "grid_sampler",
      .doc =
          "Output[n, c, p] = X[n, c] at the place Grid[n, p], whose coordinates are from -1 "
          "to 1.",
      .inputs = {{.name = "X", .doc = "[N, C, H, W] or [N, C, D, H, W]."},
                 {.name = "Grid",
                  .doc = "Places (x, y) or (x, y, z): [N, H', W', 2] or [N, D', H', W', "
                         "3]."}},
      .outputs = {{.name = "Output", .doc = "[N, C, H', W'] or [N, C, D', H', W']."}},
      .attrs = Attributes(),
      .infer = Infer};
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"X", "Grid", "Output@GRAD"}, {"X@GRAD", "Grid@GRAD"});
  grad.doc =
      "X@GRAD of an element = the sum of its weights times Output@GRAD; Grid@GRAD = Output@GRAD "
      "times the derivatives by the coordinates.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "grid_sampler", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "grid_sampler_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
