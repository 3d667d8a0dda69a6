#include "models/seq2seq/translator.h"

#include <memory>
#include <span>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/io/parameters.h"
#include "framework/tensor/ragged.h"
#include "framework/text/marks.h"
#include "framework/text/pair_reader.h"
#include "models/seq2seq/network_file.h"

namespace skiff::models {
namespace {

void CheckTable(const SavedModel& model, const char* name,
                const text::TokenVocabulary& vocabulary) {
  const int64_t rows = model.VarOfRank(name, 2).dims[0];
  SKIFF_ENFORCE(rows == vocabulary.size(), kInvalidArgument, model.directory(), ": the model's \"",
                name, "\" has ", rows, " tokens, the vocabulary has ", vocabulary.size());
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
    : source_(text::TokenVocabulary::Load(model_directory, text::kSourceSide)),
      target_(text::TokenVocabulary::Load(model_directory, text::kTargetSide)),
      model_(model_directory, Place::Cpu()) {
  model_.CheckIs("one that translates", {text::PairReader::kSource, kTranslationRoom}, 2);
  CheckTable(model_, kSourceTable, source_);
  CheckTable(model_, kTargetTable, target_);
  CheckBeam(beam);
  const std::string path = JoinPath(model_directory, kNetworkFile);
  if (PathExists(path)) {
    const SavedNetwork network = ParseNetwork(ReadFile(path), path);
    const std::string found = text::VocabularyChecksum(source_, target_);
    SKIFF_ENFORCE(network.vocabularies.empty() || network.vocabularies == found, kInvalidArgument,
                  model_directory, ": the vocabularies are those of another model: their checksum ",
                  "is ", found, ", expected ", network.vocabularies, ", as ", kNetworkFile,
                  " says");
    if (beam.width > 1) UseBeam(network.options, path, beam);
  } else {
    SKIFF_ENFORCE(beam.width == 1, kNotFound, path, ": no such file, but a beam of ", beam.width,
                  " needs it (models that earlier versions trained don't have it)");
  }
  model_.Compile();
}

void Translator::UseBeam(const Seq2SeqOptions& network, const std::string& path,
                         const BeamOptions& beam) {
  BeamTranslatorOutputs outputs;
  std::unique_ptr<Program> program = BuildBeamTranslator(network, beam, &outputs);
  CheckParameters(*program, model_.scope(), path);
  model_.SetProgram(std::move(program), {outputs.tokens, outputs.weights, outputs.parents});
  beam_width_ = beam.width;
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
  // Its extent alone counts.
  const Tensor room = Tensor::FromValues<int64_t>(
      {most_tokens}, std::vector<int64_t>(static_cast<size_t>(most_tokens)));
  const Tensor source = RaggedTensor<int64_t>(sources);
  const std::vector<ModelOutput> found =
      model_.Run({{text::PairReader::kSource, source}, {kTranslationRoom, room}});
  // Row s * width + i is hypothesis i of sentence s.
  const int64_t rows = MultiplyCounts(std::ssize(sources), beam_width_);
  std::vector<int64_t> dims = {-1, rows};
  const std::span<const int64_t> tokens = found[0].Integers("tokens", dims, 0, target_.size() - 1);
  const int64_t steps = found[0].shape()[0];
  SKIFF_ENFORCE(steps <= most_tokens, kInvalidArgument, model_.directory(), ": the model wrote ",
                steps, " tokens, expected at most ", most_tokens);
  dims = {steps, MultiplyCounts(source.shape()[0], beam_width_)};
  const std::span<const float> weights = found[1].Floats("weights", dims, 0, kMostProbability);
  const int64_t weights_of_step = dims[1];
  std::span<const int64_t> parents;
  if (beam_width_ > 1) {
    dims = {steps, rows};
    parents = found[2].Integers("hypotheses", dims, 0, rows - 1);
  }
  int64_t first = 0;  // of the sentence, among the source tokens
  for (int64_t i = 0; i < std::ssize(sources); ++i) {
    Translation& translation = translations[places[static_cast<size_t>(i)]];
    const int64_t length = std::ssize(sources[static_cast<size_t>(i)]);
    std::vector<int64_t> ids;
    const int64_t best = i * beam_width_;
    for (int64_t t = 0; t < steps; ++t) {
      const auto at = static_cast<size_t>(t * rows + best);
      ids.push_back(tokens[at]);
      const int64_t parent = parents.empty() ? 0 : parents[at] - best;
      SKIFF_ENFORCE(parent >= 0 && parent < beam_width_, kInvalidArgument, model_.directory(),
                    ": hypothesis ", parents[at], " isn't of the sentence with ", best, " to ",
                    best + beam_width_ - 1);
      const float* row =
          weights.data() + t * weights_of_step + first * beam_width_ + parent * length;
      translation.attention.emplace_back(row, row + length);
      translation.target_tokens.push_back(target_.token(ids.back()));
      if (ids.back() == text::kEndId) break;
    }
    translation.text = target_.Decode(ids);
    first += length;
  }
  return translations;
}

}  // namespace skiff::models
