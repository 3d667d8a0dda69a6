// Writes texts with a trained character model.
#pragma once

#include <cstdint>
#include <string>

#include "models/common/alphabet.h"
#include "models/common/saved_model.h"

namespace skiff::models {

// The file beside a saved model that has its characters.
inline constexpr const char* kAlphabetFile = "alphabet.txt";

struct WriteOptions {
  int64_t length = 400;   // characters to write
  float temperature = 1;  // positive; below 1 the probable characters become more probable
  int64_t top_k = 0;      // draws from so many most probable characters only; 0: from all
};

class TextWriter {
 public:
  // Loads a model that a training saved (OUTPUT_DIR/model). The seed and the arguments of Write
  // determine the text. Throws an Error: what LoadInferenceModel, ReadFile and Alphabet::Parse
  // throw; kInvalidArgument if the model isn't for writing, or has another number of characters
  // than the file.
  TextWriter(const std::string& model_directory, uint64_t seed);

  // Returns what follows the prompt. Throws an Error (kInvalidArgument) for an empty prompt, for a
  // prompt with a character unknown to the model, and for an option out of range. Throws the Errors
  // of ModelOutput if the model returns anything but characters.
  std::string Write(const std::string& prompt, const WriteOptions& options = {});

 private:
  Alphabet alphabet_;
  SavedModel model_;
};

}  // namespace skiff::models
