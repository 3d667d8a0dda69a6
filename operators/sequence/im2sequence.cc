// im2sequence: the windows of an image as a sequence.
//
//   row y · OW + x of sequence n of Out = X[n, :, y · s_h - up …, x · s_w - left …], the window of
//   kernels[0] x kernels[1] in all channels, flattened; 0 outside of the image
//   OH = (H + up + down - kernels[0]) / s_h + 1, OW likewise; each image has OH · OW rows
//
// Source: Fluid's im2sequence. Its input Y, real sizes of images in a padded batch, isn't provided.
//
// Gradient: each element of X gets the sum of the gradients of its places in windows.
#include <algorithm>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/offset_count.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/image_windows.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

Shape OutShape(const OpContext& context) {
  const ImageWindows windows = ImageWindowsOf(context);
  const int64_t images = context.Input("X").shape[0];
  Shape out = {-1, -1};
  if (images >= 0 && windows.y.windows >= 0 && windows.x.windows >= 0)
    out[0] = MultiplyCounts(images, MultiplyCounts(windows.y.windows, windows.x.windows));
  if (windows.channels >= 0)
    out[1] = MultiplyCounts(windows.channels, windows.y.kernel * windows.x.kernel);
  return out;
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const Shape out = OutShape(context);
  context.SetOutput("Out", out, x.dtype);
  DeclareLoDLevel(context, "Out", 1);
  if (out[0] < 0) return;
  const int64_t images = x.shape[0];
  CheckOffsetCount(images);
  const auto offsets = [images, each = out[0] / images](std::span<const LoD* const>, LoD* lod) {
    lod->resize(1);
    lod->front().clear();
    for (int64_t i = 0; i <= images; ++i) lod->front().push_back(static_cast<uint64_t>(i * each));
  };
  context.DeriveLoD("Out", {}, 1, offsets);
}

void InferGrad(OpContext& context) {
  CheckInputLike(context, "Out@GRAD", OutShape(context), context.Input("X").dtype);
  context.SetOutputLike("X@GRAD", "X");
}

// Calls body(place in the window, place in the image, length) for the part of the window's row
// `kernel_y` in channel `channel` that is in the image.
template <typename Body>
void WithRowOfWindow(const ImageWindows& windows, int64_t channel, int64_t kernel_y,
                     int64_t window_y, int64_t window_x, const Body& body) {
  const int64_t y = windows.y.FirstOf(window_y) + kernel_y;
  if (y < 0 || y >= windows.y.size) return;
  const int64_t left = windows.x.FirstOf(window_x);
  const int64_t first = std::clamp<int64_t>(-left, 0, windows.x.kernel);
  const int64_t last = std::clamp<int64_t>(windows.x.size - left, first, windows.x.kernel);
  if (first == last) return;
  body((channel * windows.y.kernel + kernel_y) * windows.x.kernel + first,
       (channel * windows.y.size + y) * windows.x.size + left + first, last - first);
}

// Writes row `row` of Out.
template <typename T>
void CopyWindow(const ImageWindows& windows, const T* x, int64_t row, T* to) {
  const int64_t image = row / windows.per_image();
  const int64_t window_y = row % windows.per_image() / windows.x.windows;
  const int64_t window_x = row % windows.x.windows;
  const T* from = x + image * windows.channels * windows.y.size * windows.x.size;
  std::fill_n(to, windows.width(), T{0});
  for (int64_t channel = 0; channel < windows.channels; ++channel) {
    for (int64_t kernel_y = 0; kernel_y < windows.y.kernel; ++kernel_y) {
      WithRowOfWindow(windows, channel, kernel_y, window_y, window_x,
                      [=](int64_t in_window, int64_t in_image, int64_t length) {
                        std::copy_n(from + in_image, length, to + in_window);
                      });
    }
  }
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([windows = ImageWindowsOf(context), x = In<T>(context, "X"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    ParallelFor(out.shape(run)[0], SequenceGrain(1, windows.width()),
                [&, from = x(run), to = out(run)](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row)
                    CopyWindow(windows, from, row, to + row * windows.width());
                });
  });
}

// Adds to channel `channel` of an image its gradient, given that of the image's windows.
template <typename T>
void AddWindows(const ImageWindows& windows, const T* gradient, int64_t channel, T* image) {
  for (int64_t window_y = 0; window_y < windows.y.windows; ++window_y) {
    for (int64_t window_x = 0; window_x < windows.x.windows; ++window_x) {
      const T* from = gradient + (window_y * windows.x.windows + window_x) * windows.width();
      for (int64_t kernel_y = 0; kernel_y < windows.y.kernel; ++kernel_y) {
        WithRowOfWindow(windows, channel, kernel_y, window_y, window_x,
                        [=](int64_t in_window, int64_t in_image, int64_t length) {
                          for (int64_t i = 0; i < length; ++i)
                            image[in_image + i] += from[in_window + i];
                        });
      }
    }
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([windows = ImageWindowsOf(context), out_grad = In<T>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    const T* from = out_grad(run);
    T* to = x_grad(run);
    const int64_t plane = windows.y.size * windows.x.size;
    const int64_t planes = x_grad.shape(run)[0] * windows.channels;
    const int64_t terms = windows.per_image() * windows.y.kernel * windows.x.kernel;
    ParallelFor(planes, SequenceGrain(1, terms), [&](int64_t begin, int64_t end) {
      std::fill(to + begin * plane, to + end * plane, T{0});
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / windows.channels;
        AddWindows(windows, from + image * windows.per_image() * windows.width(),
                   i % windows.channels, to + image * windows.channels * plane);
      }
    });
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "kernels",
           .type = AttrType::kInts,
           .default_value = std::nullopt,
           .doc = "The height and width of a window."},
          {.name = "strides",
           .type = AttrType::kInts,
           .default_value = std::vector<int32_t>{1, 1},
           .doc = "The rows and columns from one window to the next."},
          {.name = "paddings",
           .type = AttrType::kInts,
           .default_value = std::vector<int32_t>{0, 0, 0, 0},
           .doc = "The zeros above, left of, below and right of an image."}};
}

}  // namespace

void RegisterIm2sequence(OpRegistry& registry) {
  OpDef def;
  def.type = "im2sequence";
  def.doc = "The windows of each image, from left to right and top to bottom, as a sequence.";
  def.inputs = {{.name = "X", .doc = "[images, channels, height, width]."}};
  def.outputs = {
      {.name = "Out", .doc = "[windows, channels · window], ragged: a sequence for each image."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "The sum of each element's gradients in windows.";
  grad.infer = InferGrad;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "im2sequence", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "im2sequence_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
