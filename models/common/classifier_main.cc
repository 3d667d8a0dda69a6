#include "models/common/classifier_main.h"

#include <gflags/gflags.h>

#include <memory>

#include "framework/base/error.h"
#include "framework/training/sample_reader.h"
#include "models/common/dataset_choice.h"
#include "models/common/image_source.h"
#include "models/common/train_main.h"

DEFINE_string(data, "generated",
              "What to train on: generated (digits drawn by the program itself), mnist:DIR (IDX "
              "files, plain or .gz), cifar10:DIR or cifar100:DIR (binary version).");
DEFINE_int64(limit_samples, 0,
             "Training images to use, the first ones; how many to draw of generated ones. 0: all, "
             "or as many generated ones as suit the model.");
DEFINE_int64(validation_samples, 0,
             "Images to validate on. 0: 500 generated ones, the last 5000 of MNIST's training "
             "set (always held back from training), all of CIFAR's test images.");
DEFINE_string(augment, "auto",
              "Random changes of training images: none, crop, crop_flip, or auto (crop_flip for "
              "CIFAR, none elsewhere).");

namespace skiff::models {
namespace {

// The images and the sources that read them. The sources point into `images`, so the object isn't
// copyable; the task keeps it alive for its readers.
struct ImageData {
  ImageData(DatasetPair images, const AugmentationOptions& augmentation, uint64_t seed)
      : images(std::move(images)),
        normalization(MeasureNormalization(this->images.train)),
        train(&this->images.train, normalization, augmentation, seed),
        validation(&this->images.validation, normalization) {}
  ImageData(const ImageData&) = delete;
  ImageData& operator=(const ImageData&) = delete;

  DatasetPair images;
  Normalization normalization;
  ImageSource train;
  ImageSource validation;
};

// Loads the data, then makes readers and program from it: the number of classes, the shape of the
// images and the length of the training depend on the data.
TrainingTask MakeTask(const TrainableClassifier& classifier, const TaskOptions& options) {
  const auto data =
      std::make_shared<ImageData>(LoadDatasets({.data = FLAGS_data,
                                                .limit_samples = FLAGS_limit_samples,
                                                .validation_samples = FLAGS_validation_samples,
                                                .generated_samples = classifier.generated_samples,
                                                .channels = classifier.channels,
                                                .height = classifier.height,
                                                .width = classifier.width,
                                                .seed = options.seed}),
                                  AugmentationFromName(FLAGS_augment, FLAGS_data), options.seed);
  TrainingTask task{
      .title = classifier.title() + " on " + data->images.train.name + " images",
      .extent = StrCat(data->images.train.size(), " to train, ", data->images.validation.size(),
                       " to validate"),
      .samples = "images",
      .data = data,
      .train = std::make_unique<training::SampleReader>(
          &data->train, training::SampleReaderOptions{.batch_size = options.batch_size,
                                                      .shuffle = true,
                                                      .drop_last = true,
                                                      .seed = options.seed}),
      .validation = std::make_unique<training::SampleReader>(
          &data->validation, training::SampleReaderOptions{.batch_size = options.batch_size}),
      .program = nullptr};
  task.new_parameters = classifier.new_parameters;
  task.earlier_configuration = classifier.earlier_flags;
  task.program = std::make_unique<training::TrainingProgram>(BuildClassifier(
      data->images.train, classifier.logits, options.OptimizationOver(*task.train), options.seed));
  return task;
}

}  // namespace

int TrainClassifierMain(int argc, char** argv, const TrainableClassifier& classifier) {
  // These decide which samples a training sees, so a resumed one must have the same.
  std::vector<std::string> fixed_flags = {"augment", "data", "limit_samples", "validation_samples"};
  fixed_flags.insert(fixed_flags.end(), classifier.network_flags.begin(),
                     classifier.network_flags.end());
  return TrainMain(
      argc, argv,
      {.name = classifier.name,
       .summary = classifier.summary,
       .flag_defaults = classifier.flag_defaults,
       .fixed_flags = std::move(fixed_flags),
       .make_task = [&](const TaskOptions& options) { return MakeTask(classifier, options); },
       .try_next = classifier.try_next});
}

}  // namespace skiff::models
