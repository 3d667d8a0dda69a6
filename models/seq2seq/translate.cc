// Translates texts. `translate --help` lists the flags.

#include <gflags/gflags.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/command_line/command_line.h"
#include "framework/io/file.h"
#include "framework/io/text_lines.h"
#include "framework/text/parallel_text.h"
#include "framework/text/token_vocabulary.h"
#include "models/seq2seq/attention_picture.h"
#include "models/seq2seq/bleu.h"
#include "models/seq2seq/translation_data.h"
#include "models/seq2seq/translator.h"

DEFINE_string(model, "seq2seq_run/model", "Directory of a model that a training saved.");
DEFINE_string(
    text, "",
    "The text; empty: each line of standard input is one, and has one line of the output.");
DEFINE_int64(most_tokens, 100, "A translation ends after so many tokens at the latest.");
DEFINE_int64(batch_size, 64, "Texts that are translated together.");
DEFINE_int64(beam, 1,
             "Hypotheses of each text; the best one is printed. 1: each token is the most "
             "probable one.");
DEFINE_double(length_penalty, 0,
              "Of a beam of 2 or more: ranks hypotheses by log(probability) / ((5 + tokens) / "
              "6)^length_penalty, so that a larger one makes translations longer.");
DEFINE_string(attention, "",
              "Show where the tokens of the translation came from: text (for each, at which token "
              "of the source it looked most) or a file to draw it in, which ends in .svg.");
DEFINE_string(evaluate, "",
              "Pairs to translate instead, as --data of train; prints how many translations are "
              "exactly as given, and their corpus BLEU, smoothed as by sacrebleu, of words, or of "
              "characters if these are the tokens of the model.");
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

bool IsPicture(const std::string& attention) { return attention.ends_with(".svg"); }

// Adds to `drawn` what is to be drawn.
void TranslateBatch(Translator* translator, std::vector<std::string>* texts,
                    std::vector<Translation>* drawn) {
  if (texts->empty()) return;
  for (Translation& translation : translator->Translate(*texts, FLAGS_most_tokens)) {
    std::cout << translation.text << "\n";
    if (FLAGS_attention == "text") PrintAttention(translation);
    if (IsPicture(FLAGS_attention)) drawn->push_back(std::move(translation));
  }
  texts->clear();
}

void PrintBleu(const skiff::models::Bleu& bleu, skiff::text::TokenKind kind) {
  std::vector<std::string> precisions;
  for (const double precision : bleu.precisions) {
    precisions.push_back(skiff::FormatFixed(precision, 1));
  }
  std::cout << "BLEU " << skiff::FormatFixed(bleu.score, 2) << " of " << skiff::text::NameOf(kind)
            << " (precisions " << skiff::Join(precisions, "/") << ", brevity penalty "
            << skiff::FormatFixed(bleu.brevity_penalty, 3) << ", " << bleu.tokens << " tokens, "
            << bleu.expected_tokens << " expected)\n";
}

int Evaluate(Translator* translator) {
  const std::vector<skiff::text::TextPair> pairs =
      skiff::models::ReadPairs(FLAGS_evaluate, FLAGS_seed);
  size_t exact = 0;
  // Words instead of pieces, so that models with other pieces compare.
  const skiff::text::TokenKind kind = translator->target_kind() == skiff::text::TokenKind::kPiece
                                          ? skiff::text::TokenKind::kWord
                                          : translator->target_kind();
  std::vector<std::vector<std::string>> translations, expected;
  for (size_t first = 0; first < pairs.size(); first += static_cast<size_t>(FLAGS_batch_size)) {
    const size_t end = std::min(pairs.size(), first + static_cast<size_t>(FLAGS_batch_size));
    std::vector<std::string> texts;
    for (size_t i = first; i < end; ++i) texts.push_back(pairs[i].source);
    const std::vector<Translation> found = translator->Translate(texts, FLAGS_most_tokens);
    for (size_t i = first; i < end; ++i) {
      const std::string& text = found[i - first].text;
      exact += text == pairs[i].target ? 1 : 0;
      translations.push_back(skiff::text::TokensOf(text, kind));
      expected.push_back(skiff::text::TokensOf(pairs[i].target, kind));
    }
  }
  std::cout << exact << " of " << pairs.size() << " translations are exactly as given ("
            << skiff::FormatFixed(
                   100 * static_cast<double>(exact) / static_cast<double>(pairs.size()), 2)
            << " %)\n";
  PrintBleu(skiff::models::CorpusBleu(translations, expected), kind);
  return 0;
}

int Translate() {
  SKIFF_ENFORCE(FLAGS_batch_size >= 1, kInvalidArgument, "--batch_size=", FLAGS_batch_size,
                ": expected at least 1");
  SKIFF_ENFORCE(FLAGS_attention.empty() || FLAGS_attention == "text" || IsPicture(FLAGS_attention),
                kInvalidArgument, "--attention=", FLAGS_attention,
                ": expected text, or a file whose name ends in .svg");
  SKIFF_ENFORCE(FLAGS_attention.empty() || FLAGS_evaluate.empty(), kInvalidArgument,
                "--attention=", FLAGS_attention, " with --evaluate=", FLAGS_evaluate,
                ": expected one of them");
  SKIFF_ENFORCE(FLAGS_length_penalty == 0 || FLAGS_beam != 1, kInvalidArgument,
                "--length_penalty=", FLAGS_length_penalty,
                " with --beam=1: expected a --beam of at least 2");
  Translator translator(FLAGS_model, {.width = FLAGS_beam,
                                      .length_penalty = static_cast<float>(FLAGS_length_penalty)});
  if (!FLAGS_evaluate.empty()) return Evaluate(&translator);
  std::vector<Translation> drawn;
  std::vector<std::string> texts;
  if (!FLAGS_text.empty()) {
    texts = {FLAGS_text};
  } else {
    skiff::LineReader lines(&std::cin);
    for (std::string line; lines.Next(&line);) {
      texts.push_back(line);
      if (std::ssize(texts) == FLAGS_batch_size) TranslateBatch(&translator, &texts, &drawn);
    }
  }
  TranslateBatch(&translator, &texts, &drawn);
  if (IsPicture(FLAGS_attention)) {
    skiff::AtomicWriteFile(FLAGS_attention, skiff::models::DrawAttention(drawn));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "translate --text=\"the 3rd of May, 1998\" [flags]",
                             .summary = "Translates texts with a trained model.",
                             .run = Translate});
}
