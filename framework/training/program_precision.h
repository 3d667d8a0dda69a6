// What a training computes in, as far as its program tells.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/base/dtype.h"
#include "framework/ir/program.h"

namespace skiff::training {

struct ProgramPrecision {
  // bfloat16 or float16 if a parameter or what a forward op makes is of that dtype: the parameters'
  // if there are several; else float32.
  DType dtype = DType::kFloat32;
  int64_t half_parameters = 0;
  int64_t parameters = 0;  // all of them

  // Returns the settings of a training that have their names on the command line: "precision" and
  // "precision_level", which is "casts" for a program in half without a parameter in half.
  std::map<std::string, std::string> Settings() const;
  // Returns one line for people: "bfloat16: 12 of 20 parameters". Empty for float32.
  std::string Text() const;
};

// `main`: the program of a training step.
ProgramPrecision PrecisionOf(const Program& main);

}  // namespace skiff::training
