// The values of a graph that a program's variables have at a point of the export.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/onnx/graph_writer.h"
#include "framework/tensor/scope.h"

namespace skiff::onnx_export {

// The offsets of a ragged variable, one value for each level, the outermost one first.
using LoDValues = std::vector<std::string>;

// A program may write a variable several times; a graph has a value for each definition. The first
// one has the variable's name.
class ExportValues {
 public:
  // All arguments must outlive the object.
  ExportValues(const Block& block, const Scope& scope, GraphWriter* graph);
  // The values of a block that an op of `outer`'s block runs. The block sees the values of `outer`
  // and doesn't change them.
  ExportValues(const Block& block, ExportValues* outer);

  // Returns the value of a variable; empty if there is none. The first call for a persistable that
  // no op has written adds it to the graph as a constant. Throws Error (kNotFound) for a
  // persistable that the scope doesn't have.
  std::string Find(const std::string& variable);
  // Returns the name for the next definition of a variable.
  std::string NextName(const std::string& variable);
  // Sets the value of a variable, and the offsets if the variable is ragged.
  void Set(const std::string& variable, std::string value, LoDValues lod = {});
  // Returns the offsets of a variable's value.
  LoDValues FindLoD(const std::string& variable) const;
  // Says why a variable has no value, for messages.
  void SetMissing(const std::string& variable, std::string reason);
  // Returns that reason.
  std::string WhyMissing(const std::string& variable) const;

  // Returns the values that the first call for the key has made, in this object or an outer object.
  // The values keep their names.
  std::vector<std::string> Shared(const std::string& key,
                                  const std::function<std::vector<std::string>()>& make);

 private:
  struct Value {
    std::string name;
    LoDValues lod;
  };

  // Returns the object whose block has the variable's value: this object or an outer object.
  const ExportValues& HolderOf(const std::string& variable) const;
  std::string AddConstant(const Var& var);

  const Block& block_;
  const Scope& scope_;
  GraphWriter* graph_;
  ExportValues* outer_ = nullptr;
  std::map<std::string, Value> values_;
  std::map<std::string, std::string> missing_;
  std::map<std::string, std::vector<std::string>> shared_;
};

}  // namespace skiff::onnx_export
