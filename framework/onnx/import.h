// Models of ONNX as programs.
#pragma once

#include <string>

#include "framework/io/inference_model.h"
#include "framework/onnx/import_options.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Reads a model of ONNX (IR 3 to 12, opset 7 to 24 of the default domain) as a program that runs
// and can be trained, with its weights in `scope`. Fed and fetched variables have the names of the
// file, and so do the variables that nodes write and the parameters. Dims that the file doesn't
// know are -1.
//
// Initializers of floats become parameters. Scalars, whole numbers and bools are constants. An
// Identity of an initializer is a parameter of its own: exporters join equal weights so. The
// weights of an LSTM, GRU or RNN become parameters in Skiff's order, if nothing else reads them
// (docs/onnx.md). What follows from constants and known shapes is computed here; a batch norm uses
// its running statistics in training, too. A composition of nodes becomes one op where Skiff has
// that op, and attention gets the form of the passes (compositions_found.h). Functions of the file
// are written out. Loops and branches become loops and branches of Skiff, whose limits hold.
//
// Throws Error before the scope changes:
// - what ReadOnnxModel and TensorFromOnnx throw;
// - kUnimplemented for another version of the format, and a list of all nodes that aren't
//   supported, each with its name, op, domain and version;
// - kNotFound and kInvalidArgument for dims of an input that isn't there, or has others;
// - kInvalidArgument with a list of all mistakes of the graph: cycles, names without a
//   maker or with two makers, and shapes that don't fit.
InferenceModel ImportOnnx(const std::string& path, Scope* scope,
                          const OnnxImportOptions& options = {});

}  // namespace skiff
