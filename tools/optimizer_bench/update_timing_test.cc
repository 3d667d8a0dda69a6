#include "tools/optimizer_bench/update_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/tensor/tensor.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;

constexpr UpdateWork kAdam{.optimizer = "adam", .tensors = 3, .elements = 5};

std::vector<std::string> OpTypes(const Program& program) {
  std::vector<std::string> types;
  for (const auto& op : program.root()->ops()) types.push_back(op->type);
  return types;
}

TEST(UpdateProgram, HasTheOpsOfTheOptimizerAlone) {
  for (const std::string& optimizer : OptimizerNames()) {
    const auto program = MakeUpdateProgram({.optimizer = optimizer, .tensors = 3, .elements = 5});
    const std::vector<std::string> types = OpTypes(program->main);
    EXPECT_EQ(std::ranges::count(types, optimizer), 3) << optimizer;
    for (const auto& op : program->main.root()->ops()) {
      EXPECT_EQ(op->role(), kRoleOptimize) << optimizer << ": " << op->type;
    }
  }
  EXPECT_THAT(OpTypes(MakeUpdateProgram(kAdam)->main), ElementsAre("adam", "adam", "adam"));
}

TEST(UpdateProgram, ClipsAndDecaysByOps) {
  UpdateWork work = kAdam;
  work.clip_global_norm = true;
  work.l2_decay = true;
  const std::vector<std::string> types = OpTypes(MakeUpdateProgram(work)->main);
  EXPECT_EQ(std::ranges::count(types, "squared_l2_norm"), 3);
  EXPECT_EQ(std::ranges::count(types, "elementwise_mul"), 3);
  // Three decays, and the part of the norm that float32 holds.
  EXPECT_EQ(std::ranges::count(types, "scale"), 4);
}

// Nobody has to make them, and in flat storage they are as flat as all else.
TEST(UpdateProgram, HasItsGradientsInTheScope) {
  const auto program = MakeUpdateProgram(kAdam);
  Executor executor(Place::Cpu());
  Initialize(*program, &executor);
  ASSERT_EQ(program->gradients.size(), 3u);
  for (const std::string& name : program->gradients) {
    EXPECT_THAT(executor.scope().Get(name).values<float>(), Each(Gt(0.0f))) << name;
  }
  executor.Compile(program->main, {.passes = {.also = {"flatten_parameters"}}}).Bind({}, {}).Step();
  const Tensor& first = executor.scope().Get(program->gradients.front());
  EXPECT_EQ(executor.scope().Get(program->gradients.back()).buffer(), first.buffer());
}

TEST(UpdateProgram, CountsWhatFormulasMove) {
  const auto bytes = [](const std::string& optimizer, bool clips) {
    return BytesPerElement(SweepsOf({.optimizer = optimizer, .clip_global_norm = clips}));
  };
  EXPECT_EQ(bytes("sgd", false), 12);
  EXPECT_EQ(bytes("momentum", false), 20);
  EXPECT_EQ(bytes("adam", false), 28);
  EXPECT_EQ(bytes("adam", true), 32);
  EXPECT_EQ(bytes("lars_momentum", false), 28);
  EXPECT_EQ(bytes("lamb", false), 40);
}

TEST(TimeUpdates, TimesEachFormBesideTheStream) {
  const UpdateTiming timing =
      TimeUpdates(kAdam, FormNames(), {.in_turn = {.seconds = 0, .turns = 2}});
  EXPECT_EQ(timing.bytes, 3 * 5 * 28);
  EXPECT_GT(timing.stream_seconds, 0);
  ASSERT_EQ(timing.forms.size(), 3u);
  for (const FormTiming& form : timing.forms) {
    EXPECT_GT(form.step_seconds, 0) << form.form;
    EXPECT_GT(form.fastest_seconds, 0) << form.form;
    EXPECT_GT(form.compile_seconds, 0) << form.form;
    EXPECT_GT(form.stream_share, 0) << form.form;
    EXPECT_EQ(form.launches, form.form == "loop" ? 3 : 1) << form.form;
    ASSERT_TRUE(form.loop_over_it.has_value()) << form.form;
  }
  EXPECT_EQ(timing.forms.front().loop_over_it, 1.0);
}

TEST(TimeUpdates, TimesEveryOptimizerWithClippingAndDecay) {
  for (const std::string& optimizer : OptimizerNames()) {
    const UpdateWork work{.optimizer = optimizer,
                          .tensors = 20,
                          .elements = 7,
                          .clip_global_norm = true,
                          .l2_decay = true};
    const UpdateTiming timing =
        TimeUpdates(work, {"loop", "flat"}, {.in_turn = {.seconds = 0, .turns = 1}});
    EXPECT_LT(timing.forms[1].launches, timing.forms[0].launches) << optimizer;
  }
}

TEST(TimeUpdates, AveragesInAnInstructionOfItsOwn) {
  UpdateWork work = kAdam;
  work.averages = true;
  const UpdateTiming timing =
      TimeUpdates(work, {"loop", "merged", "flat"}, {.in_turn = {.seconds = 0, .turns = 1}});
  EXPECT_EQ(timing.bytes, 3 * 5 * 36);
  std::vector<int64_t> launches;
  for (const FormTiming& form : timing.forms) launches.push_back(form.launches);
  EXPECT_THAT(launches, ElementsAre(4, 2, 2));
}

TEST(TimeUpdates, ComparesWithNoLoopThatIsNotTimed) {
  const UpdateTiming timing = TimeUpdates(kAdam, {"flat"}, {.in_turn = {.seconds = 0, .turns = 1}});
  EXPECT_FALSE(timing.forms.front().loop_over_it.has_value());
}

TEST(TimeUpdates, RefusesWhatItDoesNotKnow) {
  UpdateWork work = kAdam;
  EXPECT_THROW(TimeUpdates(work, {"round"}), Error);
  work.optimizer = "hope";
  EXPECT_THROW(TimeUpdates(work, {"loop"}), Error);
}

}  // namespace
}  // namespace skiff
