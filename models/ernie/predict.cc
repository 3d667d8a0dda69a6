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
DEFINE_string(
    text, "",
    "The sentence. Without it, each line of standard input is one, but for empty lines. A "
    "line that can't be filled in is reported on standard error and left out; the exit "
    "status is 1 then, as it is if there is no sentence at all.");
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

// A line that can't be filled in is told and left out. Returns the exit status: 1 if there was one.
int PredictLines(skiff::models::MaskFiller* filler) {
  int status = 0;
  int64_t number = 0;
  int64_t texts = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    if (line.empty()) continue;
    ++texts;
    try {
      Print(line, filler->Fill(line, FLAGS_guesses));
    } catch (const skiff::Error& error) {
      std::cout << std::flush;
      std::cerr << "error: line " << number << ": " << error.what() << std::endl;
      status = 1;
    }
  }
  SKIFF_ENFORCE(texts > 0, kInvalidArgument,
                "there is no text: expected --text or lines of standard input");
  return status;
}

int Predict() {
  SKIFF_ENFORCE(FLAGS_guesses >= 1, kInvalidArgument, "guesses = ", FLAGS_guesses,
                ": expected at least 1");
  skiff::models::MaskFiller filler(FLAGS_model);
  if (!skiff::IsFlagGiven("text")) return PredictLines(&filler);
  Print(FLAGS_text, filler.Fill(FLAGS_text, FLAGS_guesses));
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
