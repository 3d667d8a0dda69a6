#include "framework/builder/tensor_array_layers.h"

#include <utility>

#include "framework/builder/layer_call.h"
#include "framework/builder/tensor_layers.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

Variable NewArray(const LayerCall& call, DType dtype) {
  const Variable array = call.NewOutput();
  array.var().kind = VarKind::kLoDTensorArray;
  array.var().dtype = dtype;
  return array;
}

void EnforceArray(const LayerCall& call, const Variable& array) {
  call.Enforce(array.var().kind == VarKind::kLoDTensorArray, "\"", array.name(), "\" is ",
               VarKindName(array.var().kind), ", expected an array (CreateArray)");
}

std::string UseTable(const LayerCall& call, const Variable& table) {
  const std::string name = call.CheckedName(table);
  call.Enforce(table.var().kind == VarKind::kLoDRankTable, "\"", name, "\" is ",
               VarKindName(table.var().kind), ", expected a rank table (LodRankTable)");
  return name;
}

}  // namespace

Variable CreateArray(DType dtype, Site site) {
  return NewArray(LayerCall("array", "", site), dtype);
}

void ArrayWrite(const Variable& x, const Variable& index, const Variable& array, Site site) {
  const LayerCall call("array_write", "", site);
  const std::string name = call.CheckedName(array);
  EnforceArray(call, array);
  Op op("write_to_array");
  op.SetInput("X", {call.CheckedName(x)})
      .SetInput("I", {call.CheckedName(index)})
      .SetOutput("Out", {name});
  call.Enforce(x.dtype() == array.dtype(), "\"", x.name(), "\" is ", x.dtype(), ", the array \"",
               name, "\" has elements of ", array.dtype());
  call.Append(std::move(op));
}

Variable ArrayRead(const Variable& array, const Variable& index, Site site) {
  const LayerCall call("array_read", "", site);
  EnforceArray(call, array);
  Op op("read_from_array");
  op.SetInput("X", {call.CheckedName(array)}).SetInput("I", {call.CheckedName(index)});
  return call.AppendFor(std::move(op));
}

Variable ArrayLength(const Variable& array, Site site) {
  const LayerCall call("array_length", "", site);
  EnforceArray(call, array);
  Op op("lod_array_length");
  op.SetInput("X", {call.CheckedName(array)});
  return call.AppendFor(std::move(op));
}

Variable ArrayToTensor(const Variable& array, const ArrayToTensorOptions& options, Site site) {
  const LayerCall call("tensor_array_to_tensor", "", site);
  EnforceArray(call, array);
  Op op("tensor_array_to_tensor");
  op.SetInput("X", {call.CheckedName(array)}).SetOutput("OutIndex", {call.NewOutput().name()});
  op.SetAttr("axis", options.axis).SetAttr("use_stack", options.stack);
  return call.AppendFor(std::move(op));
}

Variable TensorToArray(const Variable& x, Site site) {
  const LayerCall call("tensor_to_array", "", site);
  call.CheckedName(x);
  call.Enforce(!x.dims().empty() && x.dims()[0] >= 0, "\"", x.name(), "\" is ", Shape(x.dims()),
               ", expected a known number of parts");
  const Variable array = NewArray(call, x.dtype());
  const std::vector<Variable> parts = Unstack(x, 0, site);
  for (size_t i = 0; i < parts.size(); ++i) {
    ArrayWrite(parts[i], FillConstant({1}, DType::kInt64, static_cast<double>(i), site), array,
               site);
  }
  return array;
}

Variable LodRankTable(const Variable& x, Site site) {
  const LayerCall call("lod_rank_table", "", site);
  call.Enforce(x.var().lod_level > 0, "\"", x.name(), "\" has no LoD, expected a ragged variable");
  Op op("lod_rank_table");
  op.SetInput("X", {call.CheckedName(x)}).SetAttr("level", x.var().lod_level - 1);
  const Variable table = call.AppendFor(std::move(op));
  table.var().kind = VarKind::kLoDRankTable;
  return table;
}

Variable MaxSequenceLength(const Variable& table, Site site) {
  const LayerCall call("max_sequence_len", "", site);
  Op op("max_sequence_len");
  op.SetInput("RankTable", {UseTable(call, table)});
  return call.AppendFor(std::move(op));
}

Variable LodTensorToArray(const Variable& x, const Variable& table, Site site) {
  const LayerCall call("lod_tensor_to_array", "", site);
  const Variable array = NewArray(call, x.dtype());
  Op op("lod_tensor_to_array");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("RankTable", {UseTable(call, table)});
  op.SetOutput("Out", {array.name()});
  call.Append(std::move(op));
  return array;
}

Variable ArrayToLodTensor(const Variable& array, const Variable& table, Site site) {
  const LayerCall call("array_to_lod_tensor", "", site);
  EnforceArray(call, array);
  Op op("array_to_lod_tensor");
  op.SetInput("X", {call.CheckedName(array)}).SetInput("RankTable", {UseTable(call, table)});
  return call.AppendFor(std::move(op));
}

Variable ReorderByRank(const Variable& x, const Variable& table, Site site) {
  const LayerCall call("reorder_lod_tensor_by_rank", "", site);
  Op op("reorder_lod_tensor_by_rank");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("RankTable", {UseTable(call, table)});
  return call.AppendFor(std::move(op));
}

Variable ShrinkByRank(const Variable& x, const Variable& table, const Variable& index, Site site) {
  const LayerCall call("shrink_rnn_memory", "", site);
  Op op("shrink_rnn_memory");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("RankTable", {UseTable(call, table)});
  op.SetInput("I", {call.CheckedName(index)});
  return call.AppendFor(std::move(op));
}

}  // namespace skiff::layers
