#include "models/ernie/pretraining_data.h"

#include <optional>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/training/prefetching_reader.h"
#include "framework/training/sample_reader.h"
#include "models/common/text/document_instances.h"
#include "models/common/text/documents.h"
#include "models/common/text/ernie_demo.h"
#include "models/common/text/hold_back.h"
#include "models/common/text/lexicon.h"
#include "models/common/text/masking.h"
#include "models/common/text/pretraining_source.h"
#include "models/common/text/question_source.h"
#include "models/common/text/sentence_pairs.h"
#include "models/common/text/tokenizer.h"
#include "models/common/text/vocabulary_builder.h"
#include "models/common/text/world_corpus.h"

namespace skiff::models {
namespace {

constexpr std::string_view kWorld = "world";

// "text:FILE" -> "text" and "FILE".
std::pair<std::string, std::string> KindAndFile(const std::string& data) {
  const size_t colon = data.find(':');
  if (colon == std::string::npos) return {data, ""};
  return {data.substr(0, colon), data.substr(colon + 1)};
}

text::MaskingUnit UnitFromName(const std::string& name) {
  if (name == "piece") return text::MaskingUnit::kPiece;
  if (name == "word") return text::MaskingUnit::kWord;
  SKIFF_ENFORCE(name == "phrase", kInvalidArgument, "masking \"", name,
                "\": expected piece, word or phrase");
  return text::MaskingUnit::kPhrase;
}

text::Vocabulary MakeVocabulary(const PretrainingDataOptions& options,
                                const std::vector<text::Document>& documents) {
  if (!options.vocabulary_file.empty()) return text::ReadVocabulary(options.vocabulary_file);
  text::WordCounts words;
  for (const text::Document& document : documents) {
    for (const std::string& sentence : document) text::CountWords(sentence, {}, &words);
  }
  return text::BuildVocabulary(words, {.size = options.vocabulary_size});
}

std::unique_ptr<training::Reader> MakeReader(const training::SampleSource* source,
                                             const training::SampleReaderOptions& options) {
  return std::make_unique<training::PrefetchingReader>(
      std::make_unique<training::SampleReader>(source, options));
}

// What all kinds of data have: a vocabulary, a masker, and a source of each kind.
class MaskedData : public PretrainingData {
 public:
  const text::Vocabulary& vocabulary() const override { return vocabulary_; }
  std::unique_ptr<training::Reader> TrainReader() const override {
    return MakeReader(train_.get(), {.batch_size = options_.batch_size,
                                     .shuffle = true,
                                     .drop_last = true,
                                     .seed = options_.seed});
  }
  std::unique_ptr<training::Reader> ValidationReader() const override {
    return MakeReader(validation_.get(), {.batch_size = options_.batch_size});
  }

 protected:
  MaskedData(const PretrainingDataOptions& options, text::Vocabulary vocabulary)
      : options_(options), vocabulary_(std::move(vocabulary)), tokenizer_(&vocabulary_) {}

  void MakeMasker(const std::vector<std::string>& phrases) {
    const text::MaskingUnit unit = UnitFromName(options_.masking);
    if (unit == text::MaskingUnit::kPhrase) lexicon_.emplace(tokenizer_, phrases);
    masker_.emplace(&vocabulary_, lexicon_ ? &*lexicon_ : nullptr,
                    text::MaskingOptions{.unit = unit, .most_masked = options_.most_masked});
  }

  std::unique_ptr<training::SampleSource> Masked(const text::InstanceSource* instances,
                                                 bool same_every_epoch) const {
    return std::make_unique<text::PretrainingSource>(
        instances, &*masker_, &vocabulary_,
        text::PretrainingOptions{.length = options_.length,
                                 .seed = options_.seed,
                                 .same_every_epoch = same_every_epoch});
  }

  // Phrases that can't be masked as a whole, since the vocabulary lacks a word of them.
  std::string SkippedPhrases() const {
    if (!lexicon_ || lexicon_->skipped().empty()) return "";
    return StrCat(", ", lexicon_->skipped().size(), " phrases without tokens");
  }

  PretrainingDataOptions options_;
  text::Vocabulary vocabulary_;
  text::Tokenizer tokenizer_;
  std::optional<text::Lexicon> lexicon_;
  std::optional<text::Masker> masker_;
  std::unique_ptr<training::SampleSource> train_;
  std::unique_ptr<training::SampleSource> validation_;
};

class DocumentData : public MaskedData {
 public:
  DocumentData(const PretrainingDataOptions& options, const std::vector<text::Document>& documents,
               const std::vector<std::string>& phrases)
      : MaskedData(options, MakeVocabulary(options, documents)),
        task_(text::SentenceTaskFromName(options.sentence_task)) {
    documents_ = text::Tokenize(tokenizer_, documents, options.length - 3);
    MakeMasker(phrases);
  }

  int64_t sentence_classes() const override {
    return task_ == text::SentenceTask::kNone ? 0 : instances_->pairs().classes();
  }
  int64_t tasks() const override { return 0; }

 protected:
  std::unique_ptr<text::DocumentInstances> InstancesOf(
      const std::vector<text::TokenizedDocument>* documents) const {
    return std::make_unique<text::DocumentInstances>(
        documents, &vocabulary_,
        text::DocumentInstanceOptions{
            .task = task_, .length = options_.length, .seed = options_.seed});
  }

  void MakeTrainSource() {
    instances_ = InstancesOf(&documents_);
    train_ = Masked(instances_.get(), /*same_every_epoch=*/false);
  }

  text::SentenceTask task_;
  std::vector<text::TokenizedDocument> documents_;
  std::unique_ptr<text::DocumentInstances> instances_;
};

// Validates on masked tokens of documents that are held back.
class TextData final : public DocumentData {
 public:
  TextData(const PretrainingDataOptions& options, const std::vector<text::Document>& documents,
           const std::vector<std::string>& phrases)
      : DocumentData(options, documents, phrases) {
    held_back_ = text::HoldBackLast(&documents_, options.held_back);
    MakeTrainSource();
    held_back_instances_ = InstancesOf(&held_back_);
    validation_ = Masked(held_back_instances_.get(), /*same_every_epoch=*/true);
  }

  std::string extent() const override {
    return StrCat(documents_.size(), " documents to train, ", held_back_.size(), " to validate, ",
                  vocabulary_.size(), " tokens in the vocabulary", SkippedPhrases());
  }

 private:
  std::vector<text::TokenizedDocument> held_back_;
  std::unique_ptr<text::DocumentInstances> held_back_instances_;
};

// Validates on questions about facts of the world.
class WorldData final : public DocumentData {
 public:
  WorldData(const PretrainingDataOptions& options, const text::WorldCorpus& world)
      : DocumentData(options, world.documents, world.Lexicon()),
        questions_(world.questions.size()),
        baseline_(text::MeasureFrequencyBaseline(world)) {
    MakeTrainSource();
    validation_ = std::make_unique<text::QuestionSource>(
        tokenizer_, world.questions,
        text::QuestionOptions{.length = options.length, .most_masked = options.most_masked});
  }

  std::string extent() const override {
    return StrCat(documents_.size(), " documents, ", vocabulary_.size(), " tokens, ", questions_,
                  " questions about entities (the most frequent entity answers ",
                  FormatFixed(100 * baseline_.any_entity, 1), " %, that of the right kind ",
                  FormatFixed(100 * baseline_.same_type, 1), " %)");
  }

 private:
  size_t questions_;
  text::FrequencyBaseline baseline_;
};

// Instances of token ids, of which some are held back.
class InstanceData final : public MaskedData {
 public:
  InstanceData(const PretrainingDataOptions& options, const std::string& file,
               const std::vector<std::string>& phrases)
      : MaskedData(options, text::ReadVocabulary(options.vocabulary_file)) {
    std::vector<text::Instance> all = text::ReadErnieDemo(file, vocabulary_);
    std::vector<text::Instance> last = text::HoldBackLast(&all, options.held_back);
    MakeMasker(phrases);
    instances_ = std::make_unique<text::InstanceList>(std::move(all));
    held_back_ = std::make_unique<text::InstanceList>(std::move(last));
    train_ = Masked(instances_.get(), /*same_every_epoch=*/false);
    validation_ = Masked(held_back_.get(), /*same_every_epoch=*/true);
  }

  int64_t sentence_classes() const override { return 2; }
  int64_t tasks() const override { return 0; }
  std::string extent() const override {
    return StrCat(instances_->size(), " instances to train, ", held_back_->size(), " to validate, ",
                  vocabulary_.size(), " tokens in the vocabulary");
  }

 private:
  std::unique_ptr<text::InstanceList> instances_;
  std::unique_ptr<text::InstanceList> held_back_;
};

std::vector<std::string> Phrases(const PretrainingDataOptions& options) {
  if (options.masking != "phrase") return {};
  SKIFF_ENFORCE(!options.lexicon_file.empty(), kInvalidArgument, "masking phrases of ",
                options.data, ": expected a lexicon of them, found none");
  return text::ReadLexiconEntries(options.lexicon_file);
}

}  // namespace

std::unique_ptr<PretrainingData> MakePretrainingData(const PretrainingDataOptions& options) {
  const auto [kind, file] = KindAndFile(options.data);
  PretrainingDataOptions known = options;
  if (known.sentence_task == "auto") {
    known.sentence_task = kind == kWorld ? "none" : "next_sentence";
  }
  if (kind == kWorld && file.empty()) {
    return std::make_unique<WorldData>(
        known, text::GenerateWorldCorpus({.documents = known.world_documents, .seed = known.seed}));
  }
  SKIFF_ENFORCE(!file.empty(), kInvalidArgument, "data \"", options.data,
                "\": expected world, text:FILE, table:FILE or ernie_demo:FILE");
  if (kind == "text") {
    return std::make_unique<TextData>(known, text::ReadDocuments(file), Phrases(known));
  }
  if (kind == "table") {
    return std::make_unique<TextData>(known, text::ReadDocumentTable(file), Phrases(known));
  }
  SKIFF_ENFORCE(kind == "ernie_demo", kInvalidArgument, "data \"", options.data,
                "\": expected world, text:FILE, table:FILE or ernie_demo:FILE");
  SKIFF_ENFORCE(!known.vocabulary_file.empty(), kInvalidArgument, "data ", options.data,
                ": token ids mean nothing without a vocabulary; expected its file");
  return std::make_unique<InstanceData>(known, file, Phrases(known));
}

}  // namespace skiff::models
