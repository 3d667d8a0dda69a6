// Models of ONNX as programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/io/inference_model.h"
#include "framework/tensor/scope.h"

namespace skiff {

struct OnnxImportOptions {
  // Weights, inputs and casts of float16 and bfloat16 become float32.
  bool widen_half = false;
  // By input: all of its dims, where the file leaves some open. A program for these dims alone can
  // have what depends on them, such as a branch for one of two lengths.
  std::map<std::string, std::vector<int64_t>> feed_dims = {};
};

// Reads a model of ONNX (IR 3 to 12, opset 7 to 24 of the default domain) as a program that runs
// and can be trained, with its weights in `scope`. Fed and fetched variables have the names of the
// file, and so do the variables that nodes write and the parameters. Dims that the file doesn't
// know are -1.
//
// Initializers of floats become parameters, but for scalars, which are constants, as are whole
// numbers and bools. An Identity of an initializer is a parameter of its own: exporters join equal
// weights so. The weights of an LSTM, GRU or RNN become parameters in Skiff's order, if nothing
// else reads them (docs/onnx.md). What follows from constants and known shapes is computed here; a
// batch norm uses its running statistics in training, too. Compositions of nodes for which Skiff
// has one op become that op, and attention gets the form that passes know (compositions_found.h).
// Functions of the file are written out. Loops and branches become those of Skiff, whose limits
// hold.
//
// Throws Error before the scope changes:
// - what ReadOnnxModel and TensorFromOnnx throw;
// - kUnimplemented for another version of the format, and one for all nodes that aren't supported,
//   each with its name, op, domain and version;
// - kNotFound and kInvalidArgument for dims of an input that isn't there, or has others;
// - kInvalidArgument, one for all mistakes of the graph: cycles, names without a maker or with two
//   makers, and shapes that don't fit.
InferenceModel ImportOnnx(const std::string& path, Scope* scope,
                          const OnnxImportOptions& options = {});

}  // namespace skiff
