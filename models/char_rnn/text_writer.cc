#include "models/char_rnn/text_writer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "models/char_rnn/char_rnn.h"

namespace skiff::models {
namespace {

Alphabet ReadAlphabet(const std::string& path) { return Alphabet::Parse(ReadFile(path), path); }

void Check(const WriteOptions& options) {
  SKIFF_ENFORCE(options.length >= 1, kInvalidArgument, "length = ", options.length,
                ": expected at least 1");
  SKIFF_ENFORCE(options.temperature > 0 && std::isfinite(options.temperature), kInvalidArgument,
                "temperature = ", options.temperature, ": expected a positive number");
  SKIFF_ENFORCE(options.top_k >= 0, kInvalidArgument, "top_k = ", options.top_k,
                ": expected no negative number");
}

}  // namespace

TextWriter::TextWriter(const std::string& model_directory, uint64_t seed)
    : alphabet_(ReadAlphabet(JoinPath(model_directory, kAlphabetFile))), model_(model_directory) {
  model_.CheckIs("one that writes", {kPrompt, kRoom, kTemperature, kTopK}, 1);
  const int64_t known = model_.VarOfRank(kEmbeddingTable, 2).dims[0];
  SKIFF_ENFORCE(known == alphabet_.size(), kInvalidArgument, model_directory, ": the model knows ",
                known, " characters, and ", kAlphabetFile, " has ", alphabet_.size());
  model_.program().seed = seed;
  model_.Compile();
}

std::string TextWriter::Write(const std::string& prompt, const WriteOptions& options) {
  Check(options);
  SKIFF_ENFORCE(!prompt.empty(), kInvalidArgument,
                "the prompt is empty: expected at least one character to go on from");
  std::vector<int64_t> ids;
  try {
    ids = alphabet_.Encode(prompt);
  } catch (const Error& error) {
    throw error.WithContext("the prompt");
  }
  // The model writes over it.
  Tensor room({options.length}, DType::kInt64);
  std::ranges::fill(room.values<int64_t>(), 0);
  const int64_t top_k = options.top_k == 0 ? alphabet_.size() : options.top_k;
  const FeedList feeds = {{kPrompt, Tensor::FromValues<int64_t>({std::ssize(ids)}, ids)},
                          {kRoom, room},
                          {kTemperature, Tensor::FromValues<float>({1}, {options.temperature})},
                          {kTopK, Tensor::FromValues<int64_t>({1}, {top_k})}};
  const ModelOutput written = model_.Run(feeds)[0];
  const std::vector<int64_t> dims = {options.length};
  return alphabet_.Decode(written.Integers("characters", dims, 0, alphabet_.size() - 1));
}

}  // namespace skiff::models
