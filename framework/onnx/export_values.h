// The values of a graph that a program's variables have at a point of the export.
#pragma once

#include <map>
#include <string>

#include "framework/ir/program.h"
#include "framework/onnx/graph_writer.h"
#include "framework/tensor/scope.h"

namespace skiff::onnx_export {

// A program may write a variable several times; a graph has a value for each definition. The first
// one has the variable's name.
class ExportValues {
 public:
  // All arguments must outlive the object.
  ExportValues(const Block& block, const Scope& scope, GraphWriter* graph);

  // Returns the value of a variable; empty if there is none. The first call for a persistable that
  // no op has written adds it to the graph as a constant. Throws Error (kNotFound) for a
  // persistable that the scope doesn't have.
  std::string Find(const std::string& variable);
  // Returns the name for the next definition of a variable.
  std::string NextName(const std::string& variable);
  void Set(const std::string& variable, std::string value);
  // Says why a variable has no value, for messages.
  void SetMissing(const std::string& variable, std::string reason);
  // Returns that reason.
  std::string WhyMissing(const std::string& variable) const;

 private:
  const Block& block_;
  const Scope& scope_;
  GraphWriter* graph_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::string> missing_;
};

}  // namespace skiff::onnx_export
