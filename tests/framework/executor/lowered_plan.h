// A lowered program of tiny ops, for tests of plans and of reports on them.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "framework/executor/lowering/lowering.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff::tiny {

// Values: x 0, a 1, b 2, w 3 and, updated, 4, y 5, idle 6.
class LoweredPlanTest : public ::testing::Test {
 protected:
  LoweredPlanTest() {
    RegisterTinyOps(registry_);
    program_ = ParseProgramText(R"(program { block 0 {
      var x float32 [2]
      var a float32 [2]
      var b float32 [2]
      var y float32 [2]
      var idle float32 [2]
      param w float32 [2] persistable
      {Out: [a]} = tiny_scale(X: [x]) {factor = 2.0}
      {Out: [b]} = tiny_copy(X: [a])
      {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [b])
      {Out: [y]} = tiny_add(X: [b], Y: [b])
      {Out: [idle]} = tiny_add(X: [y], Y: [b])
    } })");
    scope_.Set("w", Tensor::FromValues<float>({2}, {1, 2}));
    const TensorMeta fed{.shape = {2}};
    plan_ = LowerProgram({.registry = registry_, .scope = scope_, .place = Place::Cpu()}, *program_,
                         {{"x", fed}}, {"y", "a"});
  }

  OpRegistry registry_;
  std::unique_ptr<Program> program_;
  Scope scope_;
  Plan plan_;
};

}  // namespace skiff::tiny
