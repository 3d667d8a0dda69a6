#include "models/ernie/pretraining.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric_layers.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "models/common/training_programs.h"

namespace skiff::models {
namespace {

// The label of sequences without one, which losses ignore by default.
constexpr int64_t kNoLabel = layers::SoftmaxWithCrossEntropyOptions().ignore_index;

// The mean of x [n, 1] by weights [n, 1]; 0 if all weights are 0.
Variable WeightedMean(const Variable& x, const Variable& weights, const Variable& total) {
  // A batch without a masked token divides by this instead of 0.
  constexpr double kLeastWeight = 1e-6;
  const Variable least = layers::FillConstant({1}, x.dtype(), kLeastWeight);
  return layers::ReduceSum(x * weights) / layers::ElementwiseMax(total, least);
}

// A sequence is answered if all its masked tokens are right.
void AppendAnswers(const Variable& hits, const Variable& weights, int64_t masked,
                   PretrainingLoss* result) {
  const auto per_sequence = [&](const Variable& x) {
    return layers::ReduceSum(layers::Reshape(x, {-1, masked}), {.dims = {1}, .keep_dim = true});
  };
  const Variable wanted = per_sequence(weights);
  const Variable right = per_sequence(hits * weights);
  const Variable asked =
      layers::Cast(layers::GreaterThan(wanted, layers::ZerosLike(wanted)), wanted.dtype());
  const Variable answered = layers::Cast(layers::Equal(right, wanted), wanted.dtype());
  result->sequences = layers::ReduceSum(asked);
  result->answer_accuracy = WeightedMean(answered, asked, result->sequences);
}

void AppendMaskedWords(const Variable& encoded, const ErnieOptions& options, int64_t masked,
                       PretrainingLoss* result) {
  result->places = layers::Data("masked_positions", {-1, masked}, DType::kInt64);
  const Variable labels =
      layers::Reshape(layers::Data("masked_labels", {-1, masked}, DType::kInt64), {-1, 1});
  const Variable weights =
      layers::Reshape(layers::Data("masked_weights", {-1, masked}, options.dtype), {-1, 1});
  result->word_scores = ErnieWordScores(encoded, layers::Reshape(result->places, {-1}), options);
  const Variable& scores = result->word_scores;
  const Variable losses = layers::SoftmaxWithCrossEntropy(scores, labels);
  const Variable best = layers::ArgMax(scores, {.axis = -1, .keep_dim = true});
  const Variable hits = layers::Cast(layers::Equal(best, labels), options.dtype);
  result->word_weight = layers::ReduceSum(weights);
  result->word_loss = WeightedMean(losses, weights, result->word_weight);
  result->word_accuracy = WeightedMean(hits, weights, result->word_weight);
  AppendAnswers(hits, weights, masked, result);
}

// The name of the layer that classifies sequences, as in published models where these have one.
std::string HeadOf(const SentenceTaskShape& task) {
  return task.name == "next_sentence" ? "next_sent_fc" : task.name + "_fc";
}

// Returns 1 for sequences of the task, 0 for others: [N, 1] int64.
Variable IsOfTask(const Variable& task_ids, int64_t task) {
  const Variable first = layers::Slice(task_ids, {.axes = {1}, .starts = {0}, .ends = {1}});
  const Variable wanted = layers::FillConstant({1}, DType::kInt64, static_cast<double>(task));
  return layers::Cast(layers::Equal(first, wanted), DType::kInt64);
}

// Sets accuracy and weight, and returns the weights: only sequences with a label count.
Variable AppendSentenceAccuracy(const Variable& label, SentenceTaskLoss* result) {
  const Variable none = layers::FillConstant({1}, DType::kInt64, static_cast<double>(kNoLabel));
  const Variable weights = layers::Cast(layers::NotEqual(label, none), result->scores.dtype());
  const Variable best = layers::ArgMax(result->scores, {.axis = -1, .keep_dim = true});
  const Variable hits = layers::Cast(layers::Equal(best, label), weights.dtype());
  result->weight = layers::ReduceSum(weights);
  result->accuracy = WeightedMean(hits, weights, result->weight);
  return weights;
}

// All sequences have a label, or none.
void AppendOnlySentenceTask(const Variable& label, SentenceTaskLoss* result) {
  result->loss = layers::Mean(layers::SoftmaxWithCrossEntropy(result->scores, label));
  AppendSentenceAccuracy(label, result);
}

// Sequences of other tasks have labels that mean nothing here: they get one that counts nothing.
void AppendSentenceTask(const Variable& label, const Variable& is_of_task,
                        SentenceTaskLoss* result) {
  const Variable known = (label - kNoLabel) * is_of_task + kNoLabel;
  const Variable weights = AppendSentenceAccuracy(known, result);
  result->loss =
      WeightedMean(layers::SoftmaxWithCrossEntropy(result->scores, known), weights, result->weight);
}

void AppendSentenceTasks(const Variable& encoded, const Variable& label,
                         const ErnieOptions& options, const std::vector<SentenceTaskShape>& tasks,
                         PretrainingLoss* result) {
  if (tasks.empty()) return;
  const Variable pooled = ErniePool(encoded, options);
  for (const SentenceTaskShape& task : tasks) {
    SentenceTaskLoss made{
        .name = task.name,
        .scores = ErnieSequenceScores(pooled, task.classes, HeadOf(task), options)};
    if (tasks.size() == 1) {
      AppendOnlySentenceTask(label, &made);
    } else {
      AppendSentenceTask(label, IsOfTask(result->inputs.task_ids, task.id), &made);
    }
    result->loss = result->loss + made.loss;
    result->sentences.push_back(std::move(made));
  }
}

std::vector<training::Metric> MetricsOf(const PretrainingLoss& built) {
  std::vector<training::Metric> metrics = {{.name = "masked_accuracy",
                                            .variable = built.word_accuracy.name(),
                                            .weight = built.word_weight.name(),
                                            .percent = true,
                                            .larger_is_better = true},
                                           {.name = "answer_accuracy",
                                            .variable = built.answer_accuracy.name(),
                                            .weight = built.sequences.name(),
                                            .percent = true,
                                            .larger_is_better = true},
                                           {.name = "masked_loss",
                                            .variable = built.word_loss.name(),
                                            .weight = built.word_weight.name()}};
  for (const SentenceTaskLoss& task : built.sentences) {
    metrics.push_back({.name = task.name + "_accuracy",
                       .variable = task.accuracy.name(),
                       .weight = task.weight.name(),
                       .percent = true,
                       .larger_is_better = true});
  }
  return metrics;
}

}  // namespace

PretrainingLoss AppendErniePretraining(const ErnieOptions& options, const PretrainingShape& shape) {
  SKIFF_ENFORCE(shape.masked >= 1 && shape.masked <= shape.length, kInvalidArgument,
                "ERNIE: ", shape.masked, " masked tokens in a sequence of length ", shape.length,
                ": expected 1 to that length");
  PretrainingLoss result;
  result.inputs = ErnieFeeds(options, shape.length);
  const Variable encoded = ErnieEncoder(result.inputs, options);
  AppendMaskedWords(encoded, options, shape.masked, &result);
  result.loss = result.word_loss;
  // Declared in any case: readers give it.
  const Variable label = layers::Data("sentence_label", {-1, 1}, DType::kInt64);
  AppendSentenceTasks(encoded, label, options, shape.sentence_tasks, &result);
  return result;
}

training::TrainingProgram BuildErniePretraining(const ErnieOptions& options,
                                                const PretrainingShape& shape,
                                                const training::OptimizationOptions& optimization,
                                                uint64_t seed) {
  training::TrainingProgram program = EmptyTraining(optimization, seed);
  const ProgramGuard guard(program.main.get(), program.startup.get());
  const PretrainingLoss built = AppendErniePretraining(options, shape);
  program.loss = built.loss.name();
  program.metrics = MetricsOf(built);
  program.decisive_metric = "masked_accuracy";
  program.model_inputs = InputNames(built.inputs, options);
  program.model_inputs.push_back(built.places.name());
  program.model_outputs = {built.word_scores.name()};
  // Also for the sake of their parameters, which fine-tuning begins with.
  for (const SentenceTaskLoss& task : built.sentences) {
    program.model_outputs.push_back(task.scores.name());
  }
  program.test = program.main->CloneForTest();
  AddOptimization(built.loss, optimization, &program);
  return program;
}

}  // namespace skiff::models
