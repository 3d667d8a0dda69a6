// The files that a saved ERNIE has beside program and weights: sizes and vocabulary.
#pragma once

#include <map>
#include <string>

#include "framework/text/vocabulary.h"
#include "models/ernie/ernie_options.h"

namespace skiff::models {

// Returns the contents of config.json and vocabulary.txt, by their names.
std::map<std::string, std::string> ErnieModelFiles(const ErnieOptions& options,
                                                   const text::Vocabulary& vocabulary);

// Reads a saved model's vocabulary. Throws what ReadVocabulary throws.
text::Vocabulary ReadErnieVocabulary(const std::string& model_directory);
// Reads a saved model's sizes. Throws the Errors of ReadFile, ErnieOptionsFromJson and
// CheckErnieOptions, and an Error (kInvalidArgument) if the sizes don't fit the vocabulary; all
// name the file.
ErnieOptions ReadErnieOptions(const std::string& model_directory,
                              const text::Vocabulary& vocabulary);

}  // namespace skiff::models
