// SVG by hand: a picture of a few polylines needs no library, and the file needs no script, font or
// network. Each panel scales its curves to round limits; points that aren't finite (a diverged
// loss, an epoch without a value) are left out, and the curve goes on after them.
#include "framework/training/learning_curve.h"

#include <algorithm>
#include <cmath>

#include "framework/base/error.h"
#include "framework/training/svg.h"

namespace skiff::training {
namespace {

constexpr double kPanelWidth = 460;
constexpr double kPanelHeight = 340;
constexpr double kTitleHeight = 36;
// Of the plot inside its panel.
constexpr double kLeft = 56;
constexpr double kRight = 16;
constexpr double kTop = 28;
constexpr double kBottom = 44;
constexpr const char* kColors[] = {"#1f77b4", "#d95f02", "#2ca02c", "#9467bd", "#8c564b"};

struct Range {
  double low = 0;
  double high = 1;
  double step = 0.2;  // between grid lines
};

// Round limits around [low, high] with about five steps of 1, 2 or 5 times a power of ten.
Range RoundRange(double low, double high) {
  // There is no point at all.
  if (low > high) return {};
  if (low == high) {
    // A part of large numbers, which adding 0.5 wouldn't change.
    const double margin = std::max(0.5, std::abs(low) * 1e-3);
    low -= margin;
    high += margin;
  }
  // The smallest of 1, 2, 5 and 10 times the power that gives at most five steps.
  const double rough = (high - low) / 5;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  return {std::floor(low / step) * step, std::ceil(high / step) * step, step};
}

class PanelWriter {
 public:
  PanelWriter(const CurvePanel& panel, double left) : panel_(panel), left_(left) {
    double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
    for (const Curve& curve : panel.curves) {
      for (const CurvePoint& point : curve.points) {
        if (!std::isfinite(point.y)) continue;
        x_low = std::min(x_low, point.x);
        x_high = std::max(x_high, point.x);
        y_low = std::min(y_low, point.y);
        y_high = std::max(y_high, point.y);
      }
    }
    x_ = RoundRange(x_low, x_high);
    y_ = RoundRange(y_low, y_high);
  }

  std::string Write() {
    Text(left_ + kLeft, kTitleHeight + 16, "start", panel_.title, "font-weight=\"bold\"");
    WriteGrid();
    for (size_t i = 0; i < panel_.curves.size(); ++i) WriteCurve(i);
    return std::move(out_);
  }

 private:
  double PlaceX(double x) const {
    return left_ + kLeft + (x - x_.low) / (x_.high - x_.low) * (kPanelWidth - kLeft - kRight);
  }
  double PlaceY(double y) const {
    return kTitleHeight + kTop +
           (y_.high - y) / (y_.high - y_.low) * (kPanelHeight - kTop - kBottom);
  }

  void Text(double x, double y, const char* anchor, std::string_view text, const char* more = "") {
    out_ += StrCat("<text x=\"", SvgNumber(x), "\" y=\"", SvgNumber(y), "\" text-anchor=\"", anchor,
                   "\" ", more, ">", SvgText(text), "</text>\n");
  }

  void Line(double x1, double y1, double x2, double y2) {
    out_ += StrCat("<line x1=\"", SvgNumber(x1), "\" y1=\"", SvgNumber(y1), "\" x2=\"",
                   SvgNumber(x2), "\" y2=\"", SvgNumber(y2), "\" stroke=\"#ddd\"/>\n");
  }

  void WriteGrid() {
    // A multiple of the step each time: adding it up would accumulate rounding errors, and the last
    // line could be missing. The tolerance allows for the rounding of one product.
    for (int i = 0; x_.low + i * x_.step <= x_.high + 1e-9 * x_.step; ++i) {
      const double x = x_.low + i * x_.step;
      Line(PlaceX(x), PlaceY(y_.low), PlaceX(x), PlaceY(y_.high));
      Text(PlaceX(x), PlaceY(y_.low) + 16, "middle", SvgNumber(x));
    }
    for (int i = 0; y_.low + i * y_.step <= y_.high + 1e-9 * y_.step; ++i) {
      const double y = y_.low + i * y_.step;
      Line(PlaceX(x_.low), PlaceY(y), PlaceX(x_.high), PlaceY(y));
      Text(PlaceX(x_.low) - 6, PlaceY(y) + 4, "end", SvgNumber(y));
    }
    Text((PlaceX(x_.low) + PlaceX(x_.high)) / 2, PlaceY(y_.low) + 34, "middle", panel_.x_label);
  }

  void WriteCurve(size_t index) {
    const Curve& curve = panel_.curves[index];
    const char* color = kColors[index % std::size(kColors)];
    std::string path;
    std::string dots;
    for (const CurvePoint& point : curve.points) {
      if (!std::isfinite(point.y)) continue;
      const std::string x = SvgNumber(PlaceX(point.x));
      const std::string y = SvgNumber(PlaceY(point.y));
      path += StrCat(path.empty() ? "M" : " L", x, " ", y);
      dots += StrCat("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"2.5\" fill=\"", color, "\"/>\n");
    }
    if (!path.empty()) {
      out_ += StrCat("<path d=\"", path, "\" fill=\"none\" stroke=\"", color,
                     "\" stroke-width=\"2\"/>\n", dots);
    }
    const double x = left_ + kPanelWidth - kRight - 100;
    // The legend grows upwards into the title's line, so that it never covers a curve.
    const double y = kTitleHeight + 16 - 14 * static_cast<double>(panel_.curves.size() - 1 - index);
    out_ += StrCat("<rect x=\"", SvgNumber(x), "\" y=\"", SvgNumber(y - 9),
                   "\" width=\"10\" height=\"10\" fill=\"", color, "\"/>\n");
    Text(x + 14, y, "start", curve.name);
  }

  const CurvePanel& panel_;
  double left_;
  Range x_;
  Range y_;
  std::string out_;
};

}  // namespace

std::string RenderCurves(std::string_view title, const std::vector<CurvePanel>& panels) {
  const double width = std::max<double>(1, static_cast<double>(panels.size())) * kPanelWidth;
  const double height = kTitleHeight + kPanelHeight;
  std::string svg =
      StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", SvgNumber(width), "\" height=\"",
             SvgNumber(height), "\" viewBox=\"0 0 ", SvgNumber(width), " ", SvgNumber(height),
             "\" font-family=\"sans-serif\" font-size=\"12\">\n",
             "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
             "<text x=\"12\" y=\"22\" font-size=\"15\">", SvgText(title), "</text>\n");
  for (size_t i = 0; i < panels.size(); ++i) {
    svg += PanelWriter(panels[i], static_cast<double>(i) * kPanelWidth).Write();
  }
  return svg + "</svg>\n";
}

std::string RenderLearningCurve(std::string_view title,
                                const std::vector<TrainingRecord>& records) {
  std::vector<std::string> metrics;
  if (!records.empty()) {
    // A metric of whole evaluations has no values in training.
    for (const MetricValues& values : {records.front().train, records.front().validation}) {
      for (const auto& [name, value] : values.entries()) {
        if (std::ranges::count(metrics, name) == 0) metrics.push_back(name);
      }
    }
  }
  std::vector<CurvePanel> panels;
  for (const std::string& metric : metrics) {
    const auto curve = [&](const char* name, MetricValues TrainingRecord::*member) {
      Curve result{.name = name, .points = {}};
      for (const TrainingRecord& record : records) {
        const MetricValues& values = record.*member;
        if (!values.contains(metric)) continue;
        result.points.push_back({static_cast<double>(record.epoch), values.at(metric)});
      }
      return result;
    };
    panels.push_back({.title = metric, .x_label = "epoch", .curves = {}});
    for (const Curve& made : {curve("training", &TrainingRecord::train),
                              curve("validation", &TrainingRecord::validation),
                              curve("averaged", &TrainingRecord::averaged)}) {
      // No empty curve in the legend.
      if (!made.points.empty()) panels.back().curves.push_back(made);
    }
  }
  return RenderCurves(title, panels);
}

}  // namespace skiff::training
