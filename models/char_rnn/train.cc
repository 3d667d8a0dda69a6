// Trains a character model. `train --help` lists the flags.

#include <gflags/gflags.h>

#include <memory>

#include "framework/base/str_cat.h"
#include "models/char_rnn/char_data.h"
#include "models/char_rnn/char_rnn.h"
#include "models/char_rnn/text_writer.h"
#include "models/common/train_main.h"

DEFINE_string(data, "world",
              "world (documents about a generated world), or a text file in UTF-8, which may be "
              "compressed with gzip.");
DEFINE_double(held_back, 0.1, "The share of the text to validate on: its end.");
DEFINE_string(cell, "lstm", "lstm or gru.");
DEFINE_string(loop, "static",
              "What repeats the step: static (StaticRnn) or while. Both compute the same, up to "
              "rounding; while is slower.");
DEFINE_bool(carry_states, true,
            "Begin a batch with the states that the batch before has left. Under mpirun, "
            "--nocarry_states: batches that begin with zeros can be computed side by side.");
DEFINE_int64(embedding, 64, "Width of the vectors of characters.");
DEFINE_int64(hidden, 256, "Width of a state.");
DEFINE_int64(layers, 1, "Recurrent layers, one on the other.");
DEFINE_int64(steps, 64,
             "Characters of each stream in a batch: gradients flow back so far at most. "
             "--batch_size says how many streams the text is cut into.");

namespace {

skiff::models::TrainingTask MakeTask(const skiff::models::TaskOptions& task_options) {
  const auto data = std::make_shared<const skiff::models::CharData>(
      skiff::models::CharDataOptions{.data = FLAGS_data,
                                     .held_back = FLAGS_held_back,
                                     .batch_size = task_options.batch_size,
                                     .steps = FLAGS_steps});
  skiff::models::TrainingTask task =
      skiff::models::TaskOn(data,
                            skiff::StrCat("Character model (", FLAGS_cell, " ", FLAGS_layers, "x",
                                          FLAGS_hidden, ") on ", FLAGS_data),
                            "characters");
  task.model_files = {{skiff::models::kAlphabetFile, data->alphabet().Text()}};
  task.baselines = data->baselines();
  // Not a fixed flag: checkpoints of earlier versions, which carry states, don't have it.
  if (!FLAGS_carry_states) task.configuration = {{"carry_states", "false"}};
  task.program = std::make_unique<skiff::training::TrainingProgram>(skiff::models::BuildCharRnn(
      {.cell = FLAGS_cell,
       .loop = FLAGS_loop,
       .characters = data->alphabet().size(),
       .embedding = FLAGS_embedding,
       .hidden = FLAGS_hidden,
       .layers = FLAGS_layers,
       .carries_states = FLAGS_carry_states},
      task_options.batch_size, task_options.OptimizationOver(*task.train), task_options.seed));
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::models::TrainMain(
      argc, argv,
      {.name = "char_rnn",
       .summary = "Trains a recurrent network to predict the next character of a text.",
       // One thread: the products of a step are too small to share.
       .flag_defaults = {{"optimizer", "adam"},
                         {"learning_rate", "5e-3"},
                         {"weight_decay", "0"},
                         {"clip_norm", "1"},
                         {"batch_size", "32"},
                         {"epochs", "8"},
                         {"threads", "1"}},
       .fixed_flags = {"cell", "data", "embedding", "held_back", "hidden", "layers", "loop",
                       "steps"},
       .make_task = MakeTask,
       .try_next = {"--cell=gru", "--layers=2", "--data=FILE"}});
}
