// Ops that find elements by indices, or indices by elements.
#include <algorithm>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"

namespace skiff::onnx_export {
namespace {

// Returns indices [m] of [m, 1]; others as they are.
std::string IndexVector(OpExport& op, std::string_view slot) {
  const std::string index = op.In(slot);
  return op.Rank(slot) == 2 ? Reshaped(op, index, {-1}) : index;
}

void TakeAlong(OpExport& op, int64_t axis) {
  op.Set("Out", op.Node("Gather", {op.In("X"), IndexVector(op, "Index")}, {{"axis", axis}}));
}

void Gather(OpExport& op) { TakeAlong(op, op.Axis("axis", op.Rank("X"))); }
void IndexSelect(OpExport& op) { TakeAlong(op, op.Axis("dim", op.Rank("X"))); }

void GatherNd(OpExport& op) {
  const Shape& index = op.ShapeOf("Index");
  if (index.rank() == 0 || index[index.rank() - 1] <= 0) Refuse("Index has tuples of 0 indices");
  const std::string wide = op.Cast(op.In("Index"), DType::kInt64);
  op.Set("Out", op.Node("GatherND", {op.In("X"), wide}));
}

void TakeAlongAxis(OpExport& op) {
  if (op.Rank("Input") == 0) Refuse("Input is a scalar");
  const int64_t axis = op.Axis("Axis", op.Rank("Input"));
  op.Set("Result", op.Node("GatherElements", {op.In("Input"), op.In("Index")}, {{"axis", axis}}));
}

void PutAlongAxis(OpExport& op) {
  if (op.Rank("Input") == 0) Refuse("Input is a scalar");
  const int64_t axis = op.Axis("Axis", op.Rank("Input"));
  const std::string reduce = op.Text("Reduce");
  const bool keeps = op.Bool("Include_self");
  if (!keeps && reduce != "assign") Refuse("Include_self = false");
  NodeAttrs attrs = {{"axis", axis}};
  if (reduce != "assign") {
    op.NeedOpset(16, "a reduction of ScatterElements");
    attrs.push_back({"reduction", std::string(reduce == "add" ? "add" : "mul")});
  }
  op.Set("Result",
         op.Node("ScatterElements", {op.In("Input"), op.In("Index"), op.In("Value")}, attrs));
}

std::string RowIndices(OpExport& op, std::string_view slot) {
  return Reshaped(op, op.Cast(op.In(slot), DType::kInt64), {-1, 1});
}

void Scatter(OpExport& op) {
  const bool overwrites = op.Bool("overwrite");
  const std::string x = op.In("X");
  const std::string ids = RowIndices(op, "Ids");
  std::string updates = op.In("Updates");
  if (op.Rank("Ids") == 0) updates = Unsqueezed(op, updates, {0});
  if (overwrites) return op.Set("Out", op.Node("ScatterND", {x, ids, updates}));
  op.NeedOpset(16, "a reduction of ScatterND");
  const std::string zeros =
      op.Node("Expand", {op.Number(op.DTypeOf("X"), 0), op.Node("Shape", {updates})});
  const std::string cleared = op.Node("ScatterND", {x, ids, zeros});
  op.Set("Out", op.Node("ScatterND", {cleared, ids, updates}, {{"reduction", std::string("add")}}));
}

void ScatterNdAdd(OpExport& op) {
  op.NeedOpset(16, "a reduction of ScatterND");
  const Shape& index = op.ShapeOf("Index");
  if (index.rank() == 0 || index[index.rank() - 1] <= 0) Refuse("Index has tuples of 0 indices");
  const std::string wide = op.Cast(op.In("Index"), DType::kInt64);
  op.Set("Out", op.Node("ScatterND", {op.In("X"), wide, op.In("Updates")},
                        {{"reduction", std::string("add")}}));
}

// The rows of a table; zeros for the id padding_idx.
void Lookup(OpExport& op, std::string ids, int64_t rank) {
  const int64_t padding = op.Int("padding_idx");
  const int64_t rows = op.ShapeOf("W")[0];
  if (padding == -1) return op.Set("Out", op.Node("Gather", {op.In("W"), ids}));
  const int64_t id = padding < 0 ? padding + rows : padding;
  const std::string number = op.Number(op.DTypeOf("Ids"), static_cast<double>(id));
  const std::string is_id = op.Node("Equal", {ids, number});
  // The id may be outside the table.
  if (id >= rows) ids = op.Node("Where", {is_id, op.Number(op.DTypeOf("Ids"), 0), ids});
  const std::string found = op.Node("Gather", {op.In("W"), ids});
  const std::string is_padding = Unsqueezed(op, is_id, {rank});
  op.Set("Out", op.Node("Where", {is_padding, op.Number(op.DTypeOf("W"), 0), found}));
}

void LookupTable(OpExport& op) {
  const int64_t rank = op.Rank("Ids");
  Lookup(op, Squeezed(op, op.In("Ids"), {rank - 1}), rank - 1);
}

void LookupTableV2(OpExport& op) { Lookup(op, op.In("Ids"), op.Rank("Ids")); }

// ONNX's OneHot counts indices below 0 from the back, so they are compared here.
void OneHotRows(OpExport& op, const std::string& indices, int64_t rank) {
  const int64_t depth = op.Axis("depth", 0);
  op.Ignore("allow_out_of_range");
  op.Ignore("dtype");
  std::vector<int64_t> places(static_cast<size_t>(depth));
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  const std::string wide = Unsqueezed(op, op.Cast(indices, DType::kInt64), {rank});
  const std::string is_there = op.Node("Equal", {wide, op.IntVector(places)});
  op.Set("Out", op.Cast(is_there, op.OutDType("Out")));
}

void OneHot(OpExport& op) {
  const int64_t rank = op.Rank("X");
  OneHotRows(op, Squeezed(op, op.In("X"), {rank - 1}), rank - 1);
}

void OneHotV2(OpExport& op) { OneHotRows(op, op.In("X"), op.Rank("X")); }

void MaskedSelect(OpExport& op) {
  const std::string x = Reshaped(op, op.In("X"), {-1});
  op.Set("Y", op.Node("Compress", {x, Reshaped(op, op.In("Mask"), {-1})}));
}

void WhereIndex(OpExport& op) {
  if (op.Rank("Condition") == 0) Refuse("Condition is a scalar");
  op.Set("Out", Transposed(op, op.Node("NonZero", {op.In("Condition")}), {1, 0}));
}

void ArgExtreme(OpExport& op, const std::string& type) {
  const bool is_flat = op.Bool("flatten");
  const bool keeps = op.Bool("keepdims");
  const int64_t rank = op.Rank("X");
  int64_t axis = op.Axis("axis", rank);
  op.Ignore("dtype");
  std::string x = op.In("X");
  if (is_flat || rank == 0) {
    x = Reshaped(op, x, {-1});
    axis = 0;
  }
  std::string place =
      op.Node(type, {x}, {{"axis", axis}, {"keepdims", int64_t{keeps && !is_flat ? 1 : 0}}});
  if (is_flat && keeps) {
    place = Reshaped(op, place, std::vector<int64_t>(static_cast<size_t>(rank), 1));
  } else if (is_flat || rank == 0) {
    place = Reshaped(op, place, {});
  }
  const DType dtype = op.OutDType("Out");
  op.Set("Out", dtype == DType::kInt64 ? place : op.Cast(place, dtype));
}

void ArgMax(OpExport& op) { ArgExtreme(op, "ArgMax"); }
void ArgMin(OpExport& op) { ArgExtreme(op, "ArgMin"); }

void SetTopK(OpExport& op, const std::string& x, const std::string& k, int64_t axis, bool largest) {
  const std::vector<std::string> found =
      op.Nodes("TopK", {x, k}, {{"axis", axis}, {"largest", int64_t{largest ? 1 : 0}}}, 2);
  op.Set("Out", found[0]);
  op.Set("Indices", found[1]);
}

void Argsort(OpExport& op) {
  const int64_t rank = op.Rank("X");
  const bool descending = op.Bool("descending");
  if (rank == 0) Refuse("X is a scalar");
  const int64_t axis = op.Axis("axis", rank);
  const std::string x = op.In("X");
  SetTopK(op, x, DimsOf(op, x, axis, axis + 1), axis, descending);
}

void TopK(OpExport& op) {
  const int64_t rank = op.Rank("X");
  if (rank == 0) Refuse("X is a scalar");
  const bool is_v2 = op.Defines("axis");
  const int64_t axis = is_v2 ? op.Axis("axis", rank) : rank - 1;
  const bool largest = !is_v2 || op.Bool("largest");
  op.Ignore("sorted");
  const int64_t k = op.Int("k");
  const std::string count =
      op.Has("K") ? Reshaped(op, op.Cast(op.In("K"), DType::kInt64), {1}) : op.IntVector({k});
  SetTopK(op, op.In("X"), count, axis, largest);
}

void Unique(OpExport& op) {
  std::vector<int64_t> axes = op.Ints("axis");
  const int64_t sorted = op.Bool("is_sorted") ? 1 : 0;
  op.Ignore("dtype");
  NodeAttrs attrs = {{"sorted", sorted}};
  if (!axes.empty()) attrs.push_back({"axis", axes[0] < 0 ? axes[0] + op.Rank("X") : axes[0]});
  const std::vector<std::string> found = op.Nodes("Unique", {op.In("X")}, attrs, 4);
  op.Set("Out", found[0]);
  const char* slots[] = {"Indices", "Index", "Counts"};
  for (size_t i = 0; i < 3; ++i) {
    if (!op.HasOutput(slots[i])) continue;
    const bool is_int32 = op.OutDType(slots[i]) == DType::kInt32;
    op.Set(slots[i], is_int32 ? op.Cast(found[i + 1], DType::kInt32) : found[i + 1]);
  }
}

void Cumsum(OpExport& op) {
  const bool is_flat = op.Bool("flatten");
  const int64_t rank = op.Rank("X");
  const int64_t exclusive = op.Bool("exclusive") ? 1 : 0;
  const int64_t reverse = op.Bool("reverse") ? 1 : 0;
  int64_t axis = op.Axis("axis", rank);
  std::string x = op.In("X");
  if (is_flat) {
    x = Reshaped(op, x, {-1});
    axis = 0;
  } else if (rank == 0) {
    Refuse("X is a scalar");
  }
  const std::string place = op.Number(DType::kInt64, static_cast<double>(axis));
  op.Set("Out", op.Node("CumSum", {x, place}, {{"exclusive", exclusive}, {"reverse", reverse}}));
}

// The numbers that a runtime draws are others than Skiff's.
void Multinomial(OpExport& op) {
  const int64_t count = op.Int("num_samples");
  if (!op.Bool("replacement") && count > 1) Refuse("replacement = false");
  const bool is_row = op.Rank("X") == 1;
  // ONNX has logarithms of the weights.
  const std::string logs = op.Node("Log", {op.In("X")});
  const std::string drawn = op.Node("Multinomial", {is_row ? Unsqueezed(op, logs, {0}) : logs},
                                    {{"sample_size", count}, {"dtype", OnnxDType(DType::kInt64)}});
  op.Set("Out", is_row ? Squeezed(op, drawn, {0}) : drawn);
}

// Y[…, j] = whether j is below the length.
void SequenceMask(OpExport& op) {
  op.Ignore("out_dtype");
  const int64_t maxlen = op.Int("maxlen");
  if (op.IsFloatIn("X")) Refuse("lengths that may be no integers");
  const int64_t rank = op.Rank("X");
  const std::string lengths = op.Cast(op.In("X"), DType::kInt64);
  std::string count;
  if (op.Has("MaxLenTensor")) {
    count = Reshaped(op, op.Cast(op.In("MaxLenTensor"), DType::kInt64), {});
  } else if (maxlen < 0) {
    count = Reduced(op, "ReduceMax", lengths, {}, false);
  } else {
    count = op.Number(DType::kInt64, static_cast<double>(maxlen));
  }
  const std::string is_inside =
      op.Node("Less", {Counted(op, count), Unsqueezed(op, lengths, {rank})});
  op.Set("Y", op.Cast(is_inside, op.OutDType("Y")));
}

}  // namespace

void AddIndexExporters(ExporterTable* table) {
  table->AddMover("gather", Gather);
  table->AddMover("index_select", IndexSelect);
  table->AddMover("gather_nd", GatherNd);
  table->AddMover("take_along_axis", TakeAlongAxis);
  table->Add("put_along_axis", PutAlongAxis);
  table->Add("scatter", Scatter);
  table->Add("scatter_nd_add", ScatterNdAdd);
  table->Add("lookup_table", LookupTable);
  table->Add("lookup_table_v2", LookupTableV2);
  table->AddMover("one_hot", OneHot);
  table->AddMover("one_hot_v2", OneHotV2);
  table->AddMover("masked_select", MaskedSelect);
  table->AddMover("where_index", WhereIndex);
  table->Add("arg_max", ArgMax);
  table->Add("arg_min", ArgMin);
  table->Add("argsort", Argsort);
  table->Add("top_k", TopK);
  table->Add("top_k_v2", TopK);
  table->Add("unique", Unique);
  table->Add("cumsum", Cumsum);
  table->AddMover("sequence_mask", SequenceMask);
  table->Add("multinomial", Multinomial);
}

}  // namespace skiff::onnx_export
