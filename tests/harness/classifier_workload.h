// An image classifier as a workload, for a model's test that passes don't change its results.
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
  std::string optimizer = "momentum";
  training::ScheduleKind schedule = training::ScheduleKind::kConstant;
  int64_t batch_size = 6;
  bool brief = false;  // three runs only, for slow networks
};

// Returns a workload that trains for several steps on batches of two sizes, and evaluates with the
// same parameters in between. Over the steps it fetches everything that a user may fetch: the loss,
// every gradient of a parameter, parameters, activations; and in one step nothing (unless brief).
Workload ClassifierWorkload(const ClassifierWorkloadOptions& options);

}  // namespace skiff::harness
