// The options of a Trainer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/place.h"
#include "framework/executor/api/compile_options.h"
#include "framework/precision/precision_options.h"
#include "framework/training/callback.h"
#include "framework/training/file_setting.h"

namespace skiff::training {

struct TrainerOptions {
  std::string title = {};           // of the learning curve
  std::string output_dir = {};      // made if it doesn't exist
  std::string samples = "samples";  // their name in messages: images, sentences, …
  int64_t epochs = 1;
  // In addition to the end of each epoch: at multiples of this number, or, where no checkpoint may
  // be made, at the next moment that allows one.
  int64_t save_every_steps = 0;
  int64_t early_stop_epochs = 0;  // stops after so many epochs without a better value; 0: never
  int64_t stop_after_steps = 0;   // saves and stops there as a signal would; 0: never
  // Makes checkpoints, and stops, only between two rounds of gradient_merge; at the end of an
  // epoch, the checkpoint waits for the end of the round, too. Any number of ranks, with rounds of
  // any length, can go on from such a checkpoint. Several ranks always do so.
  bool whole_rounds = false;
  // A saved model or safetensors file whose parameters the training begins with
  // (initial_weights.h). Empty: none.
  std::string initial_model = {};
  // As of TakeWeights. Empty: the model may lack any parameter.
  std::vector<std::string> new_parameters = {};
  // Of the saved models, whatever the training computes in.
  PrecisionOptions saved_precision = {};
  // Files that programs need beside the weights, such as a vocabulary: names and contents. They are
  // written into model/.
  std::map<std::string, std::string> model_files = {};
  // Settings that must not change between a training and its continuation, by name. The trainer
  // adds "precision" and "precision_level" (program_precision.h) where they aren't there; a
  // checkpoint without them was made in float32.
  std::map<std::string, std::string> configuration = {};
  // Settings that later versions have added, by name, with the values that reproduce earlier
  // versions: a checkpoint without such a setting was made with the value here.
  std::map<std::string, std::string> earlier_configuration = {};
  // Settings that name files, by name: their forms and contents must not change. Checkpoints keep
  // the values, too, for whoever looks into them.
  std::map<std::string, FileSetting> file_settings = {};
  // Are called in this order. A checkpoint identifies the callbacks' states by this order.
  std::vector<std::shared_ptr<Callback>> callbacks = {};
  bool is_terminal = false;        // of `out`
  Place place = Place::Default();  // where both programs run
  // How both programs are compiled, and the ranks that train together: trainer.h. With a tuner,
  // which must be made for the default registry, all choices are made before the first step, so
  // every checkpoint holds all choices; the readers must then know the shapes of their batches.
  CompileOptions compile = {};
};

}  // namespace skiff::training
