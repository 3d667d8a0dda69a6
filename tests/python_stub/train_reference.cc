// Trains a model for a few steps on made-up batches and prints the hash of all that it has learned,
// for comparison with the same training in Python (models_test.py).
//
// usage: train_reference mlp|lenet|resnet20|ernie STEPS
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/ernie/pretraining.h"
#include "models/lenet/lenet.h"
#include "models/mlp/mlp.h"
#include "models/resnet/resnet.h"
#include "skiff/skiff.h"

namespace skiff {
namespace {

// Element i of a feed, in [0, 1).
Tensor Fractions(const Shape& shape) {
  Tensor tensor(shape, DType::kFloat32);
  float* data = tensor.data<float>();
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    data[i] = static_cast<float>((i * 37 + 11) % 101) / 101.0f;
  }
  return tensor;
}

// Element i of a feed, in [0, count).
Tensor Indices(const Shape& shape, int64_t count) {
  Tensor tensor(shape, DType::kInt64);
  int64_t* data = tensor.data<int64_t>();
  for (int64_t i = 0; i < tensor.element_count(); ++i) data[i] = (i * 7 + 3) % count;
  return tensor;
}

struct Training {
  Variable loss;
  FeedList feeds;
};

Training Classifier(const Shape& images, int64_t classes,
                    const std::function<Variable(const Variable&)>& network) {
  std::vector<int64_t> dims = images.ToVector();
  dims[0] = -1;
  const Variable image = layers::Data("image", dims);
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable logits = network(image);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  optimizer::Momentum({.learning_rate = 0.02}).Minimize(loss);
  return {loss, {{"image", Fractions(images)}, {"label", Indices({images[0], 1}, classes)}}};
}

Training Mlp() {
  return Classifier({8, 20}, 4, [](const Variable& x) {
    return models::Mlp(x, {.hidden_layers = 2, .hidden_units = 16, .classes = 4, .dropout = 0.25f});
  });
}

Training LeNet() {
  return Classifier({8, 1, 28, 28}, 10, [](const Variable& x) { return models::LeNet(x, 10); });
}

Training ResNet20() {
  return Classifier({4, 3, 16, 16}, 10, [](const Variable& x) {
    return models::ResNet(x, {.depth = 20, .classes = 10});
  });
}

Training Ernie() {
  constexpr int64_t kBatch = 3;
  constexpr int64_t kLength = 12;
  constexpr int64_t kMasked = 2;
  const models::ErnieOptions options{.vocabulary = 40,
                                     .hidden = 16,
                                     .layers = 2,
                                     .heads = 2,
                                     .feed_forward = 32,
                                     .positions = 16,
                                     .dropout = 0.0f};
  const models::PretrainingLoss built =
      models::AppendErniePretraining(options, {.length = kLength, .masked = kMasked});
  const Variable rate = learning_rate::LinearWarmup(
      learning_rate::Polynomial({.start = 0.01f, .decay_steps = 10, .end = 0.0f}),
      {.warmup_steps = 2, .start = 0.0f, .end = 0.01f});
  optimizer::AdamW({.learning_rate = rate,
                    .exclude_from_decay = {"layer_norm", ".b_0"},
                    .clip = ClipByGlobalNorm(1.0f)})
      .Minimize(built.loss);
  const Shape tokens = {kBatch, kLength};
  const Shape masked = {kBatch, kMasked};
  return {built.loss,
          {{"token_ids", Indices(tokens, 40)},
           {"sentence_ids", Indices(tokens, 2)},
           {"position_ids", Indices(tokens, 12)},
           {"input_mask", Fractions(tokens)},
           {"masked_positions", Indices(masked, kBatch * kLength)},
           {"masked_labels", Indices(masked, 40)},
           {"masked_weights", Fractions(masked)},
           {"sentence_label", Indices({kBatch, 1}, 2)}}};
}

const std::map<std::string, std::function<Training()>>& Models() {
  static const auto& models = *new std::map<std::string, std::function<Training()>>{
      {"ernie", Ernie}, {"lenet", LeNet}, {"mlp", Mlp}, {"resnet20", ResNet20}};
  return models;
}

void Train(const std::string& model, int steps) {
  Program main;
  Program startup;
  main.seed = startup.seed = 7;
  const ProgramGuard guard(&main, &startup);
  const Training training = Models().at(model)();
  Executor executor(Place::Cpu());
  executor.Run(startup);
  CompiledProgram step = executor.Compile(main);
  for (int i = 0; i < steps; ++i) step.Run(training.feeds, {training.loss});
  std::printf("%s\n", WeightsHash(executor.scope(), PersistableNames(main)).c_str());
}

}  // namespace
}  // namespace skiff

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  skiff::Train(argv[1], std::stoi(argv[2]));
  return 0;
}
