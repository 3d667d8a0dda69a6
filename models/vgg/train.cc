// Trains a VGG. `train --help` lists the flags.
#include <gflags/gflags.h>

#include "framework/base/error.h"
#include "models/common/classifier_main.h"
#include "models/vgg/vgg.h"

DEFINE_int32(depth, 11, "layers of the network: 11, 13, 16 or 19");

int main(int argc, char** argv) {
  return skiff::models::TrainClassifierMain(
      argc, argv,
      {.name = "vgg",
       .summary = "Trains a VGG (Simonyan and Zisserman 2015) to classify images.",
       .flag_defaults = {{"learning_rate", "0.01"}, {"epochs", "3"}},
       .network_flags = {"depth"},
       .title = [] { return skiff::StrCat("VGG-", FLAGS_depth); },
       .logits =
           [](const skiff::Variable& image, int64_t classes) {
             return skiff::models::Vgg(image, {.depth = FLAGS_depth, .classes = classes});
           },
       .try_next = {"--depth=16 --data=cifar10:DIR --epochs=100 --weight_decay=5e-4"}});
}
