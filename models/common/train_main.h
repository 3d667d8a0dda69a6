// What the train programs of all models have in common: flags, training, messages.
//
// A model gives the readers and the programs; classifier_main.h does that for image classifiers.
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

// What the common flags say about a task.
struct TaskOptions {
  int64_t batch_size = 0;
  int64_t epochs = 0;
  uint64_t seed = 0;
  training::OptimizationOptions optimization;  // the task sets total_steps
};

struct TrainingTask {
  std::string title;                 // such as "ResNet-20 on generated images"
  std::string extent;                // such as "2000 to train, 500 to validate"
  std::string samples;               // what they are called: "images"
  std::shared_ptr<const void> data;  // what the readers read; may be empty
  std::unique_ptr<training::Reader> train;
  std::unique_ptr<training::Reader> validation;
  std::unique_ptr<training::TrainingProgram> program;
  std::map<std::string, std::string> model_files = {};  // TrainerOptions::model_files
};

struct TrainableModel {
  std::string name;     // the folder's, and the default output directory's
  std::string summary;  // what it trains, for --help
  // Defaults of flags that aren't the common ones.
  std::vector<std::pair<std::string, std::string>> flag_defaults;
  // The flags of the model's own that decide what is computed; a training can't be resumed with
  // other values.
  std::vector<std::string> fixed_flags;
  // Called once the flags are set. Must use nothing but flags and its argument.
  std::function<TrainingTask(const TaskOptions&)> make_task;
  // Command lines (flags only) that are worth trying next. Each is shown with an --output_dir of
  // its own.
  std::vector<std::string> try_next;
};

// The whole program. Returns its exit status: 0 if it did what it was told, 128 plus the signal
// after an interruption that was saved; for errors as CommandMain (framework/command_line).
int TrainMain(int argc, char** argv, const TrainableModel& model);

}  // namespace skiff::models
