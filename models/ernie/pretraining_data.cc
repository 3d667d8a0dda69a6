#include "models/ernie/pretraining_data.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/command_line/argument_text.h"
#include "framework/text/classification_source.h"
#include "framework/text/document_instances.h"
#include "framework/text/documents.h"
#include "framework/text/hold_back.h"
#include "framework/text/lexicon.h"
#include "framework/text/masking.h"
#include "framework/text/pretraining_source.h"
#include "framework/text/sentence_pairs.h"
#include "framework/text/tokenizer.h"
#include "framework/text/vocabulary_builder.h"
#include "framework/training/sample_reader.h"
#include "models/common/question_source.h"
#include "models/common/world_corpus.h"
#include "models/ernie/ernie_demo.h"

namespace skiff::models {
namespace {

constexpr std::string_view kWorld = "world";
constexpr std::string_view kLabelled = "labelled";

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
  return text::BuildVocabulary(words, {.size = options.vocabulary_size}, options.data);
}

struct DocumentParts {
  std::vector<text::Document> train;
  std::vector<text::Document> held_back;
};

void Append(std::vector<text::Document> more, std::vector<text::Document>* documents) {
  std::move(more.begin(), more.end(), std::back_inserter(*documents));
}

std::vector<text::Document> DocumentsOf(const std::vector<text::LabelledText>& texts) {
  std::vector<text::Document> documents;
  for (const text::LabelledText& labelled : texts) {
    documents.push_back(text::SplitSentences(labelled.text));
  }
  return documents;
}

DocumentParts ReadDocumentParts(const std::string& kind, const std::string& file, double fraction) {
  if (kind == kLabelled) {
    const text::LabelledParts parts = text::ReadLabelledParts(file, fraction);
    return {.train = DocumentsOf(parts.train), .held_back = DocumentsOf(parts.held_back)};
  }
  DocumentParts parts;
  parts.train = kind == "table" ? text::ReadDocumentTable(file) : text::ReadDocuments(file);
  parts.held_back = text::HoldBackLast(&parts.train, fraction, file);
  return parts;
}

// Holds back a part of each file.
DocumentParts ReadFiles(const std::string& kind, const std::string& files, double fraction) {
  DocumentParts all;
  for (const std::string& file : SplitNames(files)) {
    DocumentParts parts = ReadDocumentParts(kind, file, fraction);
    Append(std::move(parts.train), &all.train);
    Append(std::move(parts.held_back), &all.held_back);
  }
  return all;
}

// What all kinds of data have: a vocabulary, a masker, and a source of each kind.
class MaskedData : public PretrainingData {
 public:
  const text::Vocabulary& vocabulary() const override { return vocabulary_; }
  std::unique_ptr<training::Reader> TrainReader() const override {
    return std::make_unique<training::SampleReader>(
        train_.get(), training::SampleReaderOptions{.batch_size = options_.batch_size,
                                                    .shuffle = true,
                                                    .drop_last = true,
                                                    .seed = options_.seed});
  }
  std::unique_ptr<training::Reader> ValidationReader() const override {
    return std::make_unique<training::SampleReader>(
        validation_.get(), training::SampleReaderOptions{.batch_size = options_.batch_size});
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

std::vector<text::SentenceTask> SentenceTasks(const std::string& names) {
  std::vector<text::SentenceTask> tasks;
  for (const std::string& name : SplitNames(names)) {
    const text::SentenceTask task = text::SentenceTaskFromName(name);
    SKIFF_ENFORCE(std::ranges::find(tasks, task) == tasks.end(), kInvalidArgument,
                  "sentence_tasks \"", names, "\" name ", name, " twice");
    tasks.push_back(task);
  }
  SKIFF_ENFORCE(
      tasks.size() == 1 || std::ranges::find(tasks, text::SentenceTask::kNone) == tasks.end(),
      kInvalidArgument, "sentence_tasks \"", names, "\": expected none alone");
  SKIFF_ENFORCE(!tasks.empty(), kInvalidArgument,
                "sentence_tasks: expected names of tasks, or none");
  return tasks;
}

// The same documents once for each sentence task. Task ids count from 0: inputs that have no task,
// such as questions and those of fine-tuning, have the id 0, so it must be one that is trained.
class TaskInstances {
 public:
  TaskInstances(const std::vector<text::TokenizedDocument>* documents,
                const text::Vocabulary* vocabulary, const PretrainingDataOptions& options)
      : tasks_(SentenceTasks(options.sentence_tasks)) {
    std::vector<const text::InstanceSource*> sources;
    for (const text::SentenceTask task : tasks_) {
      of_task_.push_back(std::make_unique<text::DocumentInstances>(
          documents, vocabulary,
          text::DocumentInstanceOptions{.task = task,
                                        .length = options.length,
                                        .task_id = std::ssize(of_task_),
                                        .seed = options.seed}));
      sources.push_back(of_task_.back().get());
    }
    all_.emplace(std::move(sources));
  }

  const text::InstanceSource* all() const { return &*all_; }

  std::vector<SentenceTaskShape> shapes() const {
    std::vector<SentenceTaskShape> shapes;
    for (size_t i = 0; i < tasks_.size() && tasks_[i] != text::SentenceTask::kNone; ++i) {
      shapes.push_back({.name = std::string(text::SentenceTaskName(tasks_[i])),
                        .id = static_cast<int64_t>(i),
                        .classes = of_task_[i]->pairs().classes()});
    }
    return shapes;
  }

  // Documents that a task can't use, in words; empty if there are none.
  std::string LeftOut() const {
    std::string text;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const int64_t documents = of_task_[i]->pairs().documents_left_out();
      if (documents == 0) continue;
      text += StrCat(", ", documents, " with too few sentences for ",
                     text::SentenceTaskName(tasks_[i]));
    }
    return text;
  }

  int64_t most_segments() const {
    int64_t most = 1;
    for (const auto& instances : of_task_) most = std::max(most, instances->pairs().segments());
    return most;
  }

 private:
  std::vector<text::SentenceTask> tasks_;
  std::vector<std::unique_ptr<text::DocumentInstances>> of_task_;
  std::optional<text::ConcatenatedInstances> all_;
};

class DocumentData : public MaskedData {
 public:
  DocumentData(const PretrainingDataOptions& options, const std::vector<text::Document>& documents,
               const std::vector<std::string>& phrases)
      : MaskedData(options, MakeVocabulary(options, documents)) {
    documents_ = TokensOf(documents);
    MakeMasker(phrases);
  }

  std::vector<SentenceTaskShape> sentence_tasks() const override { return instances_->shapes(); }
  int64_t sentences() const override { return instances_->most_segments(); }
  // One task alone needs no name.
  int64_t tasks() const override {
    const auto tasks = std::ssize(instances_->shapes());
    return tasks > 1 ? tasks : 0;
  }

 protected:
  std::vector<text::TokenizedDocument> TokensOf(
      const std::vector<text::Document>& documents) const {
    return text::Tokenize(tokenizer_, documents, options_.length - 3);
  }

  void MakeTrainSource() {
    instances_.emplace(&documents_, &vocabulary_, options_);
    train_ = Masked(instances_->all(), /*same_every_epoch=*/false);
  }

  std::vector<text::TokenizedDocument> documents_;
  std::optional<TaskInstances> instances_;
};

// Validates on masked tokens of documents that are held back.
class TextData final : public DocumentData {
 public:
  TextData(const PretrainingDataOptions& options, const DocumentParts& parts,
           const std::vector<std::string>& phrases)
      : DocumentData(options, parts.train, phrases), held_back_(TokensOf(parts.held_back)) {
    MakeTrainSource();
    held_back_instances_.emplace(&held_back_, &vocabulary_, options_);
    validation_ = Masked(held_back_instances_->all(), /*same_every_epoch=*/true);
  }

  std::string extent() const override {
    return StrCat(documents_.size(), " documents to train", instances_->LeftOut(), ", ",
                  held_back_.size(), " to validate", held_back_instances_->LeftOut(), ", ",
                  vocabulary_.size(), " tokens in the vocabulary", SkippedPhrases());
  }

 private:
  std::vector<text::TokenizedDocument> held_back_;
  std::optional<TaskInstances> held_back_instances_;
};

// Validates on questions about facts of the world.
class WorldData final : public DocumentData {
 public:
  WorldData(const PretrainingDataOptions& options, const WorldCorpus& world,
            const std::vector<std::string>& phrases)
      : DocumentData(options, world.documents, phrases),
        questions_(world.questions.size()),
        baseline_(MeasureFrequencyBaseline(world)) {
    MakeTrainSource();
    validation_ = std::make_unique<QuestionSource>(
        tokenizer_, world.questions,
        QuestionOptions{.length = options.length, .most_masked = options.most_masked});
  }

  std::string extent() const override {
    return StrCat(documents_.size(), " documents, ", vocabulary_.size(), " tokens, ", questions_,
                  " questions about entities (the most frequent entity answers ",
                  FormatFixed(100 * baseline_.any_entity, 1), " %, that of the right kind ",
                  FormatFixed(100 * baseline_.same_type, 1), " %)", SkippedPhrases());
  }

 private:
  size_t questions_;
  FrequencyBaseline baseline_;
};

// Cutting them could remove the [SEP] between their segments.
void CheckLengths(const std::vector<text::Instance>& instances, const std::string& file,
                  int64_t length) {
  for (size_t i = 0; i < instances.size(); ++i) {
    SKIFF_ENFORCE(instances[i].size() <= length, kInvalidArgument, file, ":", i + 1, " has ",
                  instances[i].size(), " tokens: expected at most length = ", length);
  }
}

// Instances of token ids, of which some are held back.
class InstanceData final : public MaskedData {
 public:
  InstanceData(const PretrainingDataOptions& options, const std::string& file,
               const std::vector<std::string>& phrases)
      : MaskedData(options, text::ReadVocabulary(options.vocabulary_file)) {
    // The instances are pairs already, and labelled.
    SKIFF_ENFORCE(options.sentence_tasks == "next_sentence" || options.sentence_tasks == "none",
                  kInvalidArgument, "sentence_tasks \"", options.sentence_tasks, "\" of ",
                  options.data, ": expected next_sentence, whose labels it has, or none");
    std::vector<text::Instance> all = ReadErnieDemo(file, vocabulary_);
    CheckLengths(all, file, options.length);
    std::vector<text::Instance> last = text::HoldBackLast(&all, options.held_back, file);
    MakeMasker(phrases);
    instances_ = std::make_unique<text::InstanceList>(std::move(all));
    held_back_ = std::make_unique<text::InstanceList>(std::move(last));
    train_ = Masked(instances_.get(), /*same_every_epoch=*/false);
    validation_ = Masked(held_back_.get(), /*same_every_epoch=*/true);
  }

  std::vector<SentenceTaskShape> sentence_tasks() const override {
    if (options_.sentence_tasks == "none") return {};
    return {{.name = "next_sentence"}};
  }
  int64_t sentences() const override { return 2; }
  int64_t tasks() const override { return 0; }
  std::string extent() const override {
    return StrCat(instances_->size(), " instances to train, ", held_back_->size(), " to validate, ",
                  vocabulary_.size(), " tokens in the vocabulary", SkippedPhrases());
  }

 private:
  std::unique_ptr<text::InstanceList> instances_;
  std::unique_ptr<text::InstanceList> held_back_;
};

// The phrases that the options want masked as a whole; those of `world` if they name no file.
std::vector<std::string> Phrases(const PretrainingDataOptions& options,
                                 const WorldCorpus* world = nullptr) {
  const bool has_file = !options.lexicon_file.empty();
  if (options.masking != "phrase") {
    SKIFF_ENFORCE(!has_file, kInvalidArgument, "lexicon ", options.lexicon_file, ": masking \"",
                  options.masking,
                  "\" doesn't read it: expected masking \"phrase\", or no lexicon");
    return {};
  }
  if (has_file) return text::ReadLexiconEntries(options.lexicon_file);
  SKIFF_ENFORCE(world != nullptr, kInvalidArgument, "masking phrases of ", options.data,
                ": expected a lexicon of them, found none");
  return world->Lexicon();
}

std::unique_ptr<PretrainingData> MakeWorldData(const PretrainingDataOptions& options) {
  const WorldCorpus world =
      GenerateWorldCorpus({.documents = options.world_documents, .seed = options.seed});
  return std::make_unique<WorldData>(options, world, Phrases(options, &world));
}

}  // namespace

std::unique_ptr<PretrainingData> MakePretrainingData(const PretrainingDataOptions& options) {
  const auto [kind, file] = KindAndFile(options.data);
  PretrainingDataOptions known = options;
  if (known.sentence_tasks == "auto") {
    known.sentence_tasks = kind == kWorld ? "none" : "next_sentence";
  }
  if (kind == kWorld && file.empty()) return MakeWorldData(known);
  const bool has_documents = kind == "text" || kind == "table" || kind == kLabelled;
  SKIFF_ENFORCE(!file.empty() && (has_documents || kind == "ernie_demo"), kInvalidArgument,
                "data \"", options.data,
                "\": expected world, text:FILES, table:FILES, labelled:FILES or ernie_demo:FILE");
  if (has_documents) {
    return std::make_unique<TextData>(known, ReadFiles(kind, file, known.held_back),
                                      Phrases(known));
  }
  SKIFF_ENFORCE(!known.vocabulary_file.empty(), kInvalidArgument, "data ", options.data,
                ": token ids mean nothing without a vocabulary; expected its file");
  return std::make_unique<InstanceData>(known, file, Phrases(known));
}

}  // namespace skiff::models
