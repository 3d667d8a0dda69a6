// Writes the beam search of a small translation network (GRU, Bahdanau's attention) for
// PaddlePaddle:
//
//   write_translation_search DIR
//
// DIR, which exists, then holds main.pb, params.npz, feed.npz and fetches.txt: the names of the
// tokens and of the scores. tests/oracle/search_in_paddle.py runs it and adds what it finds.
// paddle_translations keeps the arrays for a test of the translator.
#include <cstdio>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/io/parameters.h"
#include "framework/ir/codec.h"
#include "models/seq2seq/seq2seq.h"
#include "tests/models/seq2seq/fluid_search.h"

namespace skiff::models {
namespace {

constexpr int64_t kWidth = 4;
constexpr int64_t kSteps = 6;

void Write(const std::string& directory) {
  const Seq2SeqOptions options = {
      .source_tokens = 9, .target_tokens = 7, .embedding = 4, .hidden = 5};
  const training::TrainingProgram training = BuildSeq2Seq(options, {}, 1);
  Executor executor;
  executor.Run(*training.startup);
  TensorMap params;
  for (const std::string& name : PersistableNames(*training.test)) {
    Tensor& value = *executor.scope().FindMutable(name);
    // Else all tokens would be about as probable.
    for (float& number : value.values<float>()) number *= 3;
    params.emplace(name, value);
  }
  const FluidSearch search(options, kWidth, kSteps);
  TensorMap feeds;
  for (const auto& [name, value] : FluidSearch::Feeds({{3, 4, 5}, {6}, {8, 3, 8, 7, 4}, {5, 5}})) {
    feeds.emplace(name, value);
  }
  AtomicWriteFile(JoinPath(directory, "main.pb"), SerializeProgram(search.program()));
  AtomicWriteFile(JoinPath(directory, "fetches.txt"), Join(search.fetches(), "\n") + "\n");
  WriteNpz(JoinPath(directory, "params.npz"), params, /*compress=*/true);
  WriteNpz(JoinPath(directory, "feed.npz"), feeds, /*compress=*/true);
}

}  // namespace
}  // namespace skiff::models

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: write_translation_search DIR\n");
    return 2;
  }
  try {
    skiff::models::Write(argv[1]);
  } catch (const skiff::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
