// A training on a device warns of the ops that run on the CPU, once, with their numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "framework/base/place.h"
#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "framework/training/trainer.h"
#include "models/common/classifier_program.h"
#include "models/mlp/mlp.h"
#include "operators/all_ops.h"
#include "tests/harness/emulated_device.h"
#include "tests/harness/image_training.h"
#include "tests/harness/temp_directory.h"

namespace skiff {

// The trainer takes this registry. Its device, an emulated one, has no kernels for two ops.
OpRegistry& DefaultOpRegistry() {
  static OpRegistry& registry = *[] {
    static OpRegistry all;
    RegisterAllOps(all);
    const auto is_missing = [](const OpDef& def) {
      return def.type == "dropout" || def.type == "mean";
    };
    return harness::RegistryWithEmulation(all, is_missing).release();
  }();
  return registry;
}

namespace training {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns what a training of a perceptron prints, which has two layers with dropout and one loss.
std::string PrintedByTraining(Place place) {
  const TempDirectory directory;
  models::ImageTraining images(48, 16, 16);
  const models::ClassifierProgram program = models::BuildClassifier(
      images.train_images,
      [](const Variable& image, int64_t classes) {
        return models::Mlp(image, {.hidden_units = 8, .classes = classes, .dropout = 0.1f});
      },
      {.total_steps = 6}, 5);
  std::ostringstream out;
  const TrainerOptions options = {
      .title = "test", .output_dir = directory / "run", .epochs = 2, .place = place};
  EXPECT_TRUE(Trainer(&program, &images.train, &images.validation, options, &out).Run().finished);
  return out.str();
}

TEST(OpsOnHost, AreInOneWarning) {
  const std::string printed = PrintedByTraining(harness::EmulatedPlace());
  EXPECT_THAT(printed,
              HasSubstr(StrCat("warning: these ops don't run on ", harness::EmulatedPlace(),
                               ", but on the CPU: 2 dropout, mean\n")));
  EXPECT_EQ(printed.find("warning"), printed.rfind("warning")) << printed;
}

TEST(OpsOnHost, AreNotMentionedOnTheCpu) {
  EXPECT_THAT(PrintedByTraining(Place::Cpu()), Not(HasSubstr("warning")));
}

}  // namespace
}  // namespace training
}  // namespace skiff
