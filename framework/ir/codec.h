// Conversion between programs and the bytes of a program file: Fluid's ProgramDesc message, whose
// schema is tests/framework/ir/framework.proto. Only the format is protobuf's: a library that held
// libprotobuf would clash with a program that links another version of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/ir/program.h"

namespace skiff {

// Returns the serialised ProgramDesc. The format has no fields for the program's seed, op ids,
// creation sites, a parameter's `trainable` and `learning_rate_factor`, and the lod_level of
// selected rows, so these are lost. Throws Error (kInvalidArgument) if an attribute of a variable
// is neither int, string nor ints, and (kOutOfRange) for 2 GiB or more.
std::string SerializeProgram(const Program& program);

// Returns the program in a serialised ProgramDesc. Ops get ids in order. Of a reader variable only
// the first tensor is read. PaddlePaddle writes programs in which an op or variable has an
// attribute more than once: the last value counts; or a dim of a variable is below -1: it is
// unknown, -1. `*warnings`, if given, gets a message for each. A block that is its own forward
// block has none. Throws Error
// - (kDataLoss) if the bytes are no ProgramDesc, or contain a block out of order, a parent that
//   doesn't precede its block, a block attribute out of range, a duplicate variable or slot, an
//   attribute without a value, or an unknown enumerator;
// - (kUnimplemented) for types that Fluid has and Skiff doesn't, such as complex numbers.
std::unique_ptr<Program> ParseProgram(std::string_view bytes,
                                      std::vector<std::string>* warnings = nullptr);

// Convert between a tensor's dtype and dims and the serialised VarType.TensorDesc of a tensor
// stream. ParseTensorDesc returns dims unchecked, negative ones too. It throws Error (kDataLoss) if
// the bytes are no TensorDesc, and (kUnimplemented) for a dtype that Skiff doesn't support.
std::string SerializeTensorDesc(DType dtype, const std::vector<int64_t>& dims);
void ParseTensorDesc(std::string_view bytes, DType* dtype, std::vector<int64_t>* dims);

}  // namespace skiff
