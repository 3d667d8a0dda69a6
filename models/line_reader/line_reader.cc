#include "models/line_reader/line_reader.h"

#include <memory>
#include <utility>

#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric_layers.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/recurrent.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "models/common/network_sizes.h"
#include "models/common/training_programs.h"
#include "models/line_reader/error_rate.h"
#include "models/line_reader/line_batches.h"

namespace skiff::models {
namespace {

void Check(const LineReaderOptions& options) {
  CheckSizes("line reader", {{"characters", options.characters},
                             {"filters", options.filters},
                             {"hidden", options.hidden}});
}

// A convolution, and the largest value of each window of `rows` rows and `columns` columns.
Variable Block(const Variable& x, int64_t filters, int64_t rows, int64_t columns) {
  const Variable sums =
      layers::Conv2d(x, {.filters = filters, .kernel = 3, .padding = 1, .bias_attr = false});
  const Variable y = layers::BatchNorm(sums, {.act = "relu"});
  return layers::Pool2d(y, {.kernel = {rows, columns}});
}

// The columns of the image as time steps: [steps, images, width].
Variable Columns(const Variable& images, const LineReaderOptions& options) {
  Variable x = Block(images, options.filters, 2, kColumnsPerStep);
  x = Block(x, 2 * options.filters, 2, 1);
  x = Block(x, 3 * options.filters, 2, 1);
  const int64_t width = 3 * options.filters * kLineHeight / 8;
  return layers::Reshape(layers::Transpose(x, {3, 0, 1, 2}), {0, 0, width});
}

// What a batch feeds besides the images.
struct Labels {
  Variable steps;
  Variable label;
  Variable length;
};

struct Inputs {
  Variable images;
  Labels labels;
};

Inputs MakeInputs() {
  const auto numbers = [](const char* name, const std::vector<int64_t>& dims) {
    return layers::Data(name, dims, DType::kInt64);
  };
  return {.images = layers::Data(LineBatches::kImage, {-1, 1, kLineHeight, -1}),
          .labels = {.steps = numbers(LineBatches::kSteps, {-1}),
                     .label = numbers(LineBatches::kLabel, {-1, -1}),
                     .length = numbers(LineBatches::kLabelLength, {-1})}};
}

Variable MeanLoss(const Variable& logits, const Labels& labels) {
  return layers::Mean(layers::WarpCtc(
      logits, labels.label,
      {.blank = kBlankClass, .logits_length = labels.steps, .label_length = labels.length}));
}

// The edit distance of each line from the labels of its most probable path.
Variable Distances(const Variable& logits, const Labels& labels) {
  const layers::CtcLabels read = layers::CtcGreedyDecoder(
      layers::Transpose(logits, {1, 0, 2}), kBlankClass, {.input_length = labels.steps});
  return layers::EditDistance(
             read.labels, labels.label,
             {.normalized = false, .input_length = read.length, .label_length = labels.length})
      .distance;
}

// Appends the distances to the test program alone: ids that depend on data would cut a training
// step into parts. Comes after AddOptimization, which may replace the test program.
void AddErrorRate(const Variable& logits, const Labels& labels,
                  training::TrainingProgram* program) {
  const ProgramGuard guard(program->test.get(), program->startup.get());
  const auto in_test = [&](const Variable& x) { return Variable(program->test->root(), x.name()); };
  const Variable distances = Distances(
      in_test(logits), {in_test(labels.steps), in_test(labels.label), in_test(labels.length)});
  program->metrics = {{.name = "character_error_rate",
                       .percent = true,
                       .streaming = std::make_shared<ErrorRate>(),
                       .streamed = {distances.name(), labels.length.name()}}};
  program->decisive_metric = "character_error_rate";
}

}  // namespace

Variable LineReader(const Variable& images, const Variable& steps,
                    const LineReaderOptions& options) {
  Check(options);
  const Variable columns = Columns(images, options);
  Variable states =
      layers::Lstm(columns,
                   {.hidden_size = options.hidden, .bidirectional = true, .lengths = steps})
          .out;
  if (options.dropout != 0) states = layers::Dropout(states, options.dropout);
  return layers::Fc(states, options.characters + 1);
}

Variable LineReaderLoss(const LineReaderOptions& options) {
  const Inputs inputs = MakeInputs();
  return MeanLoss(LineReader(inputs.images, inputs.labels.steps, options), inputs.labels);
}

training::TrainingProgram BuildLineReader(const LineReaderOptions& options,
                                          const training::OptimizationOptions& optimization,
                                          uint64_t seed) {
  training::TrainingProgram program = EmptyTraining(optimization, seed);
  const ProgramGuard guard(program.main.get(), program.startup.get());
  const Inputs inputs = MakeInputs();
  const Variable logits = LineReader(inputs.images, inputs.labels.steps, options);
  const Variable loss = MeanLoss(logits, inputs.labels);
  program.loss = loss.name();
  program.model_inputs = {inputs.images.name(), inputs.labels.steps.name()};
  program.model_outputs = {logits.name()};
  program.test = program.main->CloneForTest();
  AddOptimization(loss, optimization, &program);
  AddErrorRate(logits, inputs.labels, &program);
  return program;
}

}  // namespace skiff::models
