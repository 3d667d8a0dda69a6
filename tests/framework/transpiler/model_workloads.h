// The models as workloads for passes: small images and batches, every kind of fetch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/harness/workload.h"

namespace skiff::harness {

struct ModelWorkload {
  std::string name;  // letters, digits and underscores
  std::function<Workload()> make;
};

// The multilayer perceptron with dropout, LeNet and ResNet-20, and a residual network whose
// channels fill no block, each with an optimizer: trained for several steps, with an evaluation
// program of the same parameters in between. Over the steps everything is fetched that a user may
// fetch: the loss, every gradient of a parameter, parameters, activations; and in some steps
// nothing.
std::vector<ModelWorkload> ModelWorkloads();

}  // namespace skiff::harness
