#include "models/char_rnn/text_writer.h"

#include <cmath>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
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
    : alphabet_(ReadAlphabet(JoinPath(model_directory, kAlphabetFile))) {
  InferenceModel model = LoadInferenceModel(model_directory, &executor_.scope(),
                                            {.params_filename = kCombinedParamsFile});
  const std::vector<std::string> feeds = {kPrompt, kRoom, kTemperature, kTopK};
  SKIFF_ENFORCE(model.feed_names == feeds && model.fetch_names.size() == 1, kInvalidArgument,
                model_directory, ": a model of ", Join(model.feed_names, ", "),
                ": expected one that writes, which reads ", Join(feeds, ", "));
  const Var* table = model.program->root()->FindVar(kEmbeddingTable);
  SKIFF_ENFORCE(table != nullptr && !table->dims.empty() && table->dims[0] == alphabet_.size(),
                kInvalidArgument, model_directory, ": the model knows ",
                table == nullptr || table->dims.empty() ? 0 : table->dims[0], " characters, and ",
                kAlphabetFile, " has ", alphabet_.size());
  program_ = std::move(model.program);
  program_->seed = seed;
  written_ = model.fetch_names[0];
  compiled_ = std::make_unique<CompiledProgram>(executor_.Compile(*program_));
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
  const std::vector<int64_t> room(static_cast<size_t>(options.length));
  const int64_t top_k = options.top_k == 0 ? alphabet_.size() : options.top_k;
  const FeedList feeds = {{kPrompt, Tensor::FromValues<int64_t>({std::ssize(ids)}, ids)},
                          {kRoom, Tensor::FromValues<int64_t>({options.length}, room)},
                          {kTemperature, Tensor::FromValues<float>({1}, {options.temperature})},
                          {kTopK, Tensor::FromValues<int64_t>({1}, {top_k})}};
  return alphabet_.Decode(compiled_->Run(feeds, {written_})[0].ToVector<int64_t>());
}

}  // namespace skiff::models
