#include "framework/op/shape_warning.h"

#include <utility>

namespace skiff {
namespace {

thread_local ShapeWarnings* collector = nullptr;

}  // namespace

ShapeWarnings::ShapeWarnings() : outer_(std::exchange(collector, this)) {}
ShapeWarnings::~ShapeWarnings() { collector = outer_; }

void WarnOfShape(std::string text) {
  if (collector != nullptr) collector->texts_.push_back(std::move(text));
}

}  // namespace skiff
