// One op of a program, as the exporter of the op needs it: values of the inputs, attributes with
// defaults filled in, and functions that add nodes to the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/onnx/export_values.h"
#include "framework/onnx/graph_writer.h"
#include "framework/op/op_context.h"

namespace skiff::onnx_export {

// An exporter throws it for an op that the graph can't express; export.cc lists all refusals.
struct Refusal {
  std::string reason;
};

// Throws a Refusal.
template <typename... Args>
[[noreturn, gnu::cold, gnu::noinline]] void Refuse(const Args&... args) {
  throw Refusal{StrCat(args...)};
}

// The place of an op in the program, and the objects for its export.
struct ExportSite {
  Block* block = nullptr;
  size_t position = 0;
  int opset = 0;
  // The op moves half values and computes nothing, so no casts to float32 are around it.
  bool keeps_half = false;
  ExportValues* values = nullptr;
  GraphWriter* graph = nullptr;
  // Exports the ops of a block that the op runs.
  std::function<void(Block* block, ExportValues* values)> add_ops;
};

class OpExport {
 public:
  // The context, and the objects that the site points to, must outlive the object.
  OpExport(const OpContext& context, ExportSite site);

  const Op& op() const { return context_.op(); }
  int opset() const { return site_.opset; }

  bool Has(std::string_view slot) const { return context_.HasInput(slot); }
  bool HasOutput(std::string_view slot) const { return context_.HasOutput(slot); }
  size_t InputCount(std::string_view slot) const { return context_.InputCount(slot); }
  size_t OutputCount(std::string_view slot) const { return context_.OutputCount(slot); }
  // Returns the value of an input. Throws Refusal if the graph has none.
  std::string In(std::string_view slot, size_t i = 0);
  // Returns the values of all arguments of a slot.
  std::vector<std::string> Ins(std::string_view slot);
  // Returns the shape of an input, -1 where it is unknown.
  const Shape& ShapeOf(std::string_view slot, size_t i = 0) const;
  int64_t Rank(std::string_view slot) const { return ShapeOf(slot).rank(); }
  const Shape& OutShape(std::string_view slot, size_t i = 0) const;
  // Return the dtype of the values of an input (output): float32 for half that is cast.
  DType DTypeOf(std::string_view slot, size_t i = 0) const;
  DType OutDType(std::string_view slot, size_t i = 0) const;
  bool IsFloatIn(std::string_view slot) const { return IsFloat(DTypeOf(slot)); }

  bool Bool(std::string_view name);
  int64_t Int(std::string_view name);
  float Float(std::string_view name);
  const std::string& Text(std::string_view name);
  std::vector<int64_t> Ints(std::string_view name);
  // Returns an axis attribute, not negative.
  int64_t Axis(std::string_view name, int64_t rank);
  const Attribute& Attr(std::string_view name);
  // Says that nothing in the graph depends on the attribute or the input.
  void Ignore(std::string_view name) { read_.insert(std::string(name)); }
  // Returns whether the op's definition has the attribute.
  bool Defines(std::string_view name) const { return context_.def().FindAttr(name) != nullptr; }
  // Returns an int64 vector: the input that gives the attribute if one is connected, else the
  // attribute.
  std::string IntsValue(std::string_view name);
  // Returns whether an input gives the attribute.
  bool IsGiven(std::string_view name) const;

  // Adds a node and returns its output.
  std::string Node(const std::string& type, const std::vector<std::string>& inputs,
                   const NodeAttrs& attrs = {});
  std::vector<std::string> Nodes(const std::string& type, const std::vector<std::string>& inputs,
                                 const NodeAttrs& attrs, size_t outputs);
  // Return constants: numbers of rank 0 (IntNumber: int64), and a vector of int64.
  std::string Number(DType dtype, double value);
  std::string IntNumber(int64_t value) { return Number(DType::kInt64, static_cast<double>(value)); }
  std::string IntVector(const std::vector<int64_t>& values);
  std::string Constant(const Tensor& tensor);
  std::string Cast(const std::string& value, DType dtype);
  // Refuses an opset below `least`, since `what` is newer.
  void NeedOpset(int least, std::string_view what) const;
  // Returns the values that the first call for the key has made, in the current graph or a graph
  // around it.
  std::vector<std::string> Shared(const std::string& key,
                                  const std::function<std::vector<std::string>()>& make) {
    return site_.values->Shared(key, make);
  }

  bool IsRagged(std::string_view slot, size_t i = 0) const;
  // Return the offsets of a ragged input: of all levels, and of the lowest one. Throw Refusal if
  // the graph has none.
  LoDValues LoD(std::string_view slot, size_t i = 0);
  std::string Offsets(std::string_view slot, size_t i = 0) { return LoD(slot, i).back(); }

  // Makes a value the value of an output. Does nothing if the output is absent.
  void Set(std::string_view slot, const std::string& value, size_t i = 0);
  // Sets the offsets of an output. A ragged output without offsets gets the offsets of the first
  // input with as many levels, as shape rules do.
  void SetLoD(std::string_view slot, LoDValues lod);

  // For ops that run a block: this block, and the block that contains the op.
  Block& SubBlock();
  const Block& block() const { return *site_.block; }
  // Returns the variables around the block that it writes.
  std::vector<const Var*> WrittenByBlock() const;
  // Makes a value the value of a variable.
  void SetVariable(const std::string& variable, const std::string& value);
  // Exports the block's ops into the innermost graph.
  void AddOps(ExportValues* values);
  ExportValues& values() { return *site_.values; }
  GraphWriter& graph() { return *site_.graph; }

  // Gives the variables their values. Throws Refusal if the exporter hasn't asked for an input, or
  // for an attribute that is no hint and differs from the default.
  void Finish();

 private:
  const TensorMeta& Meta(std::string_view slot, size_t i) const;
  std::string ListValue(const SlotDef& slot);
  void CheckAllRead() const;
  LoDValues SharedLoD(int32_t levels) const;

  const OpContext& context_;
  const ExportSite site_;
  const size_t first_node_;
  std::set<std::string, std::less<>> read_;        // attributes and input slots
  std::map<std::string, std::string> widened_;     // float32 of half values
  std::map<std::string, std::string> new_values_;  // by variable
  std::map<std::string, LoDValues> new_lods_;
};

using Exporter = void (*)(OpExport& op);

}  // namespace skiff::onnx_export
