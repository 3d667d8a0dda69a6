// The models of models/ as programs to run: what tools time and look at.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "skiff/skiff.h"

namespace skiff {

// A program whose parameters lie in the executor's scope, and what it is fed and asked for.
struct ModelWorkload {
  std::unique_ptr<Program> program;
  FeedList feeds;
  std::string fetch;
};

struct ModelWorkloadOptions {
  int64_t batch_size = 64;
  uint64_t seed = 1;   // of initial values and generated images
  bool trains = true;  // false: the forward pass with the loss
  // "momentum" with L2 decay, or "adam", with L2 decay and clipping by the global norm.
  std::string optimizer = "momentum";
};

// One of mlp, lenet (1x28x28), resnet18, 20, 32, 44, 56, 110, vgg11, 13, 16, 19 (3x32x32),
// resnet34, 50, 101 (3x224x224), on generated images, or transformer (334 parameter tensors, 32
// words a sequence) on generated words. Error for another name, and for another optimizer.
ModelWorkload MakeModelWorkload(const std::string& name, const ModelWorkloadOptions& options,
                                Executor* executor);

// A model that was saved for inference, as trainings save it or with one file a parameter, on
// generated numbers. Errors of LoadInferenceModel; kUnimplemented for other feeds than float32 of
// known extents but the first.
ModelWorkload LoadModelWorkload(const std::string& directory, const ModelWorkloadOptions& options,
                                Executor* executor);

}  // namespace skiff
