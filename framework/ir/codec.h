// Programs as bytes: the ProgramDesc message of Fluid (framework.proto).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "framework/base/dtype.h"
#include "framework/ir/program.h"

namespace skiff {

// The serialised ProgramDesc. What the format has no place for isn't saved: the program's seed, op
// ids and creation sites, a parameter's trainable and learning_rate_factor, the lod_level of
// selected rows. Error (kInvalidArgument) for an attribute of a variable that is neither int,
// string nor ints.
std::string SerializeProgram(const Program& program);

// The program of a serialised ProgramDesc; ops get their ids in order. Error (kDataLoss) for bytes
// that are no ProgramDesc, for blocks out of place, parents that don't precede, block attributes
// out of range, duplicate variables, slots or attributes, attributes without a value, unknown
// enumerators; Error (kUnimplemented) for known types that Skiff doesn't have (complex numbers, …).
// Of a reader's tensors only the first is read.
std::unique_ptr<Program> ParseProgram(std::string_view bytes);

// The serialised VarType.TensorDesc of a tensor stream, and its inverse. Parsing: Error (kDataLoss)
// for bytes that are no TensorDesc, kUnimplemented for a dtype that Skiff doesn't have. Dims are
// returned as they are, negative ones too.
std::string SerializeTensorDesc(DType dtype, const std::vector<int64_t>& dims);
void ParseTensorDesc(std::string_view bytes, DType* dtype, std::vector<int64_t>* dims);

}  // namespace skiff
