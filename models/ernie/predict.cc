// Fills in the masks of sentences. `predict --help` lists the flags.

#include <gflags/gflags.h>

#include <iostream>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/command_line/command_line.h"
#include "models/ernie/mask_filler.h"

DEFINE_string(model, "ernie_run/model", "Directory of a model that a pre-training saved.");
DEFINE_string(text, "", "The sentence; empty: each line of standard input is one.");
DEFINE_int64(guesses, 5, "How many tokens to show for each mask, the most probable first.");

namespace {

void Print(const std::string& text,
           const std::vector<std::vector<skiff::models::MaskGuess>>& masks) {
  std::cout << text << "\n";
  for (const auto& guesses : masks) {
    std::vector<std::string> parts;
    for (const skiff::models::MaskGuess& guess : guesses) {
      parts.push_back(
          skiff::StrCat(guess.token, " ", skiff::FormatFixed(100 * guess.probability, 1), " %"));
    }
    std::cout << "  " << skiff::Join(parts, "   ") << "\n";
  }
}

int Predict() {
  skiff::models::MaskFiller filler(FLAGS_model);
  if (!FLAGS_text.empty()) {
    Print(FLAGS_text, filler.Fill(FLAGS_text, FLAGS_guesses));
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) {
    if (!line.empty()) Print(line, filler.Fill(line, FLAGS_guesses));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::CommandMain(
      argc, argv,
      {.usage = "predict --text=\"anna lives in [MASK] .\" [flags]",
       .summary = "Fills in each [MASK] of a sentence with a pre-trained ERNIE.",
       .run = Predict});
}
