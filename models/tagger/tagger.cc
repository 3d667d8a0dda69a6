#include "models/tagger/tagger.h"

#include <memory>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tagging.h"
#include "framework/builder/tensor_layers.h"
#include "models/common/network_sizes.h"
#include "models/common/training_programs.h"
#include "models/tagger/chunk_f1.h"
#include "models/tagger/tag_reader.h"

namespace skiff::models {
namespace {

// The parameter of the transitions between tags.
constexpr const char* kTransitions = "transitions";

void Check(const TaggerOptions& options) {
  CheckSizes("tagger", {{"words", options.words},
                        {"tags", options.tags, 2},
                        {"embedding", options.embedding},
                        {"hidden", options.hidden},
                        {"layers", options.layers}});
}

Variable Dropped(const Variable& x, const TaggerOptions& options) {
  return options.dropout == 0 ? x : layers::Dropout(x, options.dropout);
}

// A recurrence from the first word to the last, and another one back: their states side by side.
Variable BothWays(const Variable& x, int64_t size) {
  std::vector<Variable> states;
  for (const bool is_reverse : {false, true}) {
    states.push_back(layers::DynamicGru(layers::Fc(x, 3 * size, {.bias_attr = false}),
                                        {.size = size, .is_reverse = is_reverse}));
  }
  return layers::Concat(states, 1);
}

Variable LossOf(const Variable& scores, const Variable& tags) {
  return layers::Mean(layers::LinearChainCrf(scores, tags, {.param_attr = {.name = kTransitions}}));
}

}  // namespace

Variable TagScores(const Variable& words, const TaggerOptions& options) {
  Check(options);
  Variable x = layers::Embedding(words, {.rows = options.words, .width = options.embedding});
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    x = BothWays(Dropped(x, options), options.hidden);
  }
  return layers::Fc(Dropped(x, options), options.tags);
}

Variable TaggerLoss(const Variable& words, const Variable& tags, const TaggerOptions& options) {
  return LossOf(TagScores(words, options), tags);
}

training::TrainingProgram BuildTagger(const TaggerOptions& options, const TagSet& tags,
                                      const training::OptimizationOptions& optimization,
                                      uint64_t seed) {
  SKIFF_ENFORCE(options.tags == tags.size(), kInvalidArgument, "tagger: tags = ", options.tags,
                ", expected those of the data, ", tags.size());
  training::TrainingProgram program = EmptyTraining(optimization, seed);
  const ProgramGuard guard(program.main.get(), program.startup.get());
  const Variable words = layers::Data(TagReader::kWords, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable label = layers::Data(TagReader::kTags, {-1, 1}, DType::kInt64, {.lod_level = 1});
  const Variable scores = TagScores(words, options);
  const Variable loss = LossOf(scores, label);
  const Variable path = layers::CrfDecoding(scores, {.param_attr = {.name = kTransitions}});
  const layers::ChunkScores chunks =
      layers::ChunkEval(path, label, {.scheme = tags.scheme(), .types = tags.types()});
  program.loss = loss.name();
  program.metrics = {
      {.name = "F1",
       .percent = true,
       .larger_is_better = true,
       .streaming = std::make_shared<ChunkF1>(),
       .streamed = {chunks.inferred.name(), chunks.labelled.name(), chunks.correct.name()}}};
  program.decisive_metric = "F1";
  program.model_inputs = {words.name()};
  program.model_outputs = {path.name()};
  program.test = program.main->CloneForTest();
  AddOptimization(loss, optimization, &program);
  return program;
}

}  // namespace skiff::models
