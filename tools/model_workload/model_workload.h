// The models of models/ as programs for tools to time and inspect.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "skiff/skiff.h"
#include "tools/model_workload/seq2seq_workload.h"

namespace skiff {

// A program with parameters in the executor's scope, with feeds and a fetch.
struct ModelWorkload {
  std::unique_ptr<Program> program;
  std::vector<FeedList> batches;  // at least one
  std::string fetch;
};

struct ModelWorkloadOptions {
  int64_t batch_size = 64;
  int64_t length = 0;  // tokens of a sequence; 0: those of the model
  uint64_t seed = 1;   // of initial values and generated samples
  bool trains = true;  // false: the forward pass with the loss
  // "momentum" with L2 decay, "adam" with L2 decay and clipping by the global norm, or "plain_adam"
  // with clipping alone.
  std::string optimizer = "momentum";
  // The precision of the program (docs/precision.md). Without a training, parameters in half are
  // rounded once, and the loss stays float32.
  PrecisionOptions precision = {};
  // Of the models of seq2seq_workload.h: how they decode, and the lengths of all pairs, batch_size
  // of them in a batch; none: one batch of sentences of `length` tokens.
  std::string decoder = "attention_decoder";
  std::vector<PairLengths> pairs = {};
};

// Returns the workload of mlp, lenet (1x28x28), resnet18, 20, 32, 44, 56, 110, vgg11, 13, 16, 19
// (3x32x32), or resnet34, 50, 101 (3x224x224), on generated images, of ernie_tiny, ernie_mini,
// ernie_mini_dropout or ernie_20_layers (ernie_workload.h) on generated tokens, of char_lstm or
// char_gru (batch_size streams of 64 characters), of a recurrent layer (recurrent_workload.h), or
// of a translation model (seq2seq_workload.h). Throws Error for any other name or optimizer, for
// the length of images, for pairs of another model, and what Minimize and RewriteForInference
// throw.
ModelWorkload MakeModelWorkload(const std::string& name, const ModelWorkloadOptions& options,
                                Executor* executor);

// Returns the workload of a model saved for inference, by a training or with one file per
// parameter, on generated numbers. Throws what LoadInferenceModel and RewriteForInference throw,
// and Error (kUnimplemented) unless all feeds are float32 with known dims after the first.
ModelWorkload LoadModelWorkload(const std::string& directory, const ModelWorkloadOptions& options,
                                Executor* executor);

}  // namespace skiff
