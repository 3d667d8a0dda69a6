// Trains a residual network. `train --help` lists the flags.

#include <gflags/gflags.h>

#include "framework/base/error.h"
#include "models/common/classifier_main.h"
#include "models/resnet/resnet.h"

DEFINE_int32(depth, 20,
             "20, 32, 44, 56 or 110: the small networks for 32x32 images; 18, 34, 50 or 101: those "
             "for ImageNet, with a 3x3 stem for images below 64x64.");

DEFINE_string(stem, "by_size",
              "Of depths 18 to 101: by_size, small (a 3x3 convolution) or large (a 7x7 convolution "
              "and a pooling, as for ImageNet). by_size: large for images of at least 64x64. "
              "Pretrained weights have the large one.");

int main(int argc, char** argv) {
  return skiff::models::TrainClassifierMain(
      argc, argv,
      {.name = "resnet",
       .summary = "Trains a residual network (He et al. 2016) to classify images.",
       .flag_defaults = {{"learning_rate", "0.05"}},
       .network_flags = {"depth", "stem"},
       .earlier_flags = {{"stem", "by_size"}},
       .new_parameters = {skiff::models::kResNetHead},
       .title = [] { return skiff::StrCat("ResNet-", FLAGS_depth); },
       .logits =
           [](const skiff::Variable& image, int64_t classes) {
             return skiff::models::ResNet(image,
                                          {.depth = FLAGS_depth,
                                           .classes = classes,
                                           .stem = skiff::models::ResNetStemFromName(FLAGS_stem)});
           },
       .try_next = {"--limit_samples=10000 --epochs=10",
                    "--data=cifar10:DIR --epochs=100 --weight_decay=5e-4",
                    "--data=mnist:DIR --epochs=3", "--depth=18"}});
}
