#include "models/seq2seq/translator.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/parameters.h"
#include "models/seq2seq/network_file.h"
#include "models/seq2seq/pair_reader.h"
#include "models/seq2seq/token_ids.h"
#include "models/seq2seq/translation_data.h"

namespace skiff::models {
namespace {

void CheckTable(const Program& program, const char* name, const TokenVocabulary& vocabulary,
                const std::string& directory) {
  const Var* table = program.root()->FindVar(name);
  const int64_t rows = table == nullptr || table->dims.empty() ? 0 : table->dims[0];
  SKIFF_ENFORCE(rows == vocabulary.size(), kInvalidArgument, directory, ": the model's \"", name,
                "\" has ", rows, " tokens, the vocabulary has ", vocabulary.size());
}

// Throws an Error (kInvalidArgument) unless the scope has all parameters of the network that a file
// describes.
void CheckParameters(const Program& network, const Scope& scope, const std::string& path) {
  for (const std::string& name : PersistableNames(network)) {
    const Shape expected(network.root()->FindVar(name)->dims);
    const Tensor* found = scope.Find(name);
    SKIFF_ENFORCE(found != nullptr, kInvalidArgument, path, ": the network has a parameter \"",
                  name, "\", the model beside it has none");
    SKIFF_ENFORCE(found->shape() == expected, kInvalidArgument, path, ": the network's \"", name,
                  "\" has the shape ", expected, ", that of the model beside it ", found->shape());
  }
}

}  // namespace

Translator::Translator(const std::string& model_directory, const BeamOptions& beam)
    : source_(TokenVocabulary::Load(model_directory, kSourceSide)),
      target_(TokenVocabulary::Load(model_directory, kTargetSide)) {
  InferenceModel model = LoadInferenceModel(model_directory, &executor_.scope(),
                                            {.params_filename = kCombinedParamsFile});
  const std::vector<std::string> feeds = {PairReader::kSource, kTranslationRoom};
  SKIFF_ENFORCE(model.feed_names == feeds && model.fetch_names.size() == 2, kInvalidArgument,
                model_directory, ": a model of ", Join(model.feed_names, ", "),
                ": expected one that translates, which reads ", Join(feeds, ", "));
  CheckTable(*model.program, kSourceTable, source_, model_directory);
  CheckTable(*model.program, kTargetTable, target_, model_directory);
  program_ = std::move(model.program);
  fetches_ = model.fetch_names;
  CheckBeam(beam);
  const std::string path = JoinPath(model_directory, kNetworkFile);
  if (PathExists(path)) {
    const SavedNetwork network = ParseNetwork(ReadFile(path), path);
    const std::string found = VocabularyChecksum(source_, target_);
    SKIFF_ENFORCE(network.vocabularies.empty() || network.vocabularies == found, kInvalidArgument,
                  model_directory, ": the vocabularies are those of another model: their checksum ",
                  "is ", found, ", expected ", network.vocabularies, ", as ", kNetworkFile,
                  " says");
    if (beam.width > 1) UseBeam(network.options, path, beam);
  } else {
    SKIFF_ENFORCE(beam.width == 1, kNotFound, path, ": no such file, but a beam of ", beam.width,
                  " needs it (models that earlier versions trained don't have it)");
  }
  compiled_ = std::make_unique<CompiledProgram>(executor_.Compile(*program_));
}

void Translator::UseBeam(const Seq2SeqOptions& network, const std::string& path,
                         const BeamOptions& beam) {
  BeamTranslatorOutputs outputs;
  program_ = BuildBeamTranslator(network, beam, &outputs);
  CheckParameters(*program_, executor_.scope(), path);
  beam_width_ = beam.width;
  fetches_ = {outputs.tokens, outputs.weights, outputs.parents};
}

std::vector<Translation> Translator::Translate(const std::vector<std::string>& texts,
                                               int64_t most_tokens) {
  SKIFF_ENFORCE(most_tokens >= 1, kInvalidArgument, "most_tokens = ", most_tokens,
                ": expected at least 1");
  std::vector<Translation> translations(texts.size());
  std::vector<std::vector<int64_t>> sources;
  std::vector<size_t> places;  // of the texts that have tokens
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<int64_t> ids = source_.Encode(texts[i]);
    if (ids.empty()) continue;
    for (const int64_t id : ids) translations[i].source_tokens.push_back(source_.token(id));
    sources.push_back(std::move(ids));
    places.push_back(i);
  }
  if (sources.empty()) return translations;
  const Tensor room({most_tokens}, DType::kInt64);
  const std::vector<Tensor> found = compiled_->Run(
      {{PairReader::kSource, RaggedIds(sources)}, {kTranslationRoom, room}}, fetches_);
  const int64_t steps = found[0].shape()[0];
  const auto* tokens = found[0].data<int64_t>();
  const auto* weights = found[1].data<float>();
  const int64_t* parents = beam_width_ > 1 ? found[2].data<int64_t>() : nullptr;
  const int64_t rows = std::ssize(sources) * beam_width_;
  int64_t first = 0;  // of the sentence, among the source tokens
  for (int64_t i = 0; i < std::ssize(sources); ++i) {
    Translation& translation = translations[places[static_cast<size_t>(i)]];
    const int64_t length = std::ssize(sources[static_cast<size_t>(i)]);
    std::vector<int64_t> ids;
    const int64_t best = i * beam_width_;
    for (int64_t t = 0; t < steps; ++t) {
      ids.push_back(tokens[t * rows + best]);
      const int64_t parent = parents == nullptr ? 0 : parents[t * rows + best] - best;
      const float* row = weights + t * found[1].shape()[1] + first * beam_width_ + parent * length;
      translation.attention.emplace_back(row, row + length);
      translation.target_tokens.push_back(target_.token(ids.back()));
      if (ids.back() == kEndToken) break;
    }
    translation.text = target_.Decode(ids);
    first += length;
  }
  return translations;
}

}  // namespace skiff::models
