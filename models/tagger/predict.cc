// Finds the entities of texts. `predict --help` lists the flags.

#include <gflags/gflags.h>

#include <iostream>
#include <string>
#include <vector>

#include "framework/command_line/command_line.h"
#include "framework/io/text_lines.h"
#include "framework/text/token_vocabulary.h"
#include "models/tagger/sentence_tagger.h"

DEFINE_string(model, "tagger_run/model", "Directory of a model that a training saved.");
DEFINE_string(text, "",
              "A sentence, with blanks around words and punctuation; empty: each line of standard "
              "input is one, and has one line of the output.");

namespace {

void Print(skiff::models::SentenceTagger* tagger, const std::string& text) {
  const std::vector<std::string> words = skiff::text::TokensOf(text, skiff::text::TokenKind::kWord);
  const auto entities = tagger->EntitiesOf({words})[0];
  std::cout << skiff::models::MarkedText(words, entities, tagger->tags()) << "\n";
}

int Predict() {
  skiff::models::SentenceTagger tagger(FLAGS_model);
  if (!FLAGS_text.empty()) {
    Print(&tagger, FLAGS_text);
    return 0;
  }
  // An answer for each line, blank ones too, so that the caller can tell which is whose.
  skiff::LineReader lines(&std::cin);
  for (std::string line; lines.Next(&line);) Print(&tagger, line);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::CommandMain(
      argc, argv,
      {.usage = "predict --text=\"karon joined tolmar group today .\" [flags]",
       .summary = "Prints each sentence with its entities in brackets.",
       .run = Predict});
}
