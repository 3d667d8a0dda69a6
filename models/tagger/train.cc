// Trains a tagger on ragged batches. `train --help` lists the flags.

#include <gflags/gflags.h>

#include <memory>

#include "framework/base/str_cat.h"
#include "models/common/train_main.h"
#include "models/tagger/tagger.h"
#include "models/tagger/tagger_data.h"

DEFINE_string(data, "names",
              "names (generated), or conll:DIR: DIR/train.txt to train and DIR/valid.txt to "
              "validate on, with a word in each line and its tag (B-type, I-type, O) in the last "
              "column, and a blank line between sentences; may be compressed with gzip.");
DEFINE_int64(sentences, 5000, "Of --data=names to train on; a fifth as many are to validate on.");
DEFINE_int64(vocabulary_size, 50000, "At most so many words.");
DEFINE_int64(least_count, 2, "Words that are there less often are read as unknown.");
DEFINE_int64(most_tokens, 4096,
             "Words of a batch, which then has fewer sentences; longer sentences are cut.");
DEFINE_int64(embedding, 64, "Width of the vectors of words.");
DEFINE_int64(hidden, 64, "Width of the state of each direction.");
DEFINE_int64(layers, 1, "Of recurrences in both directions.");
DEFINE_double(dropout, 0.3, "Of the words' vectors, and of what the tags are scored by.");

namespace {

skiff::models::TrainingTask MakeTask(const skiff::models::TaskOptions& task_options) {
  const auto data = std::make_shared<const skiff::models::TaggerData>(
      skiff::models::TaggerDataOptions{.data = FLAGS_data,
                                       .sentences = FLAGS_sentences,
                                       .vocabulary_size = FLAGS_vocabulary_size,
                                       .least_count = FLAGS_least_count,
                                       .batch_size = task_options.batch_size,
                                       .most_tokens = FLAGS_most_tokens,
                                       .seed = task_options.seed});
  skiff::models::TrainingTask task =
      skiff::models::TaskOn(data, skiff::StrCat("Tagger on ", FLAGS_data), "sentences");
  task.model_files = data->Files();
  task.program = std::make_unique<skiff::training::TrainingProgram>(skiff::models::BuildTagger(
      {.words = data->words().size(),
       .tags = data->tags().size(),
       .embedding = FLAGS_embedding,
       .hidden = FLAGS_hidden,
       .layers = FLAGS_layers,
       .dropout = static_cast<float>(FLAGS_dropout)},
      data->tags(), task_options.OptimizationOver(*task.train), task_options.seed));
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::models::TrainMain(
      argc, argv,
      {.name = "tagger",
       .summary = "Trains recurrent layers and a conditional random field to find entities.",
       .flag_defaults = {{"optimizer", "adam"},
                         {"learning_rate", "4e-3"},
                         {"weight_decay", "0"},
                         {"clip_norm", "5"},
                         {"batch_size", "32"},
                         {"epochs", "6"}},
       .fixed_flags = {"data", "dropout", "embedding", "hidden", "layers", "least_count",
                       "most_tokens", "sentences", "vocabulary_size"},
       .make_task = MakeTask,
       .try_next = {"--layers=2", "--data=conll:DIR"}});
}
