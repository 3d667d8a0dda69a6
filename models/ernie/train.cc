// Pre-trains an ERNIE. `train --help` lists the flags.

#include <gflags/gflags.h>

#include <memory>
#include <utility>

#include "framework/base/str_cat.h"
#include "framework/command_line/command_line.h"
#include "models/common/train_main.h"
#include "models/ernie/model_directory.h"
#include "models/ernie/network_flags.h"
#include "models/ernie/pretraining.h"
#include "models/ernie/pretraining_data.h"

DEFINE_string(data, "world",
              "What to train on: world (a generated world of people, places and facts about them), "
              "text:FILES (a sentence a line, an empty line between documents), table:FILES (a "
              "document in the last column of each line), labelled:FILES (a table with a label in "
              "the first column) or ernie_demo:FILE (ids of tokens). FILES are names with commas "
              "between them. Files may be compressed with gzip.");
DEFINE_string(vocabulary, "",
              "File of tokens, one a line, or token, tab and id. Empty: made from the texts.");
DEFINE_int64(vocabulary_size, 8000, "At most so many tokens in a vocabulary that is made.");
DEFINE_string(lexicon, "", "File of phrases and names, one a line, that are masked as a whole.");
DEFINE_string(
    masking, "auto",
    "What is masked as a whole: piece (of a word), word, phrase (of the lexicon), or auto "
    "(phrase where there is a lexicon, else word).");
DEFINE_string(sentence_tasks, "auto",
              "Learned beside masked tokens: next_sentence, reordering and distance, with commas "
              "between them; none; or auto (none for the world, next_sentence elsewhere).");
DEFINE_double(
    held_back, 0.1,
    "The share of documents to validate on: the last of each file; of a labelled one, the "
    "last of each class, as finetune does it. The world asks questions.");
DEFINE_int64(length, 64, "Tokens of an input; longer texts are cut, shorter ones padded.");
DEFINE_int64(most_masked, 12, "Most masked tokens of an input.");
DEFINE_int64(world_documents, 2000, "How many documents are written about the world.");

namespace {

std::string Masking() {
  if (FLAGS_masking != "auto") return FLAGS_masking;
  return FLAGS_data == "world" || !FLAGS_lexicon.empty() ? "phrase" : "word";
}

// Refuses flags that the others leave without a meaning.
void CheckFlags() {
  const bool is_world = FLAGS_data == "world";
  if (is_world) skiff::RefuseFlags({"held_back"}, "the world validates by questions");
  if (!is_world) skiff::RefuseFlags({"world_documents"}, "--data isn't the world");
  if (!FLAGS_vocabulary.empty()) {
    skiff::RefuseFlags({"vocabulary_size"}, "the vocabulary is that of --vocabulary");
  }
}

skiff::models::TrainingTask MakeTask(const skiff::models::TaskOptions& task_options) {
  CheckFlags();
  const std::shared_ptr<const skiff::models::PretrainingData> data =
      skiff::models::MakePretrainingData({.data = FLAGS_data,
                                          .vocabulary_file = FLAGS_vocabulary,
                                          .vocabulary_size = FLAGS_vocabulary_size,
                                          .lexicon_file = FLAGS_lexicon,
                                          .masking = Masking(),
                                          .sentence_tasks = FLAGS_sentence_tasks,
                                          .held_back = FLAGS_held_back,
                                          .length = FLAGS_length,
                                          .most_masked = FLAGS_most_masked,
                                          .world_documents = FLAGS_world_documents,
                                          .batch_size = task_options.batch_size,
                                          .seed = task_options.seed});
  const skiff::models::ErnieOptions options =
      skiff::models::ErnieOptionsFromFlags({.vocabulary = data->vocabulary().size(),
                                            .sentences = data->sentences(),
                                            .tasks = data->tasks()});
  skiff::models::TrainingTask task = skiff::models::TaskOn(
      data, skiff::StrCat("ERNIE of ", options.layers, "x", options.hidden, " on ", FLAGS_data),
      "inputs");
  task.model_files = skiff::models::ErnieModelFiles(options, data->vocabulary());
  task.configuration = skiff::models::ErnieOptionsByKey(options);
  task.earlier_configuration = skiff::models::EarlierErnieOptions();
  task.program =
      std::make_unique<skiff::training::TrainingProgram>(skiff::models::BuildErniePretraining(
          options,
          {.length = FLAGS_length,
           .masked = FLAGS_most_masked,
           .sentence_tasks = data->sentence_tasks()},
          task_options.OptimizationOver(*task.train), task_options.seed));
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::models::TrainMain(
      argc, argv,
      {.name = "ernie",
       .summary = "Pre-trains ERNIE, a transformer that learns to fill in masked words and names.",
       .flag_defaults = {{"optimizer", "adamw"},
                         {"learning_rate", "1e-3"},
                         {"warmup", "100"},
                         {"weight_decay", "0.01"},
                         {"exclude_from_decay", "layer_norm,.b_0"},
                         {"clip_norm", "1"},
                         {"batch_size", "32"},
                         {"epochs", "120"},
                         {"passes", "+fuse_optimizer"}},
       .fixed_flags = {"data", "held_back", "length", "lexicon", "masking", "most_masked",
                       "sentence_tasks", "vocabulary", "vocabulary_size", "world_documents"},
       .make_task = MakeTask,
       .try_next = {"--preset=mini", "--data=text:FILE --preset=mini --length=128"}});
}
