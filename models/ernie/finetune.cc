// Fine-tunes an ERNIE to classify texts. `finetune --help` lists the flags.

#include <gflags/gflags.h>

#include <memory>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/training/prefetching_reader.h"
#include "framework/training/sample_reader.h"
#include "models/common/text/classification_source.h"
#include "models/common/text/hold_back.h"
#include "models/common/text/tokenizer.h"
#include "models/common/text/vocabulary_builder.h"
#include "models/common/train_main.h"
#include "models/ernie/fine_tuning.h"
#include "models/ernie/model_directory.h"

DECLARE_string(initial_model);

DEFINE_string(
    data, "",
    "File with a label (0, 1, …) in the first column of each line and a text in the last; "
    "tabs separate columns; may be compressed with gzip.");
DEFINE_double(held_back, 0.1, "The share of each class to validate on: the last texts of it.");
DEFINE_string(preset, "tiny",
              "Without --initial_model, sizes of the network: tiny, mini, small, medium, base or "
              "xbase. With it, they are that model's.");
DEFINE_int64(vocabulary_size, 8000, "Without --initial_model: at most so many tokens.");
DEFINE_double(dropout, 0.1, "Of embeddings, layers and attention.");
DEFINE_int64(length, 64, "Tokens of an input; longer texts are cut, shorter ones padded.");
DEFINE_int64(tail_tokens, 0, "Of a text that is cut, so many tokens are from its end.");

namespace {

using skiff::models::ErnieOptions;
namespace text = skiff::text;

text::Vocabulary MakeVocabulary(const std::vector<text::LabelledText>& texts) {
  if (!FLAGS_initial_model.empty()) {
    return skiff::models::ReadErnieVocabulary(FLAGS_initial_model);
  }
  text::WordCounts words;
  for (const text::LabelledText& example : texts) text::CountWords(example.text, {}, &words);
  return text::BuildVocabulary(words, {.size = FLAGS_vocabulary_size});
}

// What the readers read.
struct FineTuningData {
  explicit FineTuningData(std::vector<text::LabelledText> all)
      : classes(text::CountClasses(all)),
        validation_texts(Last(&all)),
        vocabulary(MakeVocabulary(all)) {
    const text::Tokenizer tokenizer(&vocabulary);
    const text::ClassificationOptions options{.length = FLAGS_length,
                                              .tail_tokens = FLAGS_tail_tokens};
    train = std::make_unique<text::ClassificationSource>(tokenizer, all, options);
    validation = std::make_unique<text::ClassificationSource>(tokenizer, validation_texts, options);
  }

  static std::vector<text::LabelledText> Last(std::vector<text::LabelledText>* all) {
    return text::HoldBackLastOfEachClass(all, FLAGS_held_back);
  }

  int64_t classes;
  std::vector<text::LabelledText> validation_texts;
  text::Vocabulary vocabulary;  // of the training texts alone
  std::unique_ptr<text::ClassificationSource> train;
  std::unique_ptr<text::ClassificationSource> validation;
};

ErnieOptions NetworkOptions(const FineTuningData& data) {
  ErnieOptions options = FLAGS_initial_model.empty()
                             ? skiff::models::ErniePreset(FLAGS_preset)
                             : skiff::models::ReadErnieOptions(FLAGS_initial_model);
  options.vocabulary = data.vocabulary.size();
  options.dropout = options.attention_dropout = static_cast<float>(FLAGS_dropout);
  return options;
}

std::unique_ptr<skiff::training::Reader> MakeReader(
    const text::ClassificationSource* source, const skiff::training::SampleReaderOptions& options) {
  return std::make_unique<skiff::training::PrefetchingReader>(
      std::make_unique<skiff::training::SampleReader>(source, options));
}

skiff::models::TrainingTask MakeTask(const skiff::models::TaskOptions& task_options) {
  SKIFF_ENFORCE(!FLAGS_data.empty(), kInvalidArgument,
                "--data: expected a file of labels and texts");
  const auto data = std::make_shared<const FineTuningData>(text::ReadLabelledTexts(FLAGS_data));
  const ErnieOptions options = NetworkOptions(*data);
  skiff::models::TrainingTask task{
      .title = skiff::StrCat("ERNIE on ", FLAGS_data),
      .extent = skiff::StrCat(data->train->size(), " to train, ", data->validation->size(),
                              " to validate, ", data->classes, " classes, ",
                              data->train->truncated() + data->validation->truncated(),
                              " texts cut to ", FLAGS_length, " tokens"),
      .samples = "texts",
      .data = data,
      .train = MakeReader(data->train.get(), {.batch_size = task_options.batch_size,
                                              .shuffle = true,
                                              .drop_last = true,
                                              .seed = task_options.seed}),
      .validation = MakeReader(data->validation.get(), {.batch_size = task_options.batch_size}),
      .program = nullptr,
      .model_files = skiff::models::ErnieModelFiles(options, data->vocabulary)};
  skiff::training::OptimizationOptions optimization = task_options.optimization;
  optimization.total_steps = task_options.epochs * task.train->batches_in_epoch();
  task.program =
      std::make_unique<skiff::training::TrainingProgram>(skiff::models::BuildErnieFineTuning(
          options, FLAGS_length, data->classes, optimization, task_options.seed));
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::models::TrainMain(
      argc, argv,
      {.name = "ernie_finetune",
       .summary = "Trains ERNIE to classify texts, from a pre-trained model or from scratch.",
       .flag_defaults = {{"optimizer", "adamw"},
                         {"learning_rate", "3e-4"},
                         {"warmup", "100"},
                         {"weight_decay", "0.01"},
                         {"exclude_from_decay", "layer_norm,.b_0"},
                         {"clip_norm", "1"},
                         {"batch_size", "32"},
                         {"epochs", "3"},
                         {"passes", "+fuse_optimizer"}},
       .fixed_flags = {"data", "dropout", "held_back", "length", "preset", "tail_tokens",
                       "vocabulary_size"},
       .make_task = MakeTask,
       .try_next = {}});
}
