// Exports the networks and the recurrent models of models/ with random weights, for a check by ONNX
// Runtime (run_exported.py):
//
//   write_models --out=DIR [--opset=17]
//
// DIR/<network>.onnx, and beside it .in.npz and .out.npz with inputs and what Skiff computes; of
// further runs .run1.in.npz, ….
#include <gflags/gflags.h>

#include <cstdio>
#include <string>

#include "framework/base/error.h"
#include "framework/command_line/command_line.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/onnx/export.h"
#include "tests/onnx/networks.h"
#include "tests/onnx/saved_models.h"

DEFINE_string(out, "", "folder to write to; made if it isn't there");
DEFINE_int32(opset, 17, "the opset of the files");

namespace skiff::onnx_tests {
namespace {

void WriteNetwork(const Network& network) {
  const BuiltNetwork built = Build(network);
  const auto path = [&](const char* ending) { return JoinPath(FLAGS_out, network.name + ending); };
  ExportOnnx(path(".onnx"), built.feed_names, {built.fetch}, *built.program,
             built.executor->scope(), {.opset = FLAGS_opset});
  WriteNpz(path(".in.npz"), built.feeds);
  WriteNpz(path(".out.npz"), {{built.fetch, built.output}});
  std::printf("%s\n", network.name.c_str());
}

void WriteModel(const SavedModel& model) {
  const BuiltModel built = Build(model);
  const std::string path = JoinPath(FLAGS_out, model.name);
  for (size_t i = 0; i < model.feeds.size(); ++i) {
    const std::string run = i == 0 ? path : StrCat(path, ".run", i);
    WriteNpz(run + ".in.npz", model.feeds[i]);
    WriteNpz(run + ".out.npz", built.outputs[i]);
  }
  ExportOnnx(path + ".onnx", built.programs.model_inputs, built.programs.model_outputs,
             built.program(), built.executor->scope(), {.opset = FLAGS_opset});
  std::printf("%s\n", model.name.c_str());
}

int Write() {
  SKIFF_ENFORCE(!FLAGS_out.empty(), kInvalidArgument, "--out is missing, expected a folder");
  CreateDirectories(FLAGS_out);
  for (const Network& network : Networks()) WriteNetwork(network);
  for (const SavedModel& model : SavedModels()) WriteModel(model);
  return 0;
}

}  // namespace
}  // namespace skiff::onnx_tests

int main(int argc, char** argv) {
  return skiff::CommandMain(
      argc, argv,
      {.usage = "write_models --out=DIR [--opset=N]",
       .summary = "Exports the networks of models/ with random weights as ONNX models.",
       .run = skiff::onnx_tests::Write});
}
