// The train programs of image classifiers.
//
// A model's train.cc defines main and the flags of its own:
//
//   int main(int argc, char** argv) {
//     return skiff::models::TrainClassifierMain(argc, argv, {.name = "lenet", …, .logits = …});
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/common/classifier_program.h"

namespace skiff::models {

struct TrainableClassifier {
  std::string name;     // of the model's folder; the default output directory is "<name>_run"
  std::string summary;  // for --help
  // The number of generated training images, and their shape.
  int64_t generated_samples = 2000;
  int32_t channels = 3;
  int32_t height = 32;
  int32_t width = 32;
  // Flags with another default than the common flags, and this model's default.
  std::vector<std::pair<std::string, std::string>> flag_defaults;
  // The model's own flags that decide about the network; a training can't be resumed with other
  // values.
  std::vector<std::string> network_flags;
  // The new ones among them, with the values of earlier versions.
  std::map<std::string, std::string> earlier_flags = {};
  // How the names of the parameters begin that --initial_model may lack, or have for other classes.
  // Empty: it may lack any.
  std::vector<std::string> new_parameters = {};
  // Called once the flags are set. They return a title such as "ResNet-20", and the network.
  std::function<std::string()> title;
  BuildLogits logits;
  // Command lines (flags only) that are worth trying next. Each is shown with an --output_dir of
  // its own.
  std::vector<std::string> try_next;
};

// Runs TrainMain (train_main.h) with the data, readers and programs of an image classifier. Adds
// flags for the data. Returns the exit status.
int TrainClassifierMain(int argc, char** argv, const TrainableClassifier& classifier);

}  // namespace skiff::models
