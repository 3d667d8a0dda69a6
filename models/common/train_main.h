// The parts that the train programs of all models share: flags, training, messages.
//
// A model provides the readers and the programs; classifier_main.h does so for image classifiers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/training/optimization.h"
#include "framework/training/reader.h"
#include "framework/training/training_program.h"

namespace skiff::models {

// The values of common flags that a task depends on.
struct TaskOptions {
  int64_t batch_size = 0;
  int64_t epochs = 0;
  uint64_t seed = 0;
  int32_t ranks = 1;                           // that share the batches
  training::OptimizationOptions optimization;  // without total_steps

  // Returns `optimization` with the total_steps of a training on the reader's batches.
  // Learning-rate schedules need them.
  training::OptimizationOptions OptimizationOver(const training::Reader& train) const {
    training::OptimizationOptions result = optimization;
    result.total_steps = epochs * train.batches_in_epoch() / ranks;
    return result;
  }
};

struct TrainingTask {
  std::string title;                 // such as "ResNet-20 on generated images"
  std::string extent;                // such as "2000 to train, 500 to validate"
  std::string samples;               // their name in messages: "images"
  std::shared_ptr<const void> data;  // kept alive for the readers; may be empty
  // Of all batches; TrainMain has each rank read its own, and has them read ahead.
  std::unique_ptr<training::Reader> train;
  std::unique_ptr<training::Reader> validation;
  std::unique_ptr<training::TrainingProgram> program;
  std::map<std::string, std::string> model_files = {};  // TrainerOptions::model_files
  std::vector<std::string> new_parameters = {};         // TrainerOptions::new_parameters
  // What simple models reach, to be printed beside the best validation value, such as
  // "bigram 1.84".
  std::string baselines = {};
  // Settings besides the fixed flags that a training can't be resumed without, by name.
  std::map<std::string, std::string> configuration = {};
  // The new ones among them, with the values of earlier versions.
  std::map<std::string, std::string> earlier_configuration = {};
};

// Returns a task on data that has an extent() and makes the readers. The caller adds the program.
template <typename Data>
TrainingTask TaskOn(std::shared_ptr<const Data> data, std::string title, std::string samples) {
  return {.title = std::move(title),
          .extent = data->extent(),
          .samples = std::move(samples),
          .data = data,
          .train = data->TrainReader(),
          .validation = data->ValidationReader(),
          .program = nullptr};
}

struct TrainableModel {
  std::string name;     // of the model's folder; the default output directory is "<name>_run"
  std::string summary;  // for --help
  // The command that starts the program, if it isn't tools/train.sh NAME.
  std::string command = {};
  // Flags with another default than the common flags, and this model's default.
  std::vector<std::pair<std::string, std::string>> flag_defaults;
  // The model's own flags that decide about the computation; a training can't be resumed with other
  // values. Where they name files that make_task reads, the contents must be the same, not the
  // names (data_contents.h).
  std::vector<std::string> fixed_flags;
  // Called once the flags are set. Must depend only on flags and its argument.
  std::function<TrainingTask(const TaskOptions&)> make_task;
  // Command lines (flags only) that are worth trying next. Each is shown with an --output_dir of
  // its own.
  std::vector<std::string> try_next;
};

// Runs the whole program, as one of the ranks if a launcher of MPI has started several. Returns its
// exit status: 0 on success, 128 plus the signal if a signal stopped the training and it was saved;
// for errors, that of CommandMain (framework/command_line).
int TrainMain(int argc, char** argv, const TrainableModel& model);

}  // namespace skiff::models
