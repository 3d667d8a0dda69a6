#include "models/common/dataset_choice.h"

#include <algorithm>

#include "framework/base/error.h"
#include "models/common/cifar_reader.h"
#include "models/common/generated_images.h"
#include "models/common/idx_reader.h"

namespace skiff::models {
namespace {

constexpr int64_t kGeneratedValidation = 500;
constexpr int64_t kMnistValidation = 5000;

// In a DatasetChoice, 0 samples means that the number isn't given.
int64_t OrElse(int64_t chosen, int64_t otherwise) { return chosen > 0 ? chosen : otherwise; }

// Training and validation images come from separate random streams, so no image is in both.
DatasetPair Generate(const DatasetChoice& choice) {
  GeneratedImagesOptions options{.channels = choice.channels,
                                 .height = choice.height,
                                 .width = choice.width,
                                 .seed = choice.seed};
  DatasetPair pair;
  options.images = OrElse(choice.limit_samples, choice.generated_samples);
  pair.train = GenerateImages(options);
  options.images = OrElse(choice.validation_samples, kGeneratedValidation);
  options.stream = training::DataStream::kValidationSamples;
  pair.validation = GenerateImages(options);
  return pair;
}

// More samples than there are mean all of them.
void Limit(ImageDataset* dataset, int64_t samples) {
  if (samples > 0 && samples < dataset->size()) *dataset = FirstImages(*dataset, samples);
}

}  // namespace

DatasetPair LoadDatasets(const DatasetChoice& choice) {
  SKIFF_ENFORCE(choice.limit_samples >= 0 && choice.validation_samples >= 0, kInvalidArgument,
                "limit_samples = ", choice.limit_samples,
                ", validation_samples = ", choice.validation_samples,
                ": expected no negative numbers");
  if (choice.data == "generated") return Generate(choice);
  const size_t colon = choice.data.find(':');
  const std::string kind = choice.data.substr(0, colon);
  const std::string directory =
      colon == std::string::npos ? std::string() : choice.data.substr(colon + 1);
  const bool known = kind == "mnist" || kind == "cifar10" || kind == "cifar100";
  SKIFF_ENFORCE(known && !directory.empty(), kInvalidArgument, "data \"", choice.data,
                "\": expected generated, mnist:DIR, cifar10:DIR or cifar100:DIR");
  DatasetPair pair;
  if (kind == "mnist") {
    // The validation images come out of the training files. MNIST's test files aren't read.
    pair = ReadMnist(directory, OrElse(choice.validation_samples, kMnistValidation));
  } else {
    pair = ReadCifar(directory, kind == "cifar10" ? CifarKind::kCifar10 : CifarKind::kCifar100);
    Limit(&pair.validation, choice.validation_samples);
  }
  Limit(&pair.train, choice.limit_samples);
  return pair;
}

AugmentationOptions AugmentationFromName(const std::string& name, const std::string& data) {
  // He et al., "Deep Residual Learning for Image Recognition", section 4.2: 4 pixels on each side.
  constexpr int32_t kPadding = 4;
  if (name == "auto")
    return AugmentationFromName(data.starts_with("cifar") ? "crop_flip" : "none", data);
  if (name == "none") return {};
  if (name == "crop") return {.padding = kPadding};
  if (name == "crop_flip") return {.flip = true, .padding = kPadding};
  Throw(ErrorCode::kInvalidArgument, "augment \"", name,
        "\": expected auto, none, crop or crop_flip");
}

}  // namespace skiff::models
