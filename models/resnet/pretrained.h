// ResNets of other frameworks as models of models/resnet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/common/pretrained.h"

namespace skiff::models {

enum class ResNetSource {
  kHuggingFace,  // transformers' ResNetModel and ResNetForImageClassification
  kTorchvision,  // torchvision.models.resnet18 … resnet101
  kTimm,         // timm's models of the same names
  kPaddle,       // an inference model of paddle.vision.models
};

struct ResNetConversion : Conversion {
  ResNetSource from = ResNetSource::kTorchvision;
  int64_t extent = 224;  // of the images that the saved program takes; training doesn't read it
};

// Returns the rules of a source's names for a depth of 18, 34, 50 or 101.
std::vector<NameRule> ResNetRules(ResNetSource from, int32_t depth);

// Writes a folder that models/resnet:train takes as --initial_model. The program takes images [-1,
// channels, extent, extent], and returns the probabilities and the logits of the classes, or the
// vectors of the images [-1, width] if the source has no classifier. Returns a report. Throws what
// WriteConverted throws, and an Error (kInvalidArgument) for a network that models/resnet doesn't
// have, as far as the names and shapes of the weights, the configuration of transformers and timm,
// or Paddle's program say so.
std::string ConvertResNet(const ResNetConversion& conversion);

}  // namespace skiff::models
