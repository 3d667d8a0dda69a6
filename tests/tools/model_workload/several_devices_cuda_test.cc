// Programs on several devices of one process: in one thread and in several, they have the bits that
// they have alone. On emulated devices, whatever is given to the wrong one is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "memory/cuda_device.h"
#include "skiff/skiff.h"
#include "tools/model_workload/model_workload.h"

namespace skiff {
namespace {

using ::testing::Each;

ModelWorkloadOptions OptionsOf(const std::string& model) {
  // Small, since threads of the CPU compute. Images have no length.
  return {.batch_size = model == "ernie_tiny" ? 1 : 2,
          .length = model == "lenet" ? 0 : 32,
          .optimizer = "plain_adam"};
}

// A model with its executor, and the losses of the steps so far.
class Training {
 public:
  Training(const std::string& model, Place place)
      : executor_(std::make_unique<Executor>(place)),
        workload_(MakeModelWorkload(model, OptionsOf(model), executor_.get())),
        compiled_(executor_->Compile(*workload_.program)),
        bound_(compiled_.Bind(workload_.batches[0], {workload_.fetch})) {}

  // The second step captures graphs, and the third launches them.
  void Run() {
    for (int step = 0; step < 3; ++step) Step();
  }
  void Step() {
    bound_.Step();
    losses_.push_back(bound_.fetch(0).Item<float>());
  }
  const std::vector<float>& losses() const { return losses_; }

 private:
  std::unique_ptr<Executor> executor_;
  ModelWorkload workload_;
  CompiledProgram compiled_;
  BoundProgram bound_;
  std::vector<float> losses_;
};

// Returns the losses of a model alone on the first device. Trains each model once.
const std::vector<float>& LossesAlone(const std::string& model) {
  static auto& of_models = *new std::map<std::string, std::vector<float>>;
  std::vector<float>& losses = of_models[model];
  if (losses.empty()) {
    Training alone(model, Place::Cuda(0));
    alone.Run();
    losses = alone.losses();
  }
  return losses;
}

class SeveralDevices : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (CudaDeviceCount() < 2) GTEST_SKIP() << "fewer than two devices";
    expected_ = LossesAlone(GetParam());
    EXPECT_NE(expected_.front(), expected_.back()) << "nothing was trained";
  }

  const std::vector<Place> places_ = {Place::Cuda(0), Place::Cuda(1)};
  std::vector<float> expected_;
};

TEST_P(SeveralDevices, TrainOneAfterTheOther) {
  Training second(GetParam(), places_[1]);
  second.Run();
  EXPECT_EQ(second.losses(), expected_);
}

TEST_P(SeveralDevices, TrainInTurn) {
  Training first(GetParam(), places_[0]);
  Training second(GetParam(), places_[1]);
  for (int step = 0; step < 3; ++step) {
    first.Step();
    second.Step();
  }
  EXPECT_EQ(first.losses(), expected_);
  EXPECT_EQ(second.losses(), expected_);
}

TEST_P(SeveralDevices, TrainInThreads) {
  std::vector<std::vector<float>> losses(places_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < places_.size(); ++i) {
    threads.emplace_back([this, &losses, i] {
      Training training(GetParam(), places_[i]);
      training.Run();
      losses[i] = training.losses();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(losses, Each(expected_));
}

// A thread begins with the first device, whatever the thread that has made the program uses.
TEST_P(SeveralDevices, AProgramRunsInAnotherThread) {
  Training training(GetParam(), places_[1]);
  std::thread([&] { training.Run(); }).join();
  EXPECT_EQ(training.losses(), expected_);
}

// The variables of a scope move to the device of the program that runs.
TEST_P(SeveralDevices, TrainAScopeInTurn) {
  Scope scope;
  std::vector<Executor> executors;
  for (const Place place : places_) executors.emplace_back(place, &scope);
  const ModelWorkload workload =
      MakeModelWorkload(GetParam(), OptionsOf(GetParam()), &executors[0]);
  std::vector<CompiledProgram> programs;
  for (Executor& executor : executors) programs.push_back(executor.Compile(*workload.program));
  std::vector<float> losses;
  for (size_t step = 0; step < 3; ++step) {
    const auto fetched = programs[step % 2].Run(workload.batches[0], {workload.fetch});
    losses.push_back(fetched[0].Item<float>());
  }
  EXPECT_EQ(losses, expected_);
}

INSTANTIATE_TEST_SUITE_P(Models, SeveralDevices,
                         ::testing::Values("lenet", "text_gru", "ernie_tiny"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace skiff
