// The table of all that the generator binds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "python_stub/arguments.h"

namespace skiff::python {

// A struct of results, which becomes a named tuple.
struct BoundTuple {
  std::string module;
  std::string name;
  std::vector<std::string> fields;
};

std::vector<std::span<const BoundFunction>> BoundFunctions();
std::vector<BoundTuple> BoundTuples();

}  // namespace skiff::python
