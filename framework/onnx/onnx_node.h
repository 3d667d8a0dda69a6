// One node of an ONNX graph, as the functions that convert nodes see it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/layer_call.h"
#include "framework/ir/program.h"
#include "framework/onnx/graph_builder.h"
#include "framework/onnx/onnx.pb.h"
#include "framework/onnx/shifted_number.h"

namespace skiff {

// Constants that a node makes of few numbers may not have more elements.
inline constexpr int64_t kMostConstant = int64_t{1} << 24;

// Thrown when the graph of an attribute has parts that aren't supported, which are reported on
// their own.
struct SpoiltGraph {};

// What nodes need of the import.
struct OnnxNodeContext {
  int64_t opset = 0;  // the version of ONNX's operators that the graph was written for
  bool widen_half = false;
  std::string folder;  // of the file
  GraphBuilder* builder = nullptr;
  // Converts a graph in the current block, with the given values as inputs, and returns the
  // outputs.
  std::function<std::vector<OnnxValuePtr>(const onnx::GraphProto&,
                                          const std::vector<OnnxValuePtr>&)>
      convert;
  // Returns the value that a name has for the node and its graphs, nullptr for a name without a
  // value.
  std::function<OnnxValuePtr(const std::string&)> find;
};

// Every function throws an Error, which the import reports with the node: kUnimplemented for a
// legal node that isn't supported, kInvalidArgument for a node that ONNX doesn't allow.
class OnnxNode {
 public:
  // `inputs` and `outputs` have an entry for each name; nullptr for an empty one.
  OnnxNode(const onnx::NodeProto& proto, const OnnxNodeContext& context,
           std::vector<OnnxValuePtr> inputs, std::vector<OnnxValue*> outputs);

  int64_t opset() const { return context_.opset; }
  bool widens_half() const { return context_.widen_half; }

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  bool Has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  bool Wants(size_t i) const { return i < outputs_.size() && outputs_[i] != nullptr; }

  // Returns input i as a variable.
  Variable In(size_t i) const;
  // The same, but refuses a variable of fewer than `least` or more than `most` axes.
  Variable InOfRank(size_t i, size_t least, size_t most) const;
  // Returns input i, which is there.
  const OnnxValuePtr& Value(size_t i) const;
  // Returns the elements of input i, a sequence.
  const std::vector<OnnxValuePtr>& Items(size_t i) const;
  // Returns the numbers of input i, nullptr if they depend on a run. The numbers of a weight are
  // known as well: an attribute made of the numbers doesn't change when training changes the
  // weight.
  const Tensor* Known(size_t i) const;
  // Returns the numbers of input i if they are constants, or weights that nothing else reads; else
  // nullptr.
  const Tensor* Own(size_t i) const;
  // Returns numbers that were made of Own(i) as a weight or constant like it. A weight is named
  // like the input, with `suffix`.
  Variable MakeOwn(size_t i, const std::string& suffix, Tensor tensor) const;
  // Returns the numbers of a value that the node's graphs see, nullptr if nobody knows them.
  const Tensor* KnownAround(const std::string& name) const;
  // Returns how input i, a vector of one whole number, is computed from another number.
  ShiftedNumber Shifted(size_t i) const;
  // Returns whole numbers of an input, nothing if they depend on a run.
  std::optional<std::vector<int64_t>> KnownInts(size_t i) const;
  // Returns the numbers of a vector or a scalar of dims. Returns nothing if no number is known, or
  // a known number is below 0 and so is no dim.
  std::optional<PartlyKnownDims> KnownDims(size_t i) const;
  // The same as KnownInts, but refuses the node if the numbers depend on a run; an absent input has
  // no numbers.
  std::vector<int64_t> Ints(size_t i) const;
  // Returns the only number of an input, or `fallback` if the input is absent. Refuses an input of
  // several numbers, or of none.
  double Number(size_t i, double fallback) const;
  // The same, but cuts off the fraction of a float. Refuses a float that is beyond int64.
  int64_t WholeNumber(size_t i, int64_t fallback) const;

  bool HasAttr(std::string_view name) const { return Find(name) != nullptr; }
  int64_t Int(std::string_view name, int64_t fallback) const;
  float Float(std::string_view name, float fallback) const;
  std::string String(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> IntList(std::string_view name, std::vector<int64_t> fallback = {}) const;
  std::vector<float> FloatList(std::string_view name, std::vector<float> fallback = {}) const;
  std::vector<std::string> StringList(std::string_view name) const;
  Tensor TensorOf(std::string_view name) const;
  // Returns the graph of an attribute. Refuses a node without it.
  const onnx::GraphProto& Graph(std::string_view name) const;
  // Converts the graph of an attribute in the current block, with the given values as inputs, and
  // returns the `output_count` outputs. Throws SpoiltGraph.
  std::vector<OnnxValuePtr> Body(std::string_view name, const std::vector<OnnxValuePtr>& inputs,
                                 size_t output_count) const;
  // Returns the variable of a value that Body has returned.
  Variable VariableOf(const OnnxValuePtr& value) const;

  // Returns a whole number, or a list of them, that is an attribute before version `since` and an
  // input from then on; nothing if it is neither.
  std::optional<std::vector<int64_t>> IntsSince(int64_t since, size_t i,
                                                std::string_view name) const;

  void Out(size_t i, const Variable& variable) const;
  void OutKnown(size_t i, Tensor tensor) const;
  // Makes output i a sequence.
  void OutItems(size_t i, std::vector<OnnxValuePtr> items) const;
  // Sets the known dims of an output that has a variable.
  void OutKnownDims(size_t i, std::optional<PartlyKnownDims> dims) const;
  // Makes output i another name of input k (of a value), with its known numbers.
  void OutSame(size_t i, size_t k) const;
  void OutValue(size_t i, const OnnxValue& value) const;

  // Appends an op with one output, in `slot`, and returns that.
  Variable Emit(Op op, std::string_view slot = "Out") const;

  template <typename... Args>
  [[noreturn]] void Unsupported(const Args&... args) const {
    Throw(ErrorCode::kUnimplemented, args...);
  }
  template <typename... Args>
  [[noreturn]] void Invalid(const Args&... args) const {
    Throw(ErrorCode::kInvalidArgument, args...);
  }
  // Enforces that there are inputs 0 … least - 1 and no more than `most`.
  void CheckInputs(size_t least, size_t most) const;
  // Returns an axis counted from the front. Refuses one outside of [-rank, rank).
  int64_t Axis(int64_t axis, size_t rank) const;
  // Returns the dtype of Skiff for ONNX's dtype, widened if asked for. Throws if there is none.
  DType DTypeOfOnnx(int64_t data_type) const;

 private:
  const onnx::AttributeProto* Find(std::string_view name) const;
  const onnx::AttributeProto* Find(std::string_view name,
                                   onnx::AttributeProto::AttributeType type) const;

  const onnx::NodeProto& proto_;
  const OnnxNodeContext& context_;
  std::vector<OnnxValuePtr> inputs_;
  std::vector<OnnxValue*> outputs_;
};

// Returns "Conv of version 11" for a list of unsupported nodes.
std::string DescribeOnnxNode(const onnx::NodeProto& node, int64_t opset);

using OnnxConverter = void (*)(const OnnxNode& node);

// Returns the function that converts nodes of an op of ONNX's own domain, nullptr if there is none.
OnnxConverter FindOnnxConverter(std::string_view op);

struct OnnxConverterEntry {
  std::string_view op;
  OnnxConverter convert;
};
// The families of converters.
std::vector<OnnxConverterEntry> ElementwiseConverters();
std::vector<OnnxConverterEntry> ShapeConverters();
std::vector<OnnxConverterEntry> SliceConverters();
std::vector<OnnxConverterEntry> PadConverters();
std::vector<OnnxConverterEntry> FillConverters();
std::vector<OnnxConverterEntry> ImageConverters();
std::vector<OnnxConverterEntry> IndexConverters();
std::vector<OnnxConverterEntry> ReduceConverters();
std::vector<OnnxConverterEntry> NnConverters();
std::vector<OnnxConverterEntry> ControlFlowConverters();
std::vector<OnnxConverterEntry> SequenceConverters();
std::vector<OnnxConverterEntry> RecurrentConverters();
std::vector<OnnxConverterEntry> ResizeConverters();
std::vector<OnnxConverterEntry> LossConverters();
std::vector<OnnxConverterEntry> EinsumConverters();
std::vector<OnnxConverterEntry> PoolConverters();
std::vector<OnnxConverterEntry> AttentionConverters();

}  // namespace skiff
