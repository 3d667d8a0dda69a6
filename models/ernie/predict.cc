// Fills in the masks of sentences. `predict --help` lists the flags.

#include <gflags/gflags.h>

#include <iostream>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/command_line/command_line.h"
#include "framework/io/text_lines.h"
#include "models/ernie/mask_filler.h"

DEFINE_string(model, "ernie_run/model", "Directory of a model that a pre-training saved.");
DEFINE_string(
    text, "",
    "The sentence. Without it, each line of standard input is one, which the output repeats before "
    "its guesses. A line that can't be filled in, such as an empty one, has no guesses and is "
    "reported on standard error; the exit status is 1 then, as it is if there is no line at all.");
DEFINE_int64(guesses, 5, "How many tokens to show for each mask, the most probable first.");

namespace {

void Print(const std::vector<std::vector<skiff::models::MaskGuess>>& masks) {
  for (const auto& guesses : masks) {
    std::vector<std::string> parts;
    for (const skiff::models::MaskGuess& guess : guesses) {
      parts.push_back(
          skiff::StrCat(guess.token, " ", skiff::FormatFixed(100 * guess.probability, 1), " %"));
    }
    std::cout << "  " << skiff::Join(parts, "   ") << "\n";
  }
}

// Repeats every line, so that the caller can tell which guesses are whose. Returns the exit status:
// 1 if a line can't be filled in.
int PredictLines(skiff::models::MaskFiller* filler) {
  int status = 0;
  skiff::LineReader lines(&std::cin);
  for (std::string line; lines.Next(&line);) {
    std::cout << line << "\n";
    try {
      Print(filler->Fill(line, FLAGS_guesses));
    } catch (const skiff::Error& error) {
      std::cout << std::flush;
      std::cerr << "error: line " << lines.number() << ": " << error.what() << std::endl;
      status = 1;
    }
  }
  SKIFF_ENFORCE(lines.number() > 0, kInvalidArgument,
                "there is no text: expected --text or lines of standard input");
  return status;
}

int Predict() {
  SKIFF_ENFORCE(FLAGS_guesses >= 1, kInvalidArgument, "guesses = ", FLAGS_guesses,
                ": expected at least 1");
  skiff::models::MaskFiller filler(FLAGS_model);
  if (!skiff::IsFlagGiven("text")) return PredictLines(&filler);
  const auto guesses = filler.Fill(FLAGS_text, FLAGS_guesses);
  std::cout << FLAGS_text << "\n";
  Print(guesses);
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
