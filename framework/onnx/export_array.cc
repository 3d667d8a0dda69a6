// Arrays of tensors, which are sequences in ONNX, and the ops of DynamicRnn between these and
// ragged tensors.
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/control_values.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/ragged_rows.h"

namespace skiff::onnx_export {
namespace {

// Returns the index I, of rank 0.
std::string IndexOf(OpExport& op) { return Reshaped(op, op.In("I"), {}); }

// Returns the array with elements added, without rows, until it has `count`.
std::string Lengthened(OpExport& op, const std::string& array, const std::string& count,
                       DType dtype) {
  const std::string missing = op.Node("Sub", {count, op.Node("SequenceLength", {array})});
  const std::string trips = op.Node("Max", {missing, op.IntNumber(0)});
  const std::string element = op.Constant(Tensor(Shape{0}, dtype));
  GraphWriter& graph = op.graph();
  const GraphType flag = {.dtype = DType::kBool, .dims = std::vector<GraphDim>{}};
  const GraphType number = {.dtype = DType::kInt64, .dims = std::vector<GraphDim>{}};
  const GraphType sequence = {.dtype = dtype, .dims = {}, .is_sequence = true};
  graph.BeginSubgraph();
  const std::string goes_on = graph.FreshName("condition");
  const std::string before = graph.FreshName("array");
  graph.AddInput(graph.FreshName("iteration"), number);
  graph.AddInput(goes_on, flag);
  graph.AddInput(before, sequence);
  const std::string after = op.Node("SequenceInsert", {before, element});
  graph.AddOutput(goes_on, flag);
  graph.AddOutput(after, sequence);
  return op.Node("Loop", {trips, "", array}, {{"body", graph.EndSubgraph()}});
}

void WriteToArray(OpExport& op) {
  const DType dtype = op.DTypeOf("X");
  const std::string x = op.In("X");
  const std::string index = IndexOf(op);
  const std::string array = ArrayValue(op, op.op().Output("Out")[0], dtype);
  const std::string count = op.Node("Add", {index, op.IntNumber(1)});
  const std::string room = Lengthened(op, array, count, dtype);
  const std::string others = op.Node("SequenceErase", {room, index});
  op.Set("Out", op.Node("SequenceInsert", {others, x, index}));
  // Each element has offsets of its own, which nothing keeps.
  op.SetLoD("Out", {});
}

std::string ArrayIn(OpExport& op) {
  op.Ignore("X");
  return ArrayValue(op, op.op().Input("X")[0], op.DTypeOf("X"));
}

void ReadFromArray(OpExport& op) {
  op.Set("Out", op.Node("SequenceAt", {ArrayIn(op), IndexOf(op)}));
}

void LodArrayLength(OpExport& op) {
  op.Set("Out", Reshaped(op, op.Node("SequenceLength", {ArrayIn(op)}), {1}));
}

void TensorArrayToTensor(OpExport& op) {
  const int64_t stacks = op.Bool("use_stack") ? 1 : 0;
  op.Set("Out", op.Node("ConcatFromSequence", {ArrayIn(op)},
                        {{"axis", op.Int("axis")}, {"new_axis", stacks}}));
}

// A rank table has a row for each sequence, the longest one first: its number, its length and its
// first row. Its offsets are those of the tensor that it ranks.
void LodRankTable(OpExport& op) {
  op.Ignore("level");
  const std::string offsets = op.Offsets("X");
  const std::string lengths = LengthsOf(op, offsets);
  const std::vector<std::string> ranked =
      op.Nodes("TopK", {lengths, op.Node("Shape", {lengths})}, {{"axis", int64_t{0}}}, 2);
  const std::string first = RowsAt(op, FirstRowsOf(op, offsets), ranked[1]);
  std::vector<std::string> columns;
  for (const std::string& column : {ranked[1], ranked[0], first}) {
    columns.push_back(Unsqueezed(op, column, {1}));
  }
  op.Set("Out", Joined(op, columns, 1));
  op.SetLoD("Out", op.LoD("X"));
}

enum Column : int64_t { kNumber, kLength, kFirstRow };

std::string ColumnOf(OpExport& op, Column column) {
  const std::string table = op.In("RankTable");
  return op.Shared(StrCat("column ", static_cast<int64_t>(column), " of ", table), [&] {
    return std::vector{op.Node("Gather", {table, op.IntNumber(column)}, {{"axis", int64_t{1}}})};
  })[0];
}

void MaxSequenceLen(OpExport& op) {
  op.Set("Out", Reshaped(op, LargestOf(op, ColumnOf(op, kLength)), {1}));
}

// The rows of the first step of all sequences in ranked order, then those of the second one, …
struct StepRows {
  std::string rows;    // [rows]
  std::string counts;  // [steps]: the rows of each step
};

StepRows StepRowsOf(OpExport& op) {
  const std::string lengths = ColumnOf(op, kLength);
  const std::string first = ColumnOf(op, kFirstRow);
  const std::vector<std::string> made = op.Shared("steps of " + op.In("RankTable"), [&] {
    const std::string steps = Counted(op, LargestOf(op, lengths));
    const std::string step = Unsqueezed(op, steps, {1});
    const std::string is_row = op.Node("Less", {step, Unsqueezed(op, lengths, {0})});
    const std::string row = op.Node("Add", {step, Unsqueezed(op, first, {0})});
    const std::string rows =
        op.Node("Compress", {Reshaped(op, row, {-1}), Reshaped(op, is_row, {-1})});
    const std::string ones = op.Cast(is_row, DType::kInt64);
    return std::vector{rows, Reduced(op, "ReduceSum", ones, {1}, false)};
  });
  return {.rows = made[0], .counts = made[1]};
}

void LodTensorToArray(OpExport& op) {
  const StepRows steps = StepRowsOf(op);
  const std::string rows = RowsAt(op, op.In("X"), steps.rows);
  op.Set("Out", op.Node("SplitToSequence", {rows, steps.counts}, {{"axis", int64_t{0}}}));
}

void ArrayToLodTensor(OpExport& op) {
  const std::string joined = op.Node("ConcatFromSequence", {ArrayIn(op)}, {{"axis", int64_t{0}}});
  const std::string rows = StepRowsOf(op).rows;
  const std::string count = Reshaped(op, op.Node("Shape", {rows}), {});
  // Where each row is in the array.
  const std::string places = op.Node("ScatterElements", {rows, rows, Counted(op, count)});
  op.Set("Out", RowsAt(op, joined, places));
  op.SetLoD("Out", op.LoD("RankTable"));
}

void ShrinkRnnMemory(OpExport& op) {
  const std::string is_longer = op.Node("Greater", {ColumnOf(op, kLength), op.In("I")});
  const std::string count = Reduced(op, "ReduceSum", op.Cast(is_longer, DType::kInt64), {0}, true);
  const std::string x = op.In("X");
  const auto first = [&](const std::string& value, const std::string& end) {
    return op.Node("Slice", {value, op.IntVector({0}), end, op.IntVector({0})});
  };
  if (!op.IsRagged("X")) return op.Set("Out", first(x, count));
  const std::string offsets = op.Offsets("X");
  op.Set("Out", first(x, RowsAt(op, offsets, count)));
  op.SetLoD("Out", {first(offsets, op.Node("Add", {count, op.IntNumber(1)}))});
}

void ReorderLodTensorByRank(OpExport& op) {
  const std::string order = ColumnOf(op, kNumber);
  if (!op.IsRagged("X")) return op.Set("Out", RowsAt(op, op.In("X"), order));
  const std::string offsets = op.Offsets("X");
  SetSequences(op, "X", "Out", RowsAt(op, FirstRowsOf(op, offsets), order),
               RowsAt(op, LengthsOf(op, offsets), order));
}

}  // namespace

void AddArrayExporters(ExporterTable* table) {
  table->AddMover("write_to_array", WriteToArray);
  table->AddMover("read_from_array", ReadFromArray);
  table->AddMover("lod_array_length", LodArrayLength);
  table->AddMover("tensor_array_to_tensor", TensorArrayToTensor);
  table->AddMover("lod_rank_table", LodRankTable);
  table->AddMover("max_sequence_len", MaxSequenceLen);
  table->AddMover("lod_tensor_to_array", LodTensorToArray);
  table->AddMover("array_to_lod_tensor", ArrayToLodTensor);
  table->AddMover("shrink_rnn_memory", ShrinkRnnMemory);
  table->AddMover("reorder_lod_tensor_by_rank", ReorderLodTensorByRank);
}

}  // namespace skiff::onnx_export
