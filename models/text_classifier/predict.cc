// Classifies texts. `predict --help` lists the flags.

#include <gflags/gflags.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "framework/base/number_text.h"
#include "framework/base/str_cat.h"
#include "framework/command_line/command_line.h"
#include "framework/io/text_lines.h"
#include "models/text_classifier/text_labeller.h"

DEFINE_string(model, "text_classifier_run/model", "Directory of a model that a training saved.");
DEFINE_string(
    text, "",
    "The text; empty: each line of standard input is one, and has one line of the output.");

namespace {

void Print(skiff::models::TextLabeller* labeller, const std::string& text) {
  const std::vector<float> probabilities = labeller->Classify({text})[0];
  const auto best = std::ranges::max_element(probabilities);
  std::cout << best - probabilities.begin() << "  "
            << skiff::FormatFixed(100 * static_cast<double>(*best), 1) << " %  " << text << "\n";
}

int Predict() {
  skiff::models::TextLabeller labeller(FLAGS_model);
  if (!FLAGS_text.empty()) {
    Print(&labeller, FLAGS_text);
    return 0;
  }
  // An answer for each line, blank ones too, so that the caller can tell which is whose.
  skiff::LineReader lines(&std::cin);
  for (std::string line; lines.Next(&line);) Print(&labeller, line);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "predict --text=\"the soup was not good\" [flags]",
                             .summary = "Prints the class of each text, and its probability.",
                             .run = Predict});
}
