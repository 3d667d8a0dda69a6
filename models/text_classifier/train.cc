// Trains a text classifier on ragged batches. `train --help` lists the flags.

#include <gflags/gflags.h>

#include <memory>
#include <utility>

#include "framework/base/str_cat.h"
#include "models/common/train_main.h"
#include "models/text_classifier/text_classifier.h"
#include "models/text_classifier/text_data.h"

DEFINE_string(data, "reviews",
              "reviews (generated), or a file with a label (0, 1, …) in the first column of each "
              "line and a text in the last; tabs separate columns; may be compressed with gzip.");
DEFINE_double(held_back, 0.1, "The share of each class to validate on: the last texts of it.");
DEFINE_string(network, "cnn", "cnn, gru or lstm.");
DEFINE_int64(vocabulary_size, 8000, "At most so many tokens.");
DEFINE_int64(most_tokens, 4096, "Of a batch, which then has fewer texts; longer texts are cut.");
DEFINE_int64(embedding, 128, "Width of the vectors of tokens.");
DEFINE_int64(hidden, 128, "Filters of each width (cnn), or width of the state.");
DEFINE_double(dropout, 0.5, "Of what the texts are classified by.");
DEFINE_double(word_dropout, -1,
              "The share of the training tokens, other ones in each epoch, that the network reads "
              "as unknown, in [0, 1). -1: 0.3 with cnn on a file, otherwise 0.");

namespace {

double WordDropout() {
  if (FLAGS_word_dropout != -1) return FLAGS_word_dropout;
  // In a generated review, each word may decide.
  return FLAGS_network == "cnn" && FLAGS_data != skiff::models::kGeneratedReviews ? 0.3 : 0;
}

skiff::models::TrainingTask MakeTask(const skiff::models::TaskOptions& task_options) {
  const auto data = std::make_shared<const skiff::models::TextData>(
      skiff::models::TextDataOptions{.data = FLAGS_data,
                                     .held_back = FLAGS_held_back,
                                     .vocabulary_size = FLAGS_vocabulary_size,
                                     .batch_size = task_options.batch_size,
                                     .most_tokens = FLAGS_most_tokens,
                                     .word_dropout = WordDropout(),
                                     .seed = task_options.seed});
  skiff::models::TrainingTask task = skiff::models::TaskOn(
      data, skiff::StrCat("Text classifier (", FLAGS_network, ") on ", FLAGS_data), "texts");
  task.model_files = {{skiff::models::kVocabularyFile, data->vocabulary().Text()}};
  task.program =
      std::make_unique<skiff::training::TrainingProgram>(skiff::models::BuildTextClassifier(
          {.network = FLAGS_network,
           .vocabulary = data->vocabulary().size(),
           .classes = data->classes(),
           .embedding = FLAGS_embedding,
           .hidden = FLAGS_hidden,
           .dropout = static_cast<float>(FLAGS_dropout)},
          task_options.OptimizationOver(*task.train), task_options.seed));
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::models::TrainMain(
      argc, argv,
      {.name = "text_classifier",
       .summary = "Trains a convolutional or recurrent network to classify texts, without padding.",
       .flag_defaults = {{"optimizer", "adam"},
                         {"learning_rate", "1e-3"},
                         {"batch_size", "32"},
                         {"epochs", "6"}},
       .fixed_flags = {"data", "dropout", "embedding", "held_back", "hidden", "most_tokens",
                       "network", "vocabulary_size", "word_dropout"},
       .make_task = MakeTask,
       .try_next = {"--network=gru", "--network=lstm", "--data=FILE"}});
}
