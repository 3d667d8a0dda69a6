// What a rewriting to half has done, and why, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/api/dtype.h"

namespace skiff {

// Why an op with floats computes in float32 in a program of half.
enum class Float32Reason {
  kRule,    // its OpDef::precision is kHigh
  kInput,   // the op follows its largest inputs, and at least one is float32
  kResult,  // the op follows its inputs, but a result must be float32, such as the loss
  kNamed,   // an attribute of it names float32 (AttrDef::names_dtype)
  kKept,    // PrecisionOptions::keep_float32 has it
};

struct HalfReport {
  struct Float32Op {
    std::string type = {};
    Float32Reason reason = Float32Reason::kRule;
    // The variable that decides (kInput, kResult), or the attribute (kNamed); else empty.
    std::string name = {};
  };
  struct Float32Parameter {
    std::string name = {};
    // The op that reads it in float32; empty: the startup program doesn't make its first value, or
    // the level is PrecisionLevel::kCasts.
    std::string reader = {};
  };
  struct Cast {
    std::string variable = {};
    DType to = DType::kFloat32;
    // The type of the op that makes `variable`, or of the first op that reads the result.
    std::string for_op = {};
  };

  DType dtype = DType::kBFloat16;
  int64_t half_ops = 0;
  std::vector<Float32Op> float32_ops = {};  // with floats, in the order of the program
  int64_t half_parameters = 0;
  std::vector<Float32Parameter> float32_parameters = {};
  std::vector<Cast> casts = {};

  // Returns one line: "bfloat16: 61 of 74 ops, 12 of 20 parameters, 14 casts; float32 by their
  // rules: mean (1), softmax (2); like their inputs: elementwise_add (1)".
  std::string Text() const;
  // Returns Text, then a line for each op and parameter in float32, and for each cast, that says
  // why it is there.
  std::string Details() const;
};

}  // namespace skiff
