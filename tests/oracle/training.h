// A training that another framework repeats, step by step.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/io/npz.h"
#include "framework/ir/program.h"

namespace skiff::oracle {

struct Training {
  std::string name;
  DType dtype = DType::kFloat32;
  std::unique_ptr<Program> main = std::make_unique<Program>();
  std::unique_ptr<Program> startup = std::make_unique<Program>();
  std::string loss;
  std::vector<std::string> metrics;  // other variables of one element to compare in each step
  std::vector<std::pair<std::string, std::string>> gradients;  // parameter, gradient
  // Gradients that are zero except for rounding, and results of ops that depend on such gradients
  // alone.
  std::set<std::string> rounding = {};
  TensorMap feeds = {};
};

}  // namespace skiff::oracle
