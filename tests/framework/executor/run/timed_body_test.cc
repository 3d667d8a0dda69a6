// A step that is timed has the time of each op, of those in the bodies of loops, too.
#include "framework/executor/run/timed_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Ge;

// Runs `count` times what `body` does with a number.
Variable Repeat(int64_t count, const std::function<Variable(const Variable&)>& body) {
  const Variable end = layers::FillConstant({1}, DType::kInt64, static_cast<double>(count));
  return layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], end); },
                           [&](const Variables& v) {
                             return Variables{layers::Increment(layers::Assign(v[0])), body(v[1])};
                           },
                           {layers::FillConstant({1}, DType::kInt64, 0),
                            layers::FillConstant({1}, DType::kFloat32, 1)})[1];
}

struct Timed {
  std::vector<std::string> types;
  std::vector<double> seconds;
  size_t instructions;  // of the plan
};

Timed TimeStep(const std::function<Variable()>& build) {
  Program main, startup;
  Variable out;
  {
    const ProgramGuard guard(&main, &startup);
    out = build();
  }
  Executor executor;
  CompiledProgram compiled = executor.Compile(main);
  BoundProgram bound = compiled.Bind({}, {out});
  bound.Step();
  Timed timed{.instructions = bound.plan().instructions.size()};
  for (const InstructionTime& time : bound.TimedStep()) {
    timed.types.push_back(time.type);
    timed.seconds.push_back(time.seconds);
  }
  return timed;
}

TEST(TimedBody, HasTheOpsOfALoopBehindThoseOfThePlan) {
  const Timed timed =
      TimeStep([] { return Repeat(3, [](const Variable& x) { return layers::Exp(x); }); });
  ASSERT_GT(timed.types.size(), timed.instructions);
  for (size_t i = 0; i < timed.types.size(); ++i)
    EXPECT_EQ(timed.types[i].starts_with("while > "), i >= timed.instructions) << timed.types[i];
  EXPECT_THAT(timed.types, Contains("while"));
  EXPECT_THAT(timed.types, Contains("while > exp").Times(1));
  EXPECT_THAT(timed.seconds, Each(Ge(0.0)));
}

TEST(TimedBody, HasTheOpsOfALoopInALoop) {
  const Timed timed = TimeStep([] {
    return Repeat(2, [](const Variable& x) {
      return x + Repeat(2, [](const Variable& y) { return layers::Tanh(y); });
    });
  });
  EXPECT_THAT(timed.types, Contains("while > while"));
  EXPECT_THAT(timed.types, Contains("while > while > tanh"));
  EXPECT_THAT(timed.seconds, Each(Ge(0.0)));
}

}  // namespace
}  // namespace skiff
