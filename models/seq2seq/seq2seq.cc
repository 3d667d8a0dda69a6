#include "models/seq2seq/seq2seq.h"

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric_layers.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/variable_operators.h"
#include "framework/text/pair_reader.h"
#include "models/common/training_programs.h"
#include "models/seq2seq/translator_program.h"

namespace skiff::models {
namespace {

// The scores of each token of the targets, given those before.
Variable TeacherForced(const Seq2SeqNetwork& network, const Variable& source,
                       const Variable& given) {
  const Encoded encoded = network.Encode(source);
  const Variables first = network.FirstState(encoded);
  const Variable words = network.Embed(given);
  // Nothing waits for the scores, so one product makes those of all steps.
  return network.Scores(network.Steps(words, first, encoded), words);
}

// Returns the mean over tokens of the cross-entropy to labels that are smoothed: share e is
// uniform. That is (1 - e) · loss - e · the mean of log(probability) over all tokens of the
// vocabulary, which needs no smoothed labels in memory.
Variable Smoothed(const Variable& loss, const Variable& scores, float label_smoothing) {
  if (label_smoothing == 0) return loss;
  return (1 - label_smoothing) * loss - label_smoothing * layers::Mean(layers::LogSoftmax(scores));
}

}  // namespace

Variable Seq2SeqLoss(const Variable& source, const Variable& given, const Variable& label,
                     const Seq2SeqOptions& options) {
  const Variable scores = TeacherForced(Seq2SeqNetwork(options), source, given);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(scores, label));
  return Smoothed(loss, scores, options.label_smoothing);
}

training::TrainingProgram BuildSeq2Seq(const Seq2SeqOptions& options,
                                       const training::OptimizationOptions& optimization,
                                       uint64_t seed) {
  training::TrainingProgram program = EmptyTraining(optimization, seed);
  const ProgramGuard guard(program.main.get(), program.startup.get());
  const Variable source =
      layers::Data(text::PairReader::kSource, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable given =
      layers::Data(text::PairReader::kGiven, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable label = layers::Data(text::PairReader::kLabel, {-1, 1}, DType::kInt64);
  const Variable scores = TeacherForced(Seq2SeqNetwork(options), source, given);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(scores, label));
  const Variable accuracy = layers::Accuracy(layers::Softmax(scores), label);
  program.loss = loss.name();
  program.metrics = {{.name = "token accuracy",
                      .variable = accuracy.name(),
                      .percent = true,
                      .larger_is_better = true}};
  program.test = program.main->CloneForTest();
  program.model_inputs = {text::PairReader::kSource, kTranslationRoom};
  TranslatorOutputs outputs;
  program.model = BuildTranslator(options, &outputs);
  program.model_outputs = {outputs.tokens, outputs.weights};
  AddOptimization(Smoothed(loss, scores, options.label_smoothing), optimization, &program);
  return program;
}

}  // namespace skiff::models
