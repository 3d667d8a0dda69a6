#include "tools/skiff/memory_timeline.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "framework/base/error.h"
#include "framework/training/svg.h"

namespace skiff {
namespace {

constexpr double kWidth = 1200;
constexpr double kHeight = 640;
// The margins around the plot.
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 44;
constexpr double kBottom = 50;
constexpr double kMegabyte = 1 << 20;
constexpr const char* kColors[] = {"#8dd3c7", "#ffd92f", "#bebada", "#fb8072", "#80b1d3",
                                   "#fdb462", "#b3de69", "#fccde5", "#bc80bd", "#ccebc5"};
constexpr const char* kWorkspaceColor = "#999999";

// Writes boxes, one per value or workspace, over axes of instructions and bytes. Text of a box is
// an SVG title, which browsers show under the mouse, so the picture needs no script.
class TimelineWriter {
 public:
  explicit TimelineWriter(const MemoryReport& report) : report_(report) {
    // At least 1, since X and Y divide by them: a program may have no instruction or no block.
    instants_ = std::max<double>(1, static_cast<double>(report.live_bytes.size()));
    bytes_ = std::max<double>(
        1, static_cast<double>(std::max(report.planned_bytes, report.max_live_bytes)));
  }

  std::string Write(std::string_view title) {
    out_ = StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", SvgNumber(kWidth),
                  " ", SvgNumber(kHeight),
                  "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" "
                  "height=\"100%\" fill=\"white\"/>\n<style>rect.b:hover{stroke:black;"
                  "stroke-width:2}</style>\n");
    Text(kLeft, 24, "start", title);
    WriteGrid();
    for (size_t i = 0; i < report_.blocks.size(); ++i) WriteBlock(i);
    WriteLiveBytes();
    return out_ + "</svg>\n";
  }

 private:
  double X(double instant) const { return kLeft + instant / instants_ * (kWidth - kLeft - kRight); }
  double Y(double bytes) const {
    return kHeight - kBottom - bytes / bytes_ * (kHeight - kTop - kBottom);
  }

  void Text(double x, double y, const char* anchor, std::string_view text) {
    out_ += StrCat("<text x=\"", SvgNumber(x), "\" y=\"", SvgNumber(y), "\" text-anchor=\"", anchor,
                   "\">", SvgText(text), "</text>\n");
  }

  void WriteGrid() {
    constexpr int kLines = 5;
    for (int i = 0; i <= kLines; ++i) {
      const double bytes = bytes_ * i / kLines;
      out_ += StrCat("<line x1=\"", SvgNumber(X(0)), "\" y1=\"", SvgNumber(Y(bytes)), "\" x2=\"",
                     SvgNumber(X(instants_)), "\" y2=\"", SvgNumber(Y(bytes)),
                     "\" stroke=\"#ddd\"/>\n");
      Text(X(0) - 6, Y(bytes) + 4, "end", SvgNumber(std::round(bytes / kMegabyte * 10) / 10));
      const double instant = instants_ * i / kLines;
      Text(X(instant), Y(0) + 18, "middle", StrCat(static_cast<int64_t>(instant)));
    }
    Text(X(instants_ / 2), Y(0) + 38, "middle", "instruction");
    Text(X(0) - 6, kTop - 10, "end", "MiB");
  }

  void WriteBlock(size_t index) {
    const PlannedBuffer& block = report_.blocks[index];
    if (block.bytes == 0 || block.offset < 0) return;
    // A value lives to the end of its last instruction.
    const double last = std::min<double>(static_cast<double>(block.last) + 1, instants_);
    const double top = Y(static_cast<double>(block.offset + block.bytes));
    // Neighbours in the list differ in color; workspaces, which have no variable, are grey.
    const char* color =
        block.variable.empty() ? kWorkspaceColor : kColors[index % std::size(kColors)];
    out_ += StrCat(
        "<rect class=\"b\" x=\"", SvgNumber(X(block.first)), "\" y=\"", SvgNumber(top),
        "\" width=\"", SvgNumber(X(last) - X(block.first)), "\" height=\"",
        SvgNumber(Y(static_cast<double>(block.offset)) - top), "\" fill=\"", color, "\"><title>",
        SvgText(StrCat(DescribeBlock(block), ", instructions ", block.first, " to ", block.last)),
        "</title></rect>\n");
  }

  // A staircase, since live bytes change only between instructions.
  void WriteLiveBytes() {
    std::string path;
    for (size_t i = 0; i < report_.live_bytes.size(); ++i) {
      const std::string y = SvgNumber(Y(static_cast<double>(report_.live_bytes[i])));
      path += StrCat(path.empty() ? "M" : " L", SvgNumber(X(static_cast<double>(i))), " ", y, " L",
                     SvgNumber(X(static_cast<double>(i) + 1)), " ", y);
    }
    if (path.empty()) return;
    out_ += StrCat("<path d=\"", path,
                   "\" fill=\"none\" stroke=\"black\" stroke-width=\"1.5\" "
                   "pointer-events=\"none\"/>\n");
  }

  const MemoryReport& report_;
  double instants_ = 1;
  double bytes_ = 1;
  std::string out_;
};

}  // namespace

std::string RenderMemoryTimeline(std::string_view title, const MemoryReport& report) {
  return TimelineWriter(report).Write(title);
}

}  // namespace skiff
