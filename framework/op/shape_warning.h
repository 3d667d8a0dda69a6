// Warnings of shape rules: of an op that runs, but probably does something else than was meant.
#pragma once

#include <string>
#include <vector>

namespace skiff {

// Collects the warnings of the shape rules that this thread runs while the object exists, except
// warnings that a later object collects in the meantime.
class ShapeWarnings {
 public:
  ShapeWarnings();
  ~ShapeWarnings();
  ShapeWarnings(const ShapeWarnings&) = delete;
  ShapeWarnings& operator=(const ShapeWarnings&) = delete;

  const std::vector<std::string>& texts() const { return texts_; }

 private:
  friend void WarnOfShape(std::string text);

  ShapeWarnings* outer_;
  std::vector<std::string> texts_;
};

// For shape rules: adds a warning, unless nobody collects them, as when a program runs.
void WarnOfShape(std::string text);

}  // namespace skiff
