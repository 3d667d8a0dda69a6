// The warnings while a test runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/builder/warning.h"

namespace skiff {

// Keeps the warnings of its lifetime.
class Warnings {
 public:
  Warnings()
      : previous_(SetWarningSink([this](const std::string& text) { texts.push_back(text); })) {}
  ~Warnings() { SetWarningSink(std::move(previous_)); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  std::vector<std::string> texts;

 private:
  WarningSink previous_;
};

}  // namespace skiff
