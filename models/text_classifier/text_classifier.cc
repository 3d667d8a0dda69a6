#include "models/text_classifier/text_classifier.h"

#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/initializer.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/training/sequence_reader.h"
#include "models/common/network_sizes.h"
#include "models/common/training_programs.h"

namespace skiff::models {
namespace {

void Check(const TextClassifierOptions& options) {
  CheckSizes("text classifier", {{"vocabulary", options.vocabulary},
                                 {"embedding", options.embedding},
                                 {"hidden", options.hidden},
                                 {"classes", options.classes, 2}});
}

// Xavier's limit shrinks with the rows of the table, to 0.027 for 8,000 tokens. The convolutional
// network generalizes better from a larger one: see docs/text_classifier.md.
Initializer EmbeddingInitializer(const TextClassifierOptions& options) {
  if (options.network != "cnn") return {};  // the layer's own
  return initializer::Uniform({.low = -0.15f, .high = 0.15f});
}

Variable Convolutions(const Variable& x, const TextClassifierOptions& options) {
  std::vector<Variable> pooled;
  for (const int64_t tokens : {3, 4, 5}) {
    const Variable y =
        layers::SequenceConv(x, {.filters = options.hidden, .context = tokens, .act = "relu"});
    pooled.push_back(layers::SequencePool(y, "MAX"));
  }
  return layers::Concat(pooled, 1);
}

// A recurrence in both directions.
template <typename Recurrence>
Variable BothWays(const Variable& x, const Recurrence& recurrence) {
  std::vector<Variable> pooled;
  for (const bool is_reverse : {false, true})
    pooled.push_back(layers::SequencePool(recurrence(x, is_reverse), "MAX"));
  return layers::Concat(pooled, 1);
}

Variable Features(const Variable& x, const TextClassifierOptions& options) {
  if (options.network == "cnn") return Convolutions(x, options);
  if (options.network == "gru") {
    return BothWays(x, [&](const Variable& in, bool is_reverse) {
      return layers::DynamicGru(layers::Fc(in, 3 * options.hidden, {.bias_attr = false}),
                                {.size = options.hidden, .is_reverse = is_reverse});
    });
  }
  SKIFF_ENFORCE(options.network == "lstm", kInvalidArgument, "text classifier: network = \"",
                options.network, "\", expected cnn, gru or lstm");
  return BothWays(x, [&](const Variable& in, bool is_reverse) {
    return layers::DynamicLstm(layers::Fc(in, 4 * options.hidden, {.bias_attr = false}),
                               {.size = options.hidden, .is_reverse = is_reverse})
        .hidden;
  });
}

}  // namespace

Variable TextClassifier(const Variable& ids, const TextClassifierOptions& options) {
  Check(options);
  const Variable embedded =
      layers::Embedding(ids, {.rows = options.vocabulary,
                              .width = options.embedding,
                              .param_attr = {.initializer = EmbeddingInitializer(options)}});
  Variable features = Features(embedded, options);
  if (options.dropout != 0) features = layers::Dropout(features, options.dropout);
  return layers::Fc(features, options.classes);
}

training::TrainingProgram BuildTextClassifier(const TextClassifierOptions& options,
                                              const training::OptimizationOptions& optimization,
                                              uint64_t seed) {
  training::TrainingProgram program = EmptyTraining(optimization, seed);
  const ProgramGuard guard(program.main.get(), program.startup.get());
  const Variable ids =
      layers::Data(training::SequenceReader::kIds, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable label = layers::Data(training::SequenceReader::kLabel, {-1, 1}, DType::kInt64);
  const Variable scores = TextClassifier(ids, options);
  const Variable loss = AddClassification(scores, label, &program);
  program.model_inputs = {ids.name()};
  program.test = program.main->CloneForTest();
  AddOptimization(loss, optimization, &program);
  return program;
}

}  // namespace skiff::models
