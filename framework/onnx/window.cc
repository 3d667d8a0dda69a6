#include "framework/onnx/window.h"

#include <algorithm>
#include <utility>

#include "framework/builder/tensor_layers.h"

namespace skiff {

using Ints = std::vector<int64_t>;

OnnxWindow WindowOf(const OnnxNode& node, const Variable& x, Ints kernel) {
  OnnxWindow w;
  const int64_t axes = static_cast<int64_t>(x.dims().size()) - 2;
  if (axes < 1 || axes > 3) node.Unsupported("works on ", axes, " axes, expected 1 to 3");
  w.axes = static_cast<size_t>(axes);
  w.kernel = std::move(kernel);
  w.strides = node.IntList("strides", Ints(w.axes, 1));
  w.dilations = node.IntList("dilations", Ints(w.axes, 1));
  const Ints pads = node.IntList("pads", Ints(2 * w.axes, 0));
  if (w.kernel.size() != w.axes || w.strides.size() != w.axes || w.dilations.size() != w.axes ||
      pads.size() != 2 * w.axes) {
    node.Invalid("kernel, strides, dilations or pads don't have numbers for ", w.axes, " axes");
  }
  for (size_t i = 0; i < w.axes; ++i) {
    if (w.kernel[i] < 1 || w.strides[i] < 1 || w.dilations[i] < 1) {
      node.Invalid("kernel, strides or dilations aren't positive");
    }
    for (const int64_t number : {w.kernel[i], w.strides[i], w.dilations[i], pads[i],
                                 pads[i + static_cast<size_t>(axes)]}) {
      if (number > kMostOfWindow) node.Unsupported("a number of its window is ", number);
    }
  }
  w.before.assign(pads.begin(), pads.begin() + axes);
  w.after.assign(pads.begin() + axes, pads.end());
  if (std::ranges::any_of(pads, [](int64_t pad) { return pad < 0; })) {
    node.Unsupported("has negative pads");
  }
  return w;
}

void ApplyAutoPad(const OnnxNode& node, const Variable& x, OnnxWindow* w) {
  const std::string mode = node.String("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) return;
  w->before.assign(w->axes, 0);
  w->after.assign(w->axes, 0);
  if (mode == "VALID") return;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") node.Unsupported("auto_pad = \"", mode, "\"");
  for (size_t i = 0; i < w->axes; ++i) {
    const bool is_known = x.dims()[i + 2] >= 0;
    if (!is_known && w->strides[i] != 1) {
      node.Unsupported("auto_pad where an extent is known only in a run, and a stride");
    }
    // With a stride of 1, every extent needs the same pads.
    const int64_t extent = is_known ? x.dims()[i + 2] : 1;
    const int64_t out = (extent + w->strides[i] - 1) / w->strides[i];
    const int64_t reach = (w->kernel[i] - 1) * w->dilations[i] + 1;
    const int64_t pad = std::max<int64_t>((out - 1) * w->strides[i] + reach - extent, 0);
    w->before[i] = mode == "SAME_UPPER" ? pad / 2 : pad - pad / 2;
    w->after[i] = pad - w->before[i];
  }
}

void MakeTwoAxes(OnnxWindow* w) {
  if (w->axes != 1) return;
  for (Ints* numbers : {&w->kernel, &w->strides, &w->dilations})
    numbers->insert(numbers->begin(), 1);
  for (Ints* numbers : {&w->before, &w->after}) numbers->insert(numbers->begin(), 0);
}

Ints PaddingsOf(const OnnxWindow& w) {
  Ints paddings;
  for (size_t i = 0; i < w.before.size(); ++i) {
    paddings.push_back(w.before[i]);
    paddings.push_back(w.after[i]);
  }
  return paddings;
}

Variable AsImages(const Variable& x, const OnnxWindow& w) {
  return w.axes == 1 ? layers::Unsqueeze(x, {2}) : x;
}
Variable FromImages(const Variable& y, const OnnxWindow& w) {
  return w.axes == 1 ? layers::Squeeze(y, {2}) : y;
}

Variable PooledBy(const OnnxNode& node, const Variable& x, const OnnxWindow& w,
                  const std::string& type, bool ceil_mode, bool exclusive) {
  Op op(w.axes == 3 ? "pool3d" : "pool2d");
  op.SetInput("X", {AsImages(x, w).name()});
  op.SetAttr("pooling_type", type).SetAttr("ksize", w.kernel).SetAttr("strides", w.strides);
  op.SetAttr("paddings", PaddingsOf(w)).SetAttr("ceil_mode", ceil_mode);
  op.SetAttr("exclusive", exclusive);
  return FromImages(node.Emit(std::move(op)), w);
}

}  // namespace skiff
