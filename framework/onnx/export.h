// Writes models as ONNX files, which other frameworks and runtimes read.
//
// Each op becomes nodes of ONNX's standard domain that compute the same; fused ops become their
// compositions, and loops and branches Loop, Scan and If. Parameters and other persistables become
// initializers. Variables keep their names, except that a variable which is written several times
// has a value for each write. An output has the name of its fetch, or "<fetch>.out" if a feed has
// the same name. A parameter with the name of a fetch becomes "<fetch>_1". A dim of -1 becomes a
// symbol of its own, "<feed>.<axis>". A ragged feed or fetch also has int64 offsets, "<feed>.lod0",
// …. Half values are computed as Skiff does: in float32, rounded once.
#pragma once

#include <string>
#include <vector>

#include "framework/io/inference_model.h"
#include "framework/ir/api/program.h"
#include "framework/tensor/scope.h"

namespace skiff {

struct OnnxExportOptions {
  // The version of the operators, 13 to 24. It decides the version of the file format, too: 8 for
  // opset 17.
  int opset = 17;
  std::string graph_name = "skiff";
};

// Writes the part of the program that computes the fetches from the feeds, in evaluation: training
// ops are dropped, and the others have is_test set. The program doesn't change. The file appears
// when it is complete.
//
// Throws Error:
// - kUnimplemented, with a list of all ops without a form in ONNX, in all blocks, and the reasons;
// - kNotFound for a feed or fetch that isn't in the root block, and for a persistable that isn't in
//   the scope;
// - kInvalidArgument for a feed or fetch that isn't a dense tensor or is named twice, for a fetch
//   that nothing computes, for an unneeded feed, and for an opset outside of 13 to 24;
// - kOutOfRange for a model of 2 GiB or more, the limit of a message of protobuf;
// - what writing a file throws.
void ExportOnnx(const std::string& path, const std::vector<std::string>& feeds,
                const std::vector<std::string>& fetches, const Program& program, const Scope& scope,
                const OnnxExportOptions& options = {});
// The same for the feeds and fetches of a model.
void ExportOnnx(const std::string& path, const InferenceModel& model, const Scope& scope,
                const OnnxExportOptions& options = {});
// Returns the bytes of the file.
std::string OnnxBytes(const std::vector<std::string>& feeds,
                      const std::vector<std::string>& fetches, const Program& program,
                      const Scope& scope, const OnnxExportOptions& options = {});

}  // namespace skiff
