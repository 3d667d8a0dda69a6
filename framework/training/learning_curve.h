// Curves as a picture: an SVG file that needs nothing else and that every browser shows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/training/training_log.h"

namespace skiff::training {

struct CurvePoint {
  double x = 0;
  double y = 0;  // a point with a y that isn't finite is left out
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // x ascending
};

struct CurvePanel {
  std::string title;
  std::string x_label;
  std::vector<Curve> curves;
};

// The panels side by side under a title, each with axes, grid and legend. Text is escaped; control
// characters, which XML can't hold, become spaces.
std::string RenderCurves(std::string_view title, const std::vector<CurvePanel>& panels);

// Draws a panel for each metric: its values by epoch in training, in validation and, if there are
// any, in validation with averaged parameters.
std::string RenderLearningCurve(std::string_view title, const std::vector<TrainingRecord>& records);

}  // namespace skiff::training
