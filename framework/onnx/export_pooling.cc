// Poolings of images and volumes.
#include <algorithm>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/image_exports.h"

namespace skiff::onnx_export {
namespace {

struct PoolingWindows {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  Borders borders;
  bool exclusive = true;
};

// If the output's extents divide the input's, all adaptive windows have one size.
PoolingWindows AdaptiveWindows(const std::vector<int64_t>& extents,
                               const std::vector<int64_t>& outputs) {
  const std::vector<int64_t> none(extents.size(), 0);
  PoolingWindows windows{.kernel = {}, .strides = {}, .borders = {none, none}};
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] <= 0 || extents[i] % outputs[i] != 0) {
      Refuse("adaptive windows of several or unknown sizes");
    }
    windows.kernel.push_back(extents[i] / outputs[i]);
  }
  windows.strides = windows.kernel;
  return windows;
}

// Rounds the number of windows up by a larger border behind, which makes the same windows in every
// runtime: these disagree about ceil_mode.
void RoundUp(const std::vector<int64_t>& extents, PoolingWindows* windows) {
  Borders& borders = windows->borders;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] < 0) Refuse("ceil_mode = true, and the size of the images is unknown");
    const int64_t room = extents[i] + borders.before[i] + borders.after[i] - windows->kernel[i];
    const int64_t missing =
        (windows->strides[i] - room % windows->strides[i]) % windows->strides[i];
    borders.after[i] += missing;
  }
}

// Refuses windows of averages that ONNX divides by another number: beyond the image and the border
// before it, a window has no pixels to count here. Refuses windows without a pixel, too.
void CheckWindows(const std::vector<int64_t>& extents, const PoolingWindows& windows, bool is_max) {
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t before = windows.borders.before[i];
    const int64_t after = windows.borders.after[i];
    const int64_t kernel = windows.kernel[i];
    if (before >= kernel) Refuse("windows that have no pixel of the image");
    if (extents[i] < 0) {
      // The last window may reach as far as the border goes.
      if (after >= kernel) Refuse("windows that may have no pixel of the image");
      if (!is_max && !windows.exclusive && after > before) Refuse("uneven borders that count");
      continue;
    }
    const int64_t stride = windows.strides[i];
    const int64_t count = (extents[i] + before + after - kernel) / stride + 1;
    const int64_t last = (count - 1) * stride - before;
    if (last >= extents[i]) Refuse("windows that have no pixel of the image");
    if (!is_max && !windows.exclusive && last + kernel > extents[i] + before) {
      Refuse("averages over borders of which not all pixels count");
    }
  }
}

// A border of a window's size or more, which runtimes refuse, is never needed: windows that have a
// pixel end before it.
void ShrinkBorders(const std::vector<int64_t>& extents, PoolingWindows* windows) {
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] < 0) continue;
    const int64_t before = windows->borders.before[i];
    int64_t& after = windows->borders.after[i];
    const int64_t room = extents[i] + before + after - windows->kernel[i];
    after -= room % windows->strides[i];
    if (after < 0) after = 0;
  }
}

PoolingWindows WindowsOf(OpExport& op, const std::vector<int64_t>& extents, bool is_max) {
  const std::vector<int64_t> sizes = op.Ints("ksize");
  const std::vector<int64_t> strides = op.Ints("strides");
  const bool exclusive = op.Bool("exclusive");
  const bool rounds_up = op.Bool("ceil_mode");
  if (op.Bool("adaptive")) {
    op.Ignore("paddings");
    op.Ignore("padding_algorithm");
    return AdaptiveWindows(extents, sizes);
  }
  PoolingWindows windows{.kernel = sizes,
                         .strides = strides,
                         .borders = BordersOf(op, extents, sizes, strides),
                         .exclusive = exclusive};
  if (rounds_up) RoundUp(extents, &windows);
  CheckWindows(extents, windows, is_max);
  ShrinkBorders(extents, &windows);
  return windows;
}

void Pool(OpExport& op) {
  const Shape& shape = op.ShapeOf("X");
  const bool is_max = op.Text("pooling_type") == "max";
  const bool is_last = ChannelsAreLast(op.Text("data_format"));
  std::string x = op.In("X");
  if (is_last) x = Transposed(op, x, ChannelsFirst(shape.rank()));
  const std::vector<int64_t> sizes = op.Ints("ksize");
  const bool is_one_window =
      op.Bool("adaptive") && std::ranges::count(sizes, 1) == static_cast<int64_t>(sizes.size());
  std::string y;
  if (op.Bool("global_pooling") || is_one_window) {
    for (const char* name :
         {"strides", "paddings", "padding_algorithm", "ceil_mode", "exclusive"}) {
      op.Ignore(name);
    }
    y = op.Node(is_max ? "GlobalMaxPool" : "GlobalAveragePool", {x});
  } else {
    const PoolingWindows windows = WindowsOf(op, ExtentsOf(shape, is_last), is_max);
    NodeAttrs attrs = {{"kernel_shape", windows.kernel},
                       {"strides", windows.strides},
                       {"pads", windows.borders.Pads()}};
    if (!is_max) attrs.push_back({"count_include_pad", int64_t{windows.exclusive ? 0 : 1}});
    y = op.Node(is_max ? "MaxPool" : "AveragePool", {x}, attrs);
  }
  op.Set("Out", is_last ? Transposed(op, y, ChannelsLast(shape.rank())) : y);
}

// The windows of max_pool2d_with_index.
PoolingWindows IndexedWindowsOf(OpExport& op, const std::vector<int64_t>& extents) {
  const std::vector<int64_t> sizes = op.Ints("ksize");
  const bool is_global = op.Bool("global_pooling");
  const bool is_adaptive = op.Bool("adaptive");
  if (is_global || is_adaptive) {
    for (const char* name : {"strides", "paddings"}) op.Ignore(name);
    return AdaptiveWindows(extents, is_global ? std::vector<int64_t>{1, 1} : sizes);
  }
  PoolingWindows windows{
      .kernel = sizes, .strides = op.Ints("strides"), .borders = PaddingsOf(op, sizes.size())};
  CheckWindows(extents, windows, /*is_max=*/true);
  ShrinkBorders(extents, &windows);
  return windows;
}

// ONNX numbers the elements of the whole tensor, Skiff the pixels of a channel.
void MaxPoolWithIndex(OpExport& op) {
  const std::vector<int64_t> extents = ExtentsOf(op.ShapeOf("X"), /*channels_last=*/false);
  if (extents[0] <= 0 || extents[1] <= 0) Refuse("the size of the images is unknown");
  const PoolingWindows windows = IndexedWindowsOf(op, extents);
  const std::vector<std::string> pooled = op.Nodes("MaxPool", {op.In("X")},
                                                   {{"kernel_shape", windows.kernel},
                                                    {"strides", windows.strides},
                                                    {"pads", windows.borders.Pads()}},
                                                   2);
  op.Set("Out", pooled[0]);
  const std::string pixels = op.Number(DType::kInt64, static_cast<double>(extents[0] * extents[1]));
  op.Set("Mask", op.Cast(op.Node("Mod", {pooled[1], pixels}), DType::kInt32));
}

// Puts the elements of each channel into zeros. MaxUnpool would number those of the whole tensor.
void Unpool(OpExport& op) {
  for (const char* name : {"ksize", "strides", "paddings", "output_size", "unpooling_type"}) {
    op.Ignore(name);
  }
  const Shape& out = op.OutShape("Out");
  if (out[2] < 0 || out[3] < 0) Refuse("the size of the images is unknown");
  const std::string x = op.In("X");
  const std::string planes = DimsOf(op, x, 0, 2);
  // A reshape can't infer the pixels of no planes.
  const std::string pixels = op.Node("Mul", {DimsOf(op, x, 2, 3), DimsOf(op, x, 3, 4)});
  const std::string flat_dims = Joined(op, {planes, pixels});
  const auto flat = [&](const std::string& value) {
    return op.Node("Reshape", {value, flat_dims});
  };
  const std::string zero = op.Cast(op.Number(DType::kFloat32, 0), op.DTypeOf("X"));
  const std::string zeros =
      op.Node("Expand", {zero, Joined(op, {planes, op.IntVector({out[2] * out[3]})})});
  const std::string put =
      op.Node("ScatterElements", {zeros, flat(op.In("Indices")), flat(x)}, {{"axis", int64_t{2}}});
  op.Set("Out", op.Node("Reshape", {put, Joined(op, {planes, op.IntVector({out[2], out[3]})})}));
}

}  // namespace

void AddPoolingExporters(ExporterTable* table) {
  table->Add("max_pool2d_with_index", MaxPoolWithIndex);
  table->Add("unpool", Unpool);
  table->Add("pool2d", Pool);
  table->Add("pool3d", Pool);
}

}  // namespace skiff::onnx_export
