#include "tools/skiff/summary.h"

#include <gflags/gflags.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "framework/analysis/model_summary.h"
#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/parameter_marks.h"
#include "framework/ir/codec.h"

DECLARE_string(program);
DECLARE_int64(batch_size);
DECLARE_bool(json);

namespace skiff {
namespace {

std::unique_ptr<Program> Load(const std::string& path) {
  const std::string bytes = ReadFile(path);
  try {
    std::unique_ptr<Program> program = ParseProgram(bytes);
    RestoreParameterMarks(*program);
    return program;
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
}

nlohmann::ordered_json Flop(const std::optional<double>& flop) {
  return flop ? nlohmann::ordered_json(*flop) : nlohmann::ordered_json();
}

std::string Json(const ModelSummary& summary) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerSummary& layer : summary.layers) {
    layers.push_back({{"name", layer.name},
                      {"ops", layer.ops},
                      {"output", layer.output.ToVector()},
                      {"parameters", layer.parameters},
                      {"trainable_parameters", layer.trainable_parameters},
                      {"flop", Flop(layer.flop)}});
  }
  const nlohmann::ordered_json json = {{"layers", layers},
                                       {"parameters", summary.parameters},
                                       {"trainable_parameters", summary.trainable_parameters},
                                       {"parameter_bytes", summary.parameter_bytes},
                                       {"flop", Flop(summary.flop)}};
  // Names in a file may be any bytes.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int Run() {
  const ModelSummary summary = Summarize(*Load(FLAGS_program), {.batch_size = FLAGS_batch_size});
  std::fputs((FLAGS_json ? Json(summary) : summary.Text()).c_str(), stdout);
  return 0;
}

}  // namespace

Subcommand SummarySubcommand() {
  return {.name = "summary",
          .summary = "the layers of a saved program: outputs, parameters, FLOP",
          .command = {.usage = "skiff summary FILE [--batch_size=N] [--json]",
                      .summary =
                          "Loads a serialised ProgramDesc, such as __model__, and prints a line "
                          "for each layer of its\nforward pass: ops, shape of the output, elements "
                          "of its parameters, and the FLOP of its matrix\nproducts and "
                          "convolutions. With --batch_size=0, the default, shapes stay as the "
                          "program declares\nthem; FLOP that depend on an unknown dim are `?` "
                          "(null in JSON).",
                      .run = Run,
                      .flag_defaults = {{"batch_size", "0"}},
                      .flags = {"batch_size", "json"},
                      .operand = "program"}};
}

}  // namespace skiff
