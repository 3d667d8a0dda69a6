// Translates texts. `translate --help` lists the flags.

#include <gflags/gflags.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/command_line/command_line.h"
#include "models/seq2seq/translation_data.h"
#include "models/seq2seq/translator.h"

DEFINE_string(model, "seq2seq_run/model", "Directory of a model that a training saved.");
DEFINE_string(text, "", "The text; empty: each line of standard input is one.");
DEFINE_int64(most_tokens, 100, "A translation ends after so many tokens at the latest.");
DEFINE_int64(batch_size, 64, "Texts that are translated together.");
DEFINE_bool(attention, false,
            "Show for each token of the translation at which tokens of the text it looked most.");
DEFINE_string(evaluate, "",
              "Pairs to translate instead, as --data of train; prints the share of translations "
              "that are exactly as given.");
DEFINE_uint64(seed, 1000001, "Of the dates that --evaluate=dates generates.");

namespace {

using skiff::models::Translation;
using skiff::models::Translator;

void PrintAttention(const Translation& translation) {
  for (size_t t = 0; t < translation.attention.size(); ++t) {
    const std::vector<float>& weights = translation.attention[t];
    const auto most = std::ranges::max_element(weights);
    const auto at = static_cast<size_t>(most - weights.begin());
    std::cout << "  " << translation.target_tokens[t] << "  from token " << at << ", \""
              << translation.source_tokens[at] << "\" ("
              << skiff::FormatFixed(100 * static_cast<double>(*most), 0) << " %)\n";
  }
}

void TranslateBatch(Translator* translator, std::vector<std::string>* texts) {
  if (texts->empty()) return;
  for (const Translation& translation : translator->Translate(*texts, FLAGS_most_tokens)) {
    std::cout << translation.text << "\n";
    if (FLAGS_attention) PrintAttention(translation);
  }
  texts->clear();
}

int Evaluate(Translator* translator) {
  const std::vector<skiff::models::TextPair> pairs =
      skiff::models::ReadPairs(FLAGS_evaluate, FLAGS_seed);
  size_t exact = 0;
  for (size_t first = 0; first < pairs.size(); first += static_cast<size_t>(FLAGS_batch_size)) {
    const size_t end = std::min(pairs.size(), first + static_cast<size_t>(FLAGS_batch_size));
    std::vector<std::string> texts;
    for (size_t i = first; i < end; ++i) texts.push_back(pairs[i].source);
    const std::vector<Translation> found = translator->Translate(texts, FLAGS_most_tokens);
    for (size_t i = first; i < end; ++i) {
      exact += found[i - first].text == pairs[i].target ? 1 : 0;
    }
  }
  std::cout << exact << " of " << pairs.size() << " translations are exactly as given ("
            << skiff::FormatFixed(
                   100 * static_cast<double>(exact) / static_cast<double>(pairs.size()), 2)
            << " %)\n";
  return 0;
}

int Translate() {
  SKIFF_ENFORCE(FLAGS_batch_size >= 1, kInvalidArgument, "--batch_size=", FLAGS_batch_size,
                ": expected at least 1");
  Translator translator(FLAGS_model);
  if (!FLAGS_evaluate.empty()) return Evaluate(&translator);
  std::vector<std::string> texts;
  if (!FLAGS_text.empty()) {
    texts = {FLAGS_text};
    TranslateBatch(&translator, &texts);
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) {
    texts.push_back(line);
    if (std::ssize(texts) == FLAGS_batch_size) TranslateBatch(&translator, &texts);
  }
  TranslateBatch(&translator, &texts);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "translate --text=\"the 3rd of May, 1998\" [flags]",
                             .summary = "Translates texts, each token by the most probable one.",
                             .run = Translate});
}
