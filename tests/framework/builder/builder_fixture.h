// A test with a program under construction, and the results of layers in the program.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/builder/program_guard.h"
#include "framework/ir/program.h"

namespace skiff {

// Layers that a test calls append to `main_` and `startup_`.
class BuilderTest : public ::testing::Test {
 protected:
  // The parameters of `main_`, in the order of their creation.
  std::vector<std::string> ParameterNames() const {
    std::vector<std::string> names;
    for (const auto& var : main_.root()->vars()) {
      if (var->is_parameter) names.push_back(var->name);
    }
    return names;
  }
  // The types of the ops of `main_`, in order.
  std::vector<std::string> OpTypes() const {
    std::vector<std::string> types;
    for (const auto& op : main_.root()->ops()) types.push_back(op->type);
    return types;
  }
  const Op& LastOp() const { return *main_.root()->ops().back(); }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
};

}  // namespace skiff
