// Trains a line reader. `train --help` lists the flags.

#include <gflags/gflags.h>

#include <memory>
#include <utility>

#include "framework/base/str_cat.h"
#include "models/common/train_main.h"
#include "models/line_reader/line_data.h"
#include "models/line_reader/line_reader.h"

DEFINE_string(data, "generated",
              "generated, or a list of images: on each line the path of a PGM image, relative to "
              "the list, a tab, and the text in the image.");
DEFINE_double(held_back, 0.1, "The share of a list to validate on: its end.");
DEFINE_int64(lines, 4000, "Generated lines to train on.");
DEFINE_int64(validation_lines, 400, "Generated lines to validate on.");
DEFINE_int64(filters, 16,
             "Of the first convolution; the others have twice and three times as many.");
DEFINE_int64(hidden, 64, "Width of the state in each direction.");
DEFINE_double(dropout, 0.1, "Of what the characters are chosen by.");

namespace {

skiff::models::TrainingTask MakeTask(const skiff::models::TaskOptions& task_options) {
  const auto data = std::make_shared<const skiff::models::LineData>(
      skiff::models::LineDataOptions{.data = FLAGS_data,
                                     .held_back = FLAGS_held_back,
                                     .lines = FLAGS_lines,
                                     .validation_lines = FLAGS_validation_lines,
                                     .batch_size = task_options.batch_size,
                                     .seed = task_options.seed});
  skiff::models::TrainingTask task =
      skiff::models::TaskOn(data, skiff::StrCat("Line reader on ", FLAGS_data, " lines"), "lines");
  task.baselines = data->baselines();
  task.model_files = {{skiff::models::kAlphabetFile, data->alphabet().Text()}};
  task.program = std::make_unique<skiff::training::TrainingProgram>(skiff::models::BuildLineReader(
      {.characters = data->alphabet().size(),
       .filters = FLAGS_filters,
       .hidden = FLAGS_hidden,
       .dropout = static_cast<float>(FLAGS_dropout)},
      task_options.OptimizationOver(*task.train), task_options.seed));
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::models::TrainMain(
      argc, argv,
      {.name = "line_reader",
       .summary = "Trains a network with a CTC loss to read lines of text from images.",
       .flag_defaults = {{"optimizer", "adam"},
                         {"learning_rate", "3e-3"},
                         {"batch_size", "32"},
                         {"epochs", "8"}},
       .fixed_flags = {"data", "dropout", "filters", "held_back", "hidden", "lines",
                       "validation_lines"},
       .make_task = MakeTask,
       .try_next = {"--hidden=128", "--data=FILE"}});
}
