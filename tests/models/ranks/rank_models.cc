#include "tests/models/ranks/rank_models.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "framework/base/error.h"
#include "framework/training/sample_reader.h"
#include "framework/training/sequence_reader.h"
#include "models/char_rnn/char_data.h"
#include "models/char_rnn/char_rnn.h"
#include "models/common/classifier_program.h"
#include "models/common/generated_images.h"
#include "models/common/image_source.h"
#include "models/common/training_programs.h"
#include "models/ernie/pretraining.h"
#include "models/ernie/pretraining_data.h"
#include "models/lenet/lenet.h"
#include "models/mlp/mlp.h"
#include "models/resnet/resnet.h"
#include "models/seq2seq/seq2seq.h"
#include "models/seq2seq/translation_data.h"
#include "models/text_classifier/text_classifier.h"
#include "models/text_classifier/text_data.h"
#include "models/vgg/vgg.h"
#include "skiff/skiff.h"

namespace skiff::models {
namespace {

using training::OptimizationOptions;
using training::TrainingProgram;

constexpr uint64_t kSeed = 3;

struct Images {
  explicit Images(const GeneratedImagesOptions& options)
      : dataset(GenerateImages(options)), source(&dataset, MeasureNormalization(dataset)) {}
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;

  ImageDataset dataset;
  ImageSource source;
};

RankModel Classifier(const char* name, int32_t channels, int32_t extent, BuildLogits logits) {
  auto images = std::make_shared<Images>(GeneratedImagesOptions{
      .images = 40, .channels = channels, .height = extent, .width = extent});
  return {
      .name = name,
      .program =
          [images, logits = std::move(logits)](const OptimizationOptions& optimization) {
            return TrainingProgram(BuildClassifier(images->dataset, logits, optimization, kSeed));
          },
      .reader =
          [images] {
            return std::make_unique<training::SampleReader>(
                &images->source,
                training::SampleReaderOptions{.batch_size = 4, .shuffle = true, .seed = kSeed});
          }};
}

// Of data that make readers.
template <typename Data, typename Build>
RankModel On(const char* name, std::shared_ptr<const Data> data, Build build) {
  return {.name = name,
          .program =
              [data, build](const OptimizationOptions& optimization) {
                return build(*data, optimization);
              },
          .reader = [data] { return data->TrainReader(); }};
}

RankModel Ernie() {
  return On("ernie",
            std::shared_ptr<const PretrainingData>(MakePretrainingData(
                {.length = 48, .most_masked = 12, .world_documents = 20, .batch_size = 4})),
            [](const PretrainingData& data, const OptimizationOptions& optimization) {
              return BuildErniePretraining(
                  {.vocabulary = data.vocabulary().size(),
                   .hidden = 32,
                   .layers = 2,
                   .heads = 2,
                   .feed_forward = 64,
                   .positions = 48,
                   .sentences = data.sentences(),
                   .tasks = data.tasks()},
                  {.length = 48, .masked = 12, .sentence_tasks = data.sentence_tasks()},
                  optimization, kSeed);
            });
}

RankModel Texts() {
  return On("text_classifier",
            std::make_shared<const TextData>(
                TextDataOptions{.vocabulary_size = 120, .batch_size = 4, .most_tokens = 60}),
            [](const TextData& data, const OptimizationOptions& optimization) {
              return BuildTextClassifier({.network = "gru",
                                          .vocabulary = data.vocabulary().size(),
                                          .embedding = 12,
                                          .hidden = 12},
                                         optimization, kSeed);
            });
}

RankModel Characters() {
  return On("char_rnn",
            std::make_shared<const CharData>(CharDataOptions{.batch_size = 3, .steps = 9}),
            [](const CharData& data, const OptimizationOptions& optimization) {
              return BuildCharRnn({.characters = data.alphabet().size(),
                                   .embedding = 10,
                                   .hidden = 20,
                                   .carries_states = false},
                                  3, optimization, kSeed);
            });
}

RankModel Translation() {
  return On("seq2seq",
            std::make_shared<const TranslationData>(
                TranslationDataOptions{.batch_size = 4, .most_tokens = 200}),
            [](const TranslationData& data, const OptimizationOptions& optimization) {
              return BuildSeq2Seq({.source_tokens = data.source().size(),
                                   .target_tokens = data.target().size(),
                                   .embedding = 12,
                                   .hidden = 16},
                                  optimization, kSeed);
            });
}

// Word ids of which few occur in a batch.
class WordSource final : public training::SampleSource {
 public:
  static constexpr int64_t kWords = 97;

  int64_t size() const override { return 50; }
  std::vector<training::FeedShape> fields() const override {
    return {{"words", {5}, DType::kInt64}, {"target", {2}, DType::kFloat32}};
  }
  void Read(int64_t sample, int64_t /*epoch*/, int64_t row,
            std::span<Tensor> fields) const override {
    for (int64_t i = 0; i < 5; ++i) {
      training::RowOf<int64_t>(fields[0], row)[static_cast<size_t>(i)] =
          (sample * (i + 3) + i * i) % kWords;
    }
    for (int64_t i = 0; i < 2; ++i) {
      training::RowOf<float>(fields[1], row)[static_cast<size_t>(i)] =
          static_cast<float>((sample + i) % 7) * 0.25f;
    }
  }
};

TrainingProgram WordProgram(const OptimizationOptions& optimization) {
  TrainingProgram program = EmptyTraining(optimization, kSeed);
  const ProgramGuard guard(program.main.get(), program.startup.get());
  const Variable words = layers::Data("words", {-1, 5}, DType::kInt64);
  const Variable target = layers::Data("target", {-1, 2});
  const Variable table =
      layers::Embedding(words, {.rows = WordSource::kWords, .width = 6, .is_sparse = true});
  const Variable hidden = layers::Fc(table, 8, {.num_flatten_dims = 1, .act = "tanh"});
  const Variable loss = layers::Mean(layers::Square(layers::Fc(hidden, 2) - target));
  program.loss = loss.name();
  training::Optimize(loss, optimization);
  return program;
}

RankModel Words() {
  auto source = std::make_shared<WordSource>();
  return {.name = "words", .program = WordProgram, .reader = [source] {
            return std::make_unique<training::SampleReader>(
                source.get(),
                training::SampleReaderOptions{.batch_size = 3, .shuffle = true, .seed = kSeed});
          }};
}

RankModel MlpModel() {
  return Classifier("mlp", 1, 8, [](const Variable& image, int64_t classes) {
    return Mlp(image, {.hidden_units = 20, .classes = classes, .dropout = 0.3f});
  });
}

RankModel LeNetModel() { return Classifier("lenet", 1, 12, LeNet); }

RankModel ResNetModel() {
  return Classifier("resnet20", 3, 8, [](const Variable& image, int64_t classes) {
    return ResNet(image, {.depth = 20, .classes = classes});
  });
}

RankModel VggModel() {
  return Classifier("vgg11", 3, 32, [](const Variable& image, int64_t classes) {
    return Vgg(image, {.depth = 11, .classes = classes});
  });
}

using MakeModel = RankModel (*)();
constexpr std::pair<const char*, MakeModel> kModels[] = {
    {"mlp", MlpModel},        {"lenet", LeNetModel},    {"resnet20", ResNetModel},
    {"vgg11", VggModel},      {"ernie", Ernie},         {"text_classifier", Texts},
    {"char_rnn", Characters}, {"seq2seq", Translation}, {"words", Words}};

}  // namespace

std::vector<std::string> RankModelNames() {
  std::vector<std::string> names;
  for (const auto& [name, make] : kModels) names.emplace_back(name);
  return names;
}

RankModel MakeRankModel(const std::string& name) {
  const auto* found =
      std::ranges::find(kModels, name, [](const auto& model) { return std::string(model.first); });
  SKIFF_ENFORCE(found != std::end(kModels), kNotFound, "there is no model \"", name,
                "\" for tests of ranks");
  return found->second();
}

}  // namespace skiff::models
