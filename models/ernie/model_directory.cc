#include "models/ernie/model_directory.h"

#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff::models {
namespace {

constexpr const char* kConfigFile = "config.json";
constexpr const char* kVocabularyFile = "vocabulary.txt";

ErnieOptions ParseOptions(const std::string& json, const std::string& path) {
  try {
    const ErnieOptions options = ErnieOptionsFromJson(json);
    CheckErnieOptions(options);
    return options;
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
}

}  // namespace

std::map<std::string, std::string> ErnieModelFiles(const ErnieOptions& options,
                                                   const text::Vocabulary& vocabulary) {
  return {{kConfigFile, ErnieOptionsToJson(options)}, {kVocabularyFile, vocabulary.Text()}};
}

text::Vocabulary ReadErnieVocabulary(const std::string& model_directory) {
  return text::ReadVocabulary(JoinPath(model_directory, kVocabularyFile));
}

ErnieOptions ReadErnieOptions(const std::string& model_directory,
                              const text::Vocabulary& vocabulary) {
  const std::string path = JoinPath(model_directory, kConfigFile);
  const ErnieOptions options = ParseOptions(ReadFile(path), path);
  SKIFF_ENFORCE(options.vocabulary == vocabulary.size(), kInvalidArgument, path,
                ": vocab_size = ", options.vocabulary, ": expected the ", vocabulary.size(),
                " tokens of ", kVocabularyFile);
  return options;
}

}  // namespace skiff::models
