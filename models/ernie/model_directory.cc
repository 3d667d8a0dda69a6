#include "models/ernie/model_directory.h"

#include "framework/io/file.h"

namespace skiff::models {
namespace {

constexpr const char* kConfigFile = "config.json";
constexpr const char* kVocabularyFile = "vocabulary.txt";

}  // namespace

std::map<std::string, std::string> ErnieModelFiles(const ErnieOptions& options,
                                                   const text::Vocabulary& vocabulary) {
  return {{kConfigFile, ErnieOptionsToJson(options)}, {kVocabularyFile, vocabulary.Text()}};
}

ErnieOptions ReadErnieOptions(const std::string& model_directory) {
  const ErnieOptions options =
      ErnieOptionsFromJson(ReadFile(JoinPath(model_directory, kConfigFile)));
  CheckErnieOptions(options);
  return options;
}

text::Vocabulary ReadErnieVocabulary(const std::string& model_directory) {
  return text::ReadVocabulary(JoinPath(model_directory, kVocabularyFile));
}

}  // namespace skiff::models
