// Writes a text with a trained character model. `generate --help` lists the flags.

#include <gflags/gflags.h>

#include <iostream>
#include <string>

#include "framework/command_line/command_line.h"
#include "models/char_rnn/text_writer.h"

DEFINE_string(model, "char_rnn_run/model", "Directory of a model that a training saved.");
DEFINE_string(prompt, "The ", "What the text begins with: at least one character.");
DEFINE_int64(length, 400, "Characters to write behind the prompt.");
DEFINE_double(
    temperature, 1.0,
    "Below 1, probable characters become more probable; above 1, less. Must be positive.");
DEFINE_int64(top_k, 0,
             "Draws from so many most probable characters only: 1 always takes the most probable "
             "one. 0: from all.");
DEFINE_uint64(seed, 1, "Of the draws: the same seed gives the same text.");

namespace {

int Generate() {
  skiff::models::TextWriter writer(FLAGS_model, FLAGS_seed);
  // First, so that an error prints no part of the text.
  const std::string text =
      writer.Write(FLAGS_prompt, {.length = FLAGS_length,
                                  .temperature = static_cast<float>(FLAGS_temperature),
                                  .top_k = FLAGS_top_k});
  std::cout << FLAGS_prompt << text << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "generate --prompt=\"The \" [flags]",
                             .summary = "Writes a text, one character after the other.",
                             .run = Generate});
}
