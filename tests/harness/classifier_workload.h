// An image classifier as a workload: for the test of a model that passes leave its results alone.
//
//   EXPECT_THAT(FaultsOfEveryPass(ClassifierWorkload({.extent = 12, .logits = LeNet})), IsEmpty());
#pragma once

#include <cstdint>
#include <string>

#include "models/common/classifier_program.h"
#include "tests/harness/workload.h"

namespace skiff::harness {

struct ClassifierWorkloadOptions {
  std::string name = "classifier";
  int32_t channels = 1;
  int32_t extent = 12;  // of the images, which are square
  models::BuildLogits logits;
  models::OptimizerKind optimizer = models::OptimizerKind::kMomentum;
  models::ScheduleKind schedule = models::ScheduleKind::kConstant;
  int64_t batch_size = 6;
  bool brief = false;  // three runs, for networks that take their time
};

// Trains for several steps, with evaluation by the same parameters in between, on batches of two
// sizes. Over the steps everything is fetched that a user may fetch: the loss, every gradient of a
// parameter, parameters, activations; and in one step nothing (unless brief).
Workload ClassifierWorkload(const ClassifierWorkloadOptions& options);

}  // namespace skiff::harness
