// Trains a multilayer perceptron. `train --help` lists the flags.

#include <gflags/gflags.h>

#include "framework/base/error.h"
#include "models/common/classifier_main.h"
#include "models/mlp/mlp.h"

DEFINE_int32(hidden_layers, 2, "The number of fully connected layers before the last.");
DEFINE_int64(hidden_units, 256, "The number of units of each hidden layer.");
DEFINE_double(dropout, 0.0, "The share of the hidden units that a training step leaves out.");

int main(int argc, char** argv) {
  return skiff::models::TrainClassifierMain(
      argc, argv,
      {.name = "mlp",
       .summary = "Trains a multilayer perceptron to classify images.",
       .generated_samples = 20000,
       .channels = 1,
       .height = 28,
       .width = 28,
       .flag_defaults = {{"learning_rate", "0.02"}, {"epochs", "15"}},
       .network_flags = {"hidden_layers", "hidden_units", "dropout"},
       .title =
           [] { return skiff::StrCat("MLP of ", FLAGS_hidden_layers, "x", FLAGS_hidden_units); },
       .logits =
           [](const skiff::Variable& image, int64_t classes) {
             return skiff::models::Mlp(image, {.hidden_layers = FLAGS_hidden_layers,
                                               .hidden_units = FLAGS_hidden_units,
                                               .classes = classes,
                                               .dropout = static_cast<float>(FLAGS_dropout)});
           },
       .try_next = {"--data=mnist:DIR --epochs=10", "--dropout=0.3",
                    "--hidden_layers=3 --hidden_units=512"}});
}
