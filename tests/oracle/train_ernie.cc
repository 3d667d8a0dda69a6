// Pre-trains ERNIE without dropout, for PyTorch to do the same (ernie_in_torch.py;
// docs/outside_check.md):
//
//   train_ernie --out=DIR [--data=ernie_demo:FILE --vocabulary=FILE] [--dtype=float64]
//
// DIR then holds description.json, initial.npz and final.npz (the parameters before and after),
// batches.npz (each feed of all steps, [steps, ...]) and losses.npz (each loss, [steps]).
#include <gflags/gflags.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/command_line/command_line.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/io/parameters.h"
#include "framework/training/bound_feeds.h"
#include "models/ernie/pretraining.h"
#include "models/ernie/pretraining_data.h"
#include "tests/harness/array_tensor.h"

DEFINE_string(out, "", "folder to write to; made if it isn't there");
DEFINE_string(data, "world", "what to train on, as models/ernie/train has it");
DEFINE_string(vocabulary, "", "file of tokens; empty: made from the texts");
DEFINE_string(preset, "tiny", "sizes of the network, as models/ernie/train has them");
DEFINE_string(dtype, "float64", "float64 or float32");
DEFINE_int64(length, 132, "tokens of an input");
DEFINE_int64(most_masked, 20, "most masked tokens of an input");
DEFINE_int64(batch_size, 16, "inputs of a step");
DEFINE_int64(steps, 200, "training steps");
DEFINE_double(learning_rate, 1e-3, "of Adam, the same in all steps");

namespace skiff::oracle {
namespace {

constexpr float kClipNorm = 1.0f;

models::ErnieOptions NetworkOptions(const models::PretrainingData& data) {
  models::ErnieOptions options = models::ErniePreset(FLAGS_preset);
  options.vocabulary = data.vocabulary().size();
  options.dropout = options.attention_dropout = 0;
  options.dtype = DTypeFromName(FLAGS_dtype);
  return options;
}

training::TrainingProgram Build(const models::ErnieOptions& options,
                                const models::PretrainingData& data) {
  return models::BuildErniePretraining(options,
                                       {.length = FLAGS_length,
                                        .masked = FLAGS_most_masked,
                                        .sentence_tasks = data.sentence_tasks()},
                                       {.optimizer = "adam",
                                        .learning_rate = static_cast<float>(FLAGS_learning_rate),
                                        .schedule = training::ScheduleKind::kConstant,
                                        .weight_decay = 0,
                                        .clip_norm = kClipNorm},
                                       /*seed=*/1);
}

std::vector<FeedList> ReadBatches(const models::PretrainingData& data) {
  const auto reader = data.TrainReader();
  int64_t epoch = 0;
  reader->StartEpoch(epoch);
  std::vector<FeedList> batches;
  while (std::ssize(batches) < FLAGS_steps) {
    training::Batch batch;
    if (reader->Next(&batch)) {
      batches.push_back(std::move(batch.feeds));
    } else {
      reader->StartEpoch(++epoch);
    }
  }
  return batches;
}

// Returns tensors of one shape as one with a dim more in front.
Tensor Stacked(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> dims = {std::ssize(tensors)};
  std::ranges::copy(tensors[0].shape().dims(), std::back_inserter(dims));
  Tensor stacked(Shape(dims), tensors[0].dtype());
  auto* to = static_cast<std::byte*>(stacked.raw_data());
  for (const Tensor& tensor : tensors) {
    to = std::copy_n(static_cast<const std::byte*>(tensor.raw_data()), tensor.byte_count(), to);
  }
  return stacked;
}

TensorMap StackedFeeds(const std::vector<FeedList>& batches) {
  std::map<std::string, std::vector<Tensor>> feeds;
  for (const FeedList& batch : batches) {
    for (const auto& [name, feed] : batch) feeds[name].push_back(feed);
  }
  TensorMap stacked;
  for (const auto& [name, tensors] : feeds) stacked[name] = Stacked(tensors);
  return stacked;
}

FeedList InDType(FeedList feeds, DType dtype) {
  for (auto& [name, feed] : feeds) {
    if (IsFloat(feed.dtype())) feed = harness::Cast(feed, dtype);
  }
  return feeds;
}

TensorMap ParametersOf(const training::TrainingProgram& program, const Scope& scope) {
  TensorMap parameters;
  for (const std::string& name : PersistableNames(*program.test)) {
    parameters[name] = CopyToCpu(scope.Get(name));
  }
  return parameters;
}

// Returns the series of the loss and of that of masked words.
TensorMap Train(const training::TrainingProgram& program, const std::vector<FeedList>& batches,
                DType dtype, Executor* executor) {
  const auto masked = std::ranges::find(program.metrics, "masked_loss", &training::Metric::name);
  const FetchList fetches = {program.loss, masked->variable};
  // As models/ernie/train.
  training::BoundFeeds steps(
      executor->Compile(*program.main, {.passes = {.also = {"fuse_optimizer"}}}), fetches);
  std::vector<std::vector<Tensor>> series(fetches.size());
  for (const FeedList& batch : batches) {
    const BoundProgram& bound = steps.Step(InDType(batch, dtype));
    for (size_t i = 0; i < fetches.size(); ++i) series[i].push_back(CopyToCpu(bound.fetch(i)));
  }
  return {{"loss", Stacked(series[0])}, {"masked_loss", Stacked(series[1])}};
}

int Main() {
  SKIFF_ENFORCE(!FLAGS_out.empty(), kInvalidArgument, "no folder given: --out=DIR");
  SKIFF_ENFORCE(FLAGS_steps > 0, kInvalidArgument, "steps = ", FLAGS_steps,
                ": expected at least 1");
  const auto data = models::MakePretrainingData({.data = FLAGS_data,
                                                 .vocabulary_file = FLAGS_vocabulary,
                                                 .masking = "word",
                                                 .sentence_tasks = "next_sentence",
                                                 .length = FLAGS_length,
                                                 .most_masked = FLAGS_most_masked,
                                                 .batch_size = FLAGS_batch_size});
  const models::ErnieOptions options = NetworkOptions(*data);
  const training::TrainingProgram program = Build(options, *data);
  const std::vector<FeedList> batches = ReadBatches(*data);
  CreateDirectories(FLAGS_out);
  WriteNpz(JoinPath(FLAGS_out, "batches.npz"), StackedFeeds(batches));
  Executor executor(Place::Cpu());
  executor.Run(*program.startup);
  WriteNpz(JoinPath(FLAGS_out, "initial.npz"), ParametersOf(program, executor.scope()));
  const TensorMap losses = Train(program, batches, options.dtype, &executor);
  WriteNpz(JoinPath(FLAGS_out, "losses.npz"), losses);
  WriteNpz(JoinPath(FLAGS_out, "final.npz"), ParametersOf(program, executor.scope()));
  const nlohmann::json description = {
      {"config", nlohmann::json::parse(models::ErnieOptionsToJson(options))},
      {"dtype", FLAGS_dtype},
      {"learning_rate", FLAGS_learning_rate},
      {"clip_norm", kClipNorm}};
  AtomicWriteFile(JoinPath(FLAGS_out, "description.json"), description.dump(1) + "\n");
  std::printf("%lld steps in %s on %s; losses and parameters are in %s\n",
              static_cast<long long>(FLAGS_steps), FLAGS_dtype.c_str(), data->extent().c_str(),
              FLAGS_out.c_str());
  return 0;
}

}  // namespace
}  // namespace skiff::oracle

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "train_ernie --out=DIR [flags]",
                             .summary = "Pre-trains ERNIE, for another framework to do the same.",
                             .run = skiff::oracle::Main});
}
