// Trains LeNet. `train --help` lists the flags.

#include "models/common/classifier_main.h"
#include "models/lenet/lenet.h"

int main(int argc, char** argv) {
  return skiff::models::TrainClassifierMain(
      argc, argv,
      {.name = "lenet",
       .summary = "Trains LeNet-5 (LeCun et al. 1998) to classify images.",
       .generated_samples = 10000,
       .channels = 1,
       .height = 28,
       .width = 28,
       .flag_defaults = {{"learning_rate", "0.02"}, {"epochs", "8"}},
       .title = [] { return "LeNet"; },
       .logits = skiff::models::LeNet,
       .try_next = {"--data=mnist:DIR --epochs=10", "--limit_samples=20000",
                    "--optimizer=adam --learning_rate=0.001"}});
}
