#include "tools/model_workload/model_workload.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/precision/half_rewrite.h"
#include "framework/text/pair_reader.h"
#include "framework/training/half_model.h"
#include "models/char_rnn/char_rnn.h"
#include "models/char_rnn/stream_reader.h"
#include "models/lenet/lenet.h"
#include "models/line_reader/line_batches.h"
#include "models/line_reader/line_reader.h"
#include "models/mlp/mlp.h"
#include "models/resnet/resnet.h"
#include "models/seq2seq/seq2seq.h"
#include "models/tagger/tag_reader.h"
#include "models/tagger/tagger.h"
#include "models/text_classifier/text_classifier.h"
#include "models/vgg/vgg.h"
#include "tools/model_workload/ernie_workload.h"
#include "tools/model_workload/recurrent_workload.h"
#include "tools/model_workload/seq2seq_workload.h"

namespace skiff {
namespace {

// The loss of a network, appended to the default programs, and the feeds of each batch.
struct Built {
  Variable loss;
  std::vector<FeedList> batches;
};

struct Model {
  std::string name;
  std::function<Built(const ModelWorkloadOptions&)> build;
};

// Random numbers in [-1, 1): times don't depend on the contents of images, and a fixed seed makes
// the loss and the hash of the weights comparable between runs.
Tensor GeneratedImages(const Shape& shape, uint64_t seed) {
  Tensor pixels(shape, DType::kFloat32);
  const Philox philox({seed, 0, 0});
  float* values = pixels.data<float>();
  for (int64_t i = 0; i < pixels.element_count(); ++i) {
    values[i] = UnitFloat(philox.At(static_cast<uint64_t>(i))[0]) * 2 - 1;
  }
  return pixels;
}

Tensor GeneratedLabels(int64_t count, int64_t classes, uint64_t seed) {
  Tensor labels({count, 1}, DType::kInt64);
  const Philox philox({seed, 0, 0});
  for (int64_t i = 0; i < count; ++i) {
    labels.data<int64_t>()[i] = philox.At(static_cast<uint64_t>(i))[1] % classes;
  }
  return labels;
}

// Returns the model of a network that classifies images of the shape `image`.
Model Classifier(const std::string& name, const Shape& image,
                 std::function<Variable(const Variable&)> network) {
  return {name, [=](const ModelWorkloadOptions& options) -> Built {
            SKIFF_ENFORCE(options.length == 0, kInvalidArgument, "length = ", options.length, ": ",
                          name, " reads images, expected no length of sequences");
            std::vector<int64_t> dims{-1};
            dims.insert(dims.end(), image.begin(), image.end());
            const Variable logits = network(layers::Data("image", dims));
            const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
            dims[0] = options.batch_size;
            return {.loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label)),
                    .batches = {
                        FeedList{{"image", GeneratedImages(Shape(dims), options.seed)},
                                 {"label", GeneratedLabels(options.batch_size, logits.dims().back(),
                                                           options.seed)}}}};
          }};
}

// Returns ragged sequences of 1/2 to 3/2 of `length` ids.
Tensor GeneratedSequences(int64_t count, int64_t length, int64_t vocabulary, uint64_t seed) {
  const Philox philox({seed, 0, 0});
  std::vector<int64_t> lengths, ids;
  for (int64_t i = 0; i < count; ++i) {
    const Philox::Block words = philox.At(static_cast<uint64_t>(i));
    lengths.push_back((length + 1) / 2 + words[2] % length);
    for (int64_t k = 0; k < lengths.back(); ++k)
      ids.push_back(philox.At(ids.size())[3] % vocabulary);
  }
  Tensor sequences = Tensor::FromValues<int64_t>({std::ssize(ids)}, ids);
  sequences.set_lod({OffsetsOf(lengths)});
  return sequences;
}

Model TextModel(const std::string& network) {
  return {"text_" + network, [=](const ModelWorkloadOptions& options) -> Built {
            const models::TextClassifierOptions sizes{.network = network, .vocabulary = 8000};
            const Variable ids = layers::Data("ids", {-1}, DType::kInt64, {.lod_level = 1});
            const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
            const Variable scores = models::TextClassifier(ids, sizes);
            const int64_t length = options.length == 0 ? 32 : options.length;
            return {
                .loss = layers::Mean(layers::SoftmaxWithCrossEntropy(scores, label)),
                .batches = {FeedList{
                    {"ids", GeneratedSequences(options.batch_size, length, sizes.vocabulary,
                                               options.seed)},
                    {"label", GeneratedLabels(options.batch_size, sizes.classes, options.seed)}}}};
          }};
}

// Sentences of about 20 words, or of `length`, with three types of entities.
Built BuildTagging(const ModelWorkloadOptions& options) {
  using models::TagReader;
  const models::TaggerOptions sizes{.words = 8000, .tags = 7};
  const Variable words = layers::Data(TagReader::kWords, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable tags = layers::Data(TagReader::kTags, {-1, 1}, DType::kInt64, {.lod_level = 1});
  const int64_t length = options.length == 0 ? 20 : options.length;
  const Tensor ids = GeneratedSequences(options.batch_size, length, sizes.words, options.seed);
  Tensor labels = GeneratedLabels(ids.shape()[0], sizes.tags, options.seed);
  labels.set_lod(ids.lod());
  return {.loss = models::TaggerLoss(words, tags, sizes),
          .batches = {FeedList{{TagReader::kWords, ids}, {TagReader::kTags, std::move(labels)}}}};
}

// Character models, with the sizes of their training.
Model CharModel(const std::string& cell) {
  return {
      "char_" + cell, [=](const ModelWorkloadOptions& options) -> Built {
        using models::StreamReader;
        const models::CharRnnOptions sizes{.cell = cell, .characters = 65};
        const int64_t steps =
            options.length == 0 ? models::StreamReaderOptions().steps : options.length;
        const int64_t batch = options.batch_size;
        const Variable ids = layers::Data(StreamReader::kIds, {-1, batch}, DType::kInt64);
        const Variable label = layers::Data(StreamReader::kLabel, {-1, batch, 1}, DType::kInt64);
        const Variable carried = layers::Data(StreamReader::kCarried, {1});
        const Variable loss = models::CharRnnLoss(ids, label, carried, sizes);
        const Tensor next = GeneratedLabels(steps * batch, sizes.characters, options.seed);
        return {
            .loss = loss,
            .batches = {FeedList{{StreamReader::kIds, next.Reshaped({steps, batch})},
                                 {StreamReader::kLabel, next.Reshaped({steps, batch, 1})},
                                 {StreamReader::kCarried, Tensor::FromValues<float>({1}, {1})}}}};
      }};
}

// Lines of text of 96 columns, with the sizes of the training; with `length` of twice as many
// columns, which are so many time steps.
Built BuildLineReading(const ModelWorkloadOptions& options) {
  using models::LineBatches;
  const models::LineReaderOptions sizes{.characters = 37};
  const int64_t steps = options.length == 0 ? 48 : options.length;
  const int64_t batch = options.batch_size;
  const int64_t labels = std::max<int64_t>(1, steps / 4);
  const Variable loss = models::LineReaderLoss(sizes);
  Tensor label = GeneratedLabels(batch * labels, sizes.characters, options.seed);
  for (int64_t& id : label.values<int64_t>()) ++id;
  const auto all = [&](int64_t number) {
    return Tensor::FromValues<int64_t>({batch},
                                       std::vector<int64_t>(static_cast<size_t>(batch), number));
  };
  return {
      .loss = loss,
      .batches = {FeedList{{LineBatches::kImage, GeneratedImages({batch, 1, models::kLineHeight,
                                                                  steps * models::kColumnsPerStep},
                                                                 options.seed)},
                           {LineBatches::kSteps, all(steps)},
                           {LineBatches::kLabel, label.Reshaped({batch, labels})},
                           {LineBatches::kLabelLength, all(labels)}}}};
}

// Translation of sentences of about 15 words, or of `length`, by vocabularies of 8,000.
Built BuildTranslation(const ModelWorkloadOptions& options) {
  using text::PairReader;
  const models::Seq2SeqOptions sizes{
      .source_tokens = 8000, .target_tokens = 8000, .embedding = 256, .hidden = 256};
  const int64_t length = options.length == 0 ? 15 : options.length;
  const Variable source = layers::Data(PairReader::kSource, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable given = layers::Data(PairReader::kGiven, {-1}, DType::kInt64, {.lod_level = 1});
  const Variable label = layers::Data(PairReader::kLabel, {-1, 1}, DType::kInt64);
  const Tensor ids = GeneratedSequences(options.batch_size, length, 8000, options.seed);
  Tensor next = ids.Reshaped({ids.shape()[0], 1});
  return {.loss = models::Seq2SeqLoss(source, given, label, sizes),
          .batches = {FeedList{{PairReader::kSource, ids},
                               {PairReader::kGiven, ids},
                               {PairReader::kLabel, std::move(next)}}}};
}

Built BuildSeq2Seq(const Seq2SeqWorkload& workload, const ModelWorkloadOptions& options) {
  std::vector<PairLengths> pairs = options.pairs;
  if (pairs.empty()) {
    const int64_t length = options.length == 0 ? 30 : options.length;
    pairs.assign(static_cast<size_t>(options.batch_size), {length, length});
  }
  BuiltSeq2Seq built =
      BuildSeq2SeqWorkload(workload, options.decoder, options.batch_size, pairs, options.seed);
  return {.loss = built.loss, .batches = std::move(built.batches)};
}

// Returns one or more models per folder of models/. benchmark_coverage_test
// (tests/models) fails for a folder without one.
std::vector<Model> Models() {
  std::vector<Model> models = {
      Classifier("mlp", {1, 28, 28}, [](const Variable& x) { return models::Mlp(x, {}); }),
      Classifier("lenet", {1, 28, 28}, [](const Variable& x) { return models::LeNet(x, 10); })};
  for (const int32_t depth : models::ResNetDepths()) {
    const bool is_large = depth == 34 || depth == 50 || depth == 101;
    const int64_t side = is_large ? 224 : 32;
    const int64_t classes = is_large ? 1000 : 10;
    models.push_back(Classifier(StrCat("resnet", depth), {3, side, side}, [=](const Variable& x) {
      return models::ResNet(x, {.depth = depth, .classes = classes});
    }));
  }
  for (const int32_t depth : models::VggDepths()) {
    models.push_back(Classifier(StrCat("vgg", depth), {3, 32, 32}, [=](const Variable& x) {
      return models::Vgg(x, {.depth = depth});
    }));
  }
  for (const char* network : {"cnn", "gru", "lstm"}) models.push_back(TextModel(network));
  for (const char* cell : {"lstm", "gru"}) models.push_back(CharModel(cell));
  models.push_back({"line_reader", BuildLineReading});
  models.push_back({"tagger", BuildTagging});
  models.push_back({"seq2seq", BuildTranslation});
  for (const Seq2SeqWorkload& seq2seq : Seq2SeqWorkloads()) {
    models.push_back({seq2seq.name, [=](const ModelWorkloadOptions& options) {
                        return BuildSeq2Seq(seq2seq, options);
                      }});
  }
  for (const RecurrentWorkload& recurrent : RecurrentWorkloads()) {
    models.push_back({recurrent.name, [=](const ModelWorkloadOptions& options) -> Built {
                        BuiltRecurrent built = BuildRecurrent(recurrent, options.batch_size,
                                                              options.length, options.seed);
                        return {.loss = built.loss, .batches = {std::move(built.feeds)}};
                      }});
  }
  for (const ErnieWorkload& ernie : ErnieWorkloads()) {
    models.push_back({ernie.name, [=](const ModelWorkloadOptions& options) -> Built {
                        ErnieWorkload workload = ernie;
                        if (options.length != 0) workload.length = options.length;
                        BuiltErnie built = BuildErnie(workload, options.batch_size, options.seed);
                        return {.loss = built.loss, .batches = {std::move(built.feeds)}};
                      }});
  }
  return models;
}

Model ModelOf(const std::string& name) {
  std::vector<std::string> names;
  for (Model& model : Models()) {
    if (model.name == name) return std::move(model);
    names.push_back(model.name);
  }
  Throw(ErrorCode::kInvalidArgument, "model \"", name, "\": expected one of ", Join(names, ", "));
}

void Minimize(const Variable& loss, const std::string& name, const PrecisionOptions& precision) {
  const Regularizer decay = L2Decay(1e-4f);
  const optimizer::MinimizeOptions options = {.precision = precision};
  if (name == "momentum") {
    optimizer::Momentum({.learning_rate = 0.01, .momentum = 0.9f, .regularization = decay})
        .Minimize(loss, options);
    return;
  }
  if (name == "plain_adam") {
    optimizer::Adam({.learning_rate = 1e-3, .clip = ClipByGlobalNorm(5.0f)})
        .Minimize(loss, options);
    return;
  }
  SKIFF_ENFORCE(name == "adam", kInvalidArgument, "optimizer \"", name,
                "\": expected momentum, adam or plain_adam");
  optimizer::Adam({.learning_rate = 1e-4, .clip = ClipByGlobalNorm(1.0f), .regularization = decay})
      .Minimize(loss, options);
}

// Has a program of inference, whose parameters are in the executor's scope, compute in half.
void EvaluateIn(const PrecisionOptions& precision, const std::string& fetch, Program* program,
                Executor* executor) {
  if (precision.dtype == DType::kFloat32) return;
  RewriteForInference(DefaultOpRegistry(), precision, {fetch}, program);
  training::CastToDeclared(*program, executor);
}

}  // namespace

ModelWorkload MakeModelWorkload(const std::string& name, const ModelWorkloadOptions& options,
                                Executor* executor) {
  const Model model = ModelOf(name);
  SKIFF_ENFORCE(options.pairs.empty() ||
                    std::ranges::count(Seq2SeqWorkloads(), name, &Seq2SeqWorkload::name) > 0,
                kInvalidArgument, "pairs of sentences with ", name,
                ", expected seq2seq_gru_bahdanau or seq2seq_lstm_luong");
  ModelWorkload workload{.program = std::make_unique<Program>(), .batches = {}, .fetch = {}};
  Program startup;
  workload.program->seed = startup.seed = options.seed;
  {
    ProgramGuard guard(workload.program.get(), &startup);
    Built built = model.build(options);
    workload.fetch = built.loss.name();
    workload.batches = std::move(built.batches);
    if (options.trains) Minimize(built.loss, options.optimizer, options.precision);
  }
  // Dropout and batch normalisation compute something else in inference.
  if (!options.trains) workload.program = workload.program->CloneForTest();
  executor->Run(startup);
  if (!options.trains) {
    EvaluateIn(options.precision, workload.fetch, workload.program.get(), executor);
  }
  return workload;
}

ModelWorkload LoadModelWorkload(const std::string& directory, const ModelWorkloadOptions& options,
                                Executor* executor) {
  // Trainings save all parameters in one file; without it there is one file per parameter.
  InferenceModelFiles files;
  if (PathExists(JoinPath(directory, kCombinedParamsFile))) {
    files.params_filename = kCombinedParamsFile;
  }
  InferenceModel model = LoadInferenceModel(directory, &executor->scope(), files);
  ModelWorkload workload{
      .program = std::move(model.program), .batches = {{}}, .fetch = model.fetch_names.at(0)};
  for (const std::string& name : model.feed_names) {
    const Var& feed = *workload.program->root()->FindVar(name);
    Shape shape(feed.dims);
    if (shape.rank() > 0 && shape[0] == -1) shape[0] = options.batch_size;
    SKIFF_ENFORCE(feed.dtype == DType::kFloat32 && shape.is_known(), kUnimplemented, directory,
                  ": feed \"", name, "\" is ", feed.dtype, " of shape ", Shape(feed.dims),
                  ", expected float32 and no unknown extents but the first");
    workload.batches[0].emplace_back(name, GeneratedImages(shape, options.seed));
  }
  EvaluateIn(options.precision, workload.fetch, workload.program.get(), executor);
  return workload;
}

}  // namespace skiff
