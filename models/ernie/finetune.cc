// Fine-tunes an ERNIE to classify texts. `finetune --help` lists the flags.

#include <gflags/gflags.h>

#include <memory>
#include <string>
#include <utility>

#include "framework/base/str_cat.h"
#include "framework/command_line/command_line.h"
#include "framework/io/file.h"
#include "framework/io/safetensors.h"
#include "models/common/train_main.h"
#include "models/ernie/fine_tuning.h"
#include "models/ernie/fine_tuning_data.h"
#include "models/ernie/model_directory.h"
#include "models/ernie/network_flags.h"

DECLARE_string(initial_model);

DEFINE_string(
    data, "",
    "File with a label (0, 1, …) in the first column of each line and a text in the last; "
    "tabs separate columns; may be compressed with gzip.");
DEFINE_double(held_back, 0.1, "The share of each class to validate on: the last texts of it.");
DEFINE_string(
    vocabulary, "",
    "File of tokens, one a line, or token, tab and id. Empty: that of --initial_model, or "
    "one made from the training texts.");
DEFINE_int64(vocabulary_size, 8000, "At most so many tokens in a vocabulary that is made.");
DEFINE_int64(length, 64, "Tokens of an input; longer texts are cut, shorter ones padded.");
DEFINE_int64(tail_tokens, 0, "Of a text that is cut, so many tokens are from its end.");

namespace {

using skiff::models::ErnieOptions;

// Returns where the files beside the weights of the initial model are.
std::string InitialModelDirectory() {
  return skiff::IsSafetensorsPath(FLAGS_initial_model) ? skiff::ParentDirectory(FLAGS_initial_model)
                                                       : FLAGS_initial_model;
}

// Refuses flags that the others leave without a meaning.
void CheckFlags() {
  if (!FLAGS_initial_model.empty()) {
    skiff::RefuseFlags({"vocabulary", "vocabulary_size"},
                       "the vocabulary is that of --initial_model");
  }
  if (!FLAGS_vocabulary.empty()) {
    skiff::RefuseFlags({"vocabulary_size"}, "the vocabulary is that of --vocabulary");
  }
}

ErnieOptions NetworkOptions(const skiff::text::Vocabulary& vocabulary) {
  if (FLAGS_initial_model.empty()) {
    return skiff::models::ErnieOptionsFromFlags({.vocabulary = vocabulary.size()});
  }
  return skiff::models::WithDropoutFromFlags(
      skiff::models::ReadErnieOptions(InitialModelDirectory(), vocabulary));
}

skiff::models::TrainingTask MakeTask(const skiff::models::TaskOptions& task_options) {
  CheckFlags();
  const auto data = std::make_shared<const skiff::models::FineTuningData>(
      skiff::models::FineTuningDataOptions{.data = FLAGS_data,
                                           .held_back = FLAGS_held_back,
                                           .initial_model = InitialModelDirectory(),
                                           .vocabulary_file = FLAGS_vocabulary,
                                           .vocabulary_size = FLAGS_vocabulary_size,
                                           .length = FLAGS_length,
                                           .tail_tokens = FLAGS_tail_tokens,
                                           .batch_size = task_options.batch_size,
                                           .seed = task_options.seed});
  const ErnieOptions options = NetworkOptions(data->vocabulary());
  skiff::models::TrainingTask task =
      skiff::models::TaskOn(data, skiff::StrCat("ERNIE on ", FLAGS_data), "texts");
  task.model_files = skiff::models::ErnieModelFiles(options, data->vocabulary());
  task.new_parameters = skiff::models::NewParametersOfFineTuning();
  task.configuration = skiff::models::ErnieOptionsByKey(options);
  task.earlier_configuration = skiff::models::EarlierErnieOptions();
  task.program =
      std::make_unique<skiff::training::TrainingProgram>(skiff::models::BuildErnieFineTuning(
          options, FLAGS_length, data->classes(), task_options.OptimizationOver(*task.train),
          task_options.seed));
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::models::TrainMain(
      argc, argv,
      {.name = "ernie_finetune",
       .summary = "Trains ERNIE to classify texts, from a pre-trained model or from scratch.",
       .command = "bazel-bin/models/ernie/finetune",
       .flag_defaults = {{"optimizer", "adamw"},
                         {"learning_rate", "3e-4"},
                         {"warmup", "-1"},
                         {"weight_decay", "0.01"},
                         {"exclude_from_decay", "layer_norm,.b_0"},
                         {"clip_norm", "1"},
                         {"batch_size", "32"},
                         {"epochs", "5"},
                         {"passes", "+fuse_optimizer"}},
       .fixed_flags = {"data", "held_back", "length", "tail_tokens", "vocabulary",
                       "vocabulary_size"},
       .make_task = MakeTask,
       .try_next = {}});
}
