// Runs the code of docs/cpp_api.md as it is there. BUILD takes it out of the page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "skiff/skiff.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

#include "tests/docs/network.inc"

// 32 rows of 4 numbers, whose class is the place of the largest of the first three.
void FillRows(int64_t first, Tensor* x, Tensor* label) {
  for (int64_t i = 0; i < 32; ++i) {
    float* row = x->data<float>() + 4 * i;
    int64_t best = 0;
    for (int64_t j = 0; j < 4; ++j) {
      row[j] = static_cast<float>((7 * (first + i) + 5 * j * j) % 11) / 11.0f;
      if (j < 3 && row[j] > row[best]) best = j;
    }
    label->data<int64_t>()[i] = best;
  }
}

TEST(CppApiPage, TrainsSavesAndServes) {
  Tensor x({32, 4}, DType::kFloat32);
  Tensor label({32}, DType::kInt64);
  FillRows(0, &x, &label);

#include "tests/docs/program.inc"
  EXPECT_EQ(scores.dims(), (std::vector<int64_t>{-1, 3}));

#include "tests/docs/loop.inc"
  EXPECT_LT(results[0].Item<float>(), 0.8f);
  EXPECT_EQ(results[1].shape(), Shape({32, 3}));

  float last_loss = 0;
  int64_t batch = 0;
  const auto Fill = [&](Tensor* to_x, Tensor* to_label) { FillRows(++batch, to_x, to_label); };
#include "tests/docs/bind.inc"
  EXPECT_EQ(batch, 10);
  EXPECT_LT(last_loss, 0.8f);

  {
#include "tests/docs/scope.inc"
    EXPECT_EQ(exe.scope().Get("scores.b_0").ToVector<float>(), (std::vector<float>{0, 0, 0}));
  }
#include "tests/docs/second_program.inc"
  EXPECT_EQ(probability.dims(), scores.dims());
#include "tests/docs/second_scope.inc"
  const std::vector<float> probabilities_of_x =
      predict.Run({{"x", x}}, {probability})[0].ToVector<float>();
  EXPECT_EQ(of_copy.Run({{"x", x}}, {probability})[0].ToVector<float>(), probabilities_of_x);

  const TempDirectory temp;
  const std::string directory = temp.path();
#include "tests/docs/save.inc"
  EXPECT_TRUE(HasCheckpoint(directory + "/checkpoints"));
#include "tests/docs/load.inc"
  const std::vector<float> of_the_training =
      evaluate.Run({{"x", x}, {"label", label}}, {scores})[0].ToVector<float>();
  EXPECT_EQ(answer.ToVector<float>(), of_the_training);
  EXPECT_EQ(LoadLatestCheckpoint(directory + "/checkpoints", main, &copy.scope()).step, 100);
#include "tests/docs/serve.inc"
  for (const Tensor& of_thread : answers) EXPECT_EQ(of_thread.ToVector<float>(), of_the_training);

  const std::string path = temp / "weights.safetensors";
  const std::vector<float> hidden_weights = exe.scope().Get("hidden.w_0").ToVector<float>();
  WriteSafetensors(path, {{"hidden.w_0", exe.scope().Get("hidden.w_0")},
                          {"hidden.b_0", exe.scope().Get("hidden.b_0")},
                          {"scores.w_0", exe.scope().Get("scores.w_0")}});
  for (int64_t& of_row : label.values<int64_t>()) of_row = of_row == 0 ? 1 : 0;
  {
#include "tests/docs/fine_tune.inc"
    CompiledProgram tuned_step = tuned.Compile(main);
    const FeedList feeds = {{"x", x}, {"label", label}};
    const float first = tuned_step.Run(feeds, {loss})[0].Item<float>();
    for (int i = 0; i < 50; ++i) tuned_step.Run(feeds, {});
    EXPECT_LT(tuned_step.Run(feeds, {loss})[0].Item<float>(), first);
    EXPECT_EQ(tuned.scope().Get("hidden.w_0").ToVector<float>(), hidden_weights);
  }
}

TEST(CppApiPage, UpdatesByGradientsOfItsOwn) {
#include "tests/docs/gradients.inc"
  Executor exe;
  exe.Run(startup);
  const FeedList feeds = {{"x", Tensor::FromValues<float>({8, 4}, std::vector<float>(32, 1.0f))}};
  const std::vector<float> before = exe.scope().Get(w).ToVector<float>();
  const Tensor gradient = exe.Run(main, feeds, {gradients[0]})[0];
  const std::vector<float> after = exe.scope().Get(w).ToVector<float>();
  for (size_t i = 0; i < before.size(); ++i) {
    const float sign = gradient.values<float>()[i] > 0 ? 1.0f : -1.0f;
    EXPECT_FLOAT_EQ(after[i], before[i] - 0.01f * sign);
  }
}

TEST(CppApiPage, SetsTheLearningRate) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable loss = layers::Mean(layers::Fc(layers::Data("x", {-1, 4}), 1));
#include "tests/docs/rate.inc"
  Executor exe;
  exe.Run(startup);
#include "tests/docs/set_rate.inc"
  EXPECT_FLOAT_EQ(exe.scope().Get(rate).Item<float>(), 0.05f);
}

TEST(CppApiPage, FindsAMistake) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 4});
  const Variable hidden = layers::Log(x);
  testing::internal::CaptureStdout();
#include "tests/docs/debug.inc"
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, testing::HasSubstr("log"));
  Executor exe;
  exe.Run(startup);
#include "tests/docs/passes.inc"
  EXPECT_FALSE(step.reports().empty());
  const auto run = [&](float value) {
    step.Run({{"x", Tensor::FromValues<float>({1, 4}, {1, 1, 1, value})}}, {checked});
  };
  EXPECT_NO_THROW(run(1));
  EXPECT_THAT(ErrorText([&] { run(0); }), testing::HasSubstr("debug.inc:2"));
}

}  // namespace
}  // namespace skiff
