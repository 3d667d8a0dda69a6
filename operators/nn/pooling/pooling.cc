#include "operators/nn/pooling/pooling.h"

#include <algorithm>
#include <string>

#include "framework/base/error.h"
#include "framework/op/shape_warning.h"

namespace skiff {
namespace {

// A table of spans may have this many entries, or one for each pixel of the input.
constexpr int64_t kManyWindows = int64_t{1} << 24;

std::vector<WindowSpan> SpansOf(const OpContext& context, const Pooling& pooling, size_t axis) {
  if (pooling.input.size[axis] < 0 || pooling.output.size[axis] < 0) return {};
  return WindowSpans(context, WindowsAlong(pooling, axis));
}

// If the output's size divides the input's, all adaptive windows have the same size: this is plain
// pooling, which more kernels accept.
void SimplifyAdaptive(Pooling* pooling) {
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t inputs = pooling->input.size[axis];
    if (inputs <= 0 || inputs % pooling->output.size[axis] != 0) return;
  }
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t size = pooling->input.size[axis] / pooling->output.size[axis];
    pooling->window.kernel[axis] = size;
    pooling->window.stride[axis] = size;
  }
  pooling->adaptive = false;
}

Pooling PoolingOfImages(const OpContext& context, ChannelOrder order) {
  Pooling pooling;
  pooling.order = order;
  pooling.input = ImageOf(context, "X", context.Input("X").shape, order);
  pooling.output = {pooling.input.batch, pooling.input.channels, {}};
  return pooling;
}

// Sets the windows if global_pooling or adaptive decides about them. Returns whether one does.
bool SetWholeOrAdaptive(const OpContext& context, Pooling* pooling) {
  if (context.Attr<bool>("global_pooling")) {
    pooling->window.kernel = pooling->input.size;
    pooling->window.stride = {1, 1};
    pooling->output.size = {1, 1};
    return true;
  }
  if (!context.Attr<bool>("adaptive")) return false;
  pooling->adaptive = true;
  pooling->output.size = ParsePair(context, "ksize");
  SimplifyAdaptive(pooling);
  return true;
}

void CountWindows(const OpContext& context, bool round_up, Pooling* pooling) {
  for (int axis = 0; axis < 2; ++axis) {
    const auto i = static_cast<size_t>(axis);
    pooling->output.size[i] =
        WindowCount(context, pooling->window, axis, pooling->input.size[i], round_up);
  }
}

}  // namespace

void WarnOfEmptyWindows(const AxisWindows& windows, std::string_view axis) {
  const auto& [inputs, outputs, adaptive, kernel, stride, padding, is_empty] = windows;
  // An adaptive window has at least a pixel.
  if (adaptive || is_empty || inputs < 0 || outputs <= 0) return;
  const bool is_first = kernel <= padding;
  const bool is_last = (outputs - 1) * stride - padding >= inputs;
  if (!is_first && !is_last) return;
  WarnOfShape(StrCat("of ", outputs, " windows of ", kernel, " along the ", axis, " of ", inputs,
                     ", the ", is_first ? "first" : "last",
                     " one has no pixel, only padding: its maximum is the lowest number (-3.4e38 "
                     "in float32), its average 0",
                     is_first ? "" : "; see ceil_mode"));
}

std::vector<WindowSpan> WindowSpans(const OpContext& context, const AxisWindows& windows) {
  const auto& [inputs, outputs, adaptive, kernel, stride, padding, is_empty] = windows;
  const int64_t most = is_empty ? kManyWindows : std::max(inputs, kManyWindows);
  SKIFF_ENFORCE(outputs <= most, kInvalidArgument, context.op().type, ": ", outputs,
                " windows along an axis of ", inputs, ": expected at most ", most);
  std::vector<WindowSpan> spans;
  spans.reserve(static_cast<size_t>(outputs));
  for (int64_t o = 0; o < outputs; ++o) {
    WindowSpan span;
    if (adaptive) {
      span = {.begin = o * inputs / outputs, .end = ((o + 1) * inputs + outputs - 1) / outputs};
      span.extent = span.end - span.begin;
    } else {
      const int64_t begin = o * stride - padding;
      // As in Fluid, a window ends at the input's size plus the padding before it, not after it,
      // and the pixels beyond don't count for averages that include padding.
      const int64_t end = std::min(begin + kernel, inputs + padding);
      span.extent = std::max<int64_t>(end - begin, 0);
      span.begin = std::max<int64_t>(begin, 0);
      span.end = std::max(std::min(end, inputs), span.begin);
    }
    if (is_empty) span.end = span.begin;
    spans.push_back(span);
  }
  return spans;
}

bool Pooling::has_empty_window() const {
  const auto empty = [](const WindowSpan& span) { return span.begin >= span.end; };
  return std::any_of(rows.begin(), rows.end(), empty) ||
         std::any_of(columns.begin(), columns.end(), empty);
}

Pooling ParsePoolingExtents(const OpContext& context) {
  const std::string& kind = context.Attr<std::string>("pooling_type");
  SKIFF_ENFORCE(kind == "max" || kind == "avg", kInvalidArgument, context.op().type,
                ": pooling_type = \"", kind, "\": expected max or avg");
  Pooling pooling = PoolingOfImages(context, ParseChannelOrder(context, "data_format"));
  pooling.is_max = kind == "max";
  if (SetWholeOrAdaptive(context, &pooling)) return pooling;
  pooling.exclusive = context.Attr<bool>("exclusive");
  pooling.window = ParseWindow(context, ParsePair(context, "ksize"), {1, 1}, pooling.input.size);
  CountWindows(context, context.Attr<bool>("ceil_mode"), &pooling);
  return pooling;
}

Pooling ParseIndexedPooling(const OpContext& context) {
  Pooling pooling = PoolingOfImages(context, ChannelOrder::kFirst);
  pooling.is_max = true;
  if (SetWholeOrAdaptive(context, &pooling)) return pooling;
  pooling.window = ParsePlainWindow(context, ParsePair(context, "ksize"), pooling.input.size);
  CountWindows(context, /*round_up=*/false, &pooling);
  return pooling;
}

Pooling WithSpans(const OpContext& context, Pooling pooling) {
  // Candidates are asked about empty images, too. The tables of these might have any length.
  if (pooling.output.is_empty()) return pooling;
  pooling.rows = SpansOf(context, pooling, 0);
  pooling.columns = SpansOf(context, pooling, 1);
  return pooling;
}

}  // namespace skiff
