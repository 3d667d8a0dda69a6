#include "tests/oracle/ernie_training.h"

#include <algorithm>

#include "framework/base/error.h"
#include "models/ernie/pretraining.h"
#include "models/ernie/pretraining_data.h"
#include "tests/harness/array_tensor.h"

namespace skiff::oracle {
namespace {

models::PretrainingDataOptions DataOptions(const std::string& sentence_tasks) {
  return {.vocabulary_size = 900,
          .sentence_tasks = sentence_tasks,
          .length = 40,
          .most_masked = 8,
          .world_documents = 300,
          .batch_size = 6};
}

models::ErnieOptions NetworkOptions(const models::PretrainingData& data, DType dtype) {
  return {.vocabulary = data.vocabulary().size(),
          .hidden = 32,
          .layers = 2,
          .heads = 4,
          .feed_forward = 64,
          .positions = 64,
          .sentences = data.sentences(),
          .tasks = data.tasks(),
          .dropout = 0,
          .attention_dropout = 0,
          .dtype = dtype};
}

// As models/ernie/train by default, but for a rate that teaches something in a few steps.
training::OptimizationOptions OptimizationBy(training::ScheduleKind schedule, int64_t steps) {
  return {.optimizer = "adamw",
          .learning_rate = 1e-2f,
          .schedule = schedule,
          .total_steps = steps,
          .warmup_updates = schedule == training::ScheduleKind::kConstant ? 0 : steps / 4,
          .weight_decay = 0.01f,
          .exclude_from_decay = {"layer_norm", ".b_0"},
          .clip_norm = 1};
}

// The first batch, less what the program doesn't read.
TensorMap FirstBatch(const models::PretrainingData& data, const Program& program, DType dtype) {
  const auto reader = data.TrainReader();
  reader->StartEpoch(0);
  training::Batch batch;
  SKIFF_ENFORCE(reader->Next(&batch), kNotFound, "the data has no batch");
  TensorMap feeds;
  for (const auto& [name, feed] : batch.feeds) {
    if (program.root()->FindLocalVar(name) == nullptr) continue;
    feeds[name] = IsFloat(feed.dtype()) ? harness::Cast(feed, dtype) : CopyToCpu(feed);
  }
  return feeds;
}

std::vector<std::pair<std::string, std::string>> Gradients(const Program& program) {
  std::vector<std::pair<std::string, std::string>> gradients;
  for (const auto& var : program.root()->vars()) {
    if (var->is_parameter) gradients.emplace_back(var->name, var->name + "@GRAD");
  }
  return gradients;
}

bool ReadsAny(const Op& op, const std::set<std::string>& names) {
  return std::ranges::any_of(op.inputs, [&](const SlotArguments& slot) {
    return std::ranges::any_of(slot.arguments,
                               [&](const std::string& name) { return names.contains(name); });
  });
}

// Softmax cancels what the biases of keys add to the scores of a query, so their gradients are
// zero but for rounding. Nor does it matter what becomes of these biases.
std::set<std::string> RoundingOf(const Program& program) {
  std::set<std::string> names;
  for (const auto& [parameter, gradient] : Gradients(program)) {
    if (parameter.ends_with("_key_fc.b_0")) names.insert(gradient);
  }
  for (const auto& op : program.root()->ops()) {
    if (op->type == "sum" || !ReadsAny(*op, names)) continue;  // A sum has the other norms as well.
    for (const SlotArguments& slot : op->outputs) {
      names.insert(slot.arguments.begin(), slot.arguments.end());
    }
  }
  return names;
}

Training MakeTraining(const std::string& name, const models::PretrainingData& data,
                      const models::ErnieOptions& network,
                      const models::PretrainingDataOptions& data_options,
                      const training::OptimizationOptions& optimization) {
  training::TrainingProgram program =
      models::BuildErniePretraining(network,
                                    {.length = data_options.length,
                                     .masked = data_options.most_masked,
                                     .sentence_tasks = data.sentence_tasks()},
                                    optimization, /*seed=*/1);
  Training made{.name = StrCat(name, "_", network.dtype),
                .dtype = network.dtype,
                .main = std::move(program.main),
                .startup = std::move(program.startup),
                .loss = program.loss};
  for (const training::Metric& metric : program.metrics) made.metrics.push_back(metric.variable);
  made.gradients = Gradients(*made.main);
  made.rounding = RoundingOf(*made.main);
  made.feeds = FirstBatch(data, *made.main, network.dtype);
  return made;
}

}  // namespace

std::vector<Training> ErnieTrainings(int64_t steps) {
  std::vector<Training> trainings;
  const models::PretrainingDataOptions pairs = DataOptions("next_sentence");
  const auto pairs_data = models::MakePretrainingData(pairs);
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    trainings.push_back(MakeTraining("ernie_adamw", *pairs_data, NetworkOptions(*pairs_data, dtype),
                                     pairs,
                                     OptimizationBy(training::ScheduleKind::kConstant, steps)));
  }
  const models::PretrainingDataOptions all = DataOptions("next_sentence,reordering,distance");
  const auto all_data = models::MakePretrainingData(all);
  models::ErnieOptions network = NetworkOptions(*all_data, DType::kFloat32);
  network.act = "relu";
  trainings.push_back(MakeTraining("ernie_schedule", *all_data, network, all,
                                   OptimizationBy(training::ScheduleKind::kCosine, steps)));
  return trainings;
}

}  // namespace skiff::oracle
