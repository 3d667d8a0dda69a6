// Ops on ragged sequences: compositions of their rows and offsets.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/ragged_rows.h"

namespace skiff::onnx_export {
namespace {

// Returns x where the mask is true, else a number. The mask has the first `mask_rank` dims of x.
std::string Masked(OpExport& op, const std::string& mask, int64_t mask_rank, const std::string& x,
                   int64_t rank, const std::string& other) {
  return op.Node("Where", {WithDimsBehind(op, mask, mask_rank, rank), x, other});
}

// Returns a row of each sequence with rows, and any row for the others.
std::string EndRows(OpExport& op, const std::string& offsets, const std::string& has_rows,
                    bool is_first) {
  const std::string row =
      is_first ? FirstRowsOf(op, offsets) : op.Node("Sub", {EndsOf(op, offsets), op.IntNumber(1)});
  return op.Node("Where", {has_rows, row, op.IntNumber(0)});
}

// Returns the sum or the largest of each sequence's rows.
std::string ReducedRows(OpExport& op, const std::string& offsets, bool is_max) {
  const DType dtype = op.DTypeOf("X");
  const int64_t rank = op.Rank("X");
  const double neutral = is_max ? -std::numeric_limits<double>::infinity() : 0;
  const std::string rows =
      Masked(op, PaddedRowsOf(op, offsets).is_row, 2, Padded(op, op.In("X"), offsets), rank + 1,
             op.Number(dtype, neutral));
  return Reduced(op, is_max ? "ReduceMax" : "ReduceSum", rows, {1}, false);
}

std::string PooledRows(OpExport& op, const std::string& offsets, const std::string& has_rows) {
  const std::string type = op.Text("pooltype");
  if (type == "FIRST" || type == "LAST") {
    return RowsAt(op, op.In("X"), EndRows(op, offsets, has_rows, type == "FIRST"));
  }
  const std::string reduced = ReducedRows(op, offsets, type == "MAX");
  if (type == "SUM" || type == "MAX") return reduced;
  const std::string count = op.Cast(LengthsOf(op, offsets), op.DTypeOf("X"));
  const std::string divisor = type == "SQRT" ? op.Node("Sqrt", {count}) : count;
  return op.Node("Div", {reduced, WithDimsBehind(op, divisor, 1, op.Rank("X"))});
}

void SequencePool(OpExport& op) {
  LoDValues lod = op.LoD("X");
  const std::string offsets = lod.back();
  const std::string has_rows = op.Node("Greater", {LengthsOf(op, offsets), op.IntNumber(0)});
  const std::string pad = op.Number(op.DTypeOf("X"), static_cast<double>(op.Float("pad_value")));
  const std::string pooled = PooledRows(op, offsets, has_rows);
  op.Set("Out", Masked(op, has_rows, 1, pooled, op.Rank("X"), pad));
  lod.pop_back();
  op.SetLoD("Out", lod);
}

void SequenceSoftmax(OpExport& op) {
  const std::string offsets = op.Offsets("X");
  const std::string x = Padded(op, Reshaped(op, op.In("X"), {-1}), offsets);
  const std::string scores = MaskedScores(op, PaddedRowsOf(op, offsets).is_row, x, op.DTypeOf("X"));
  const std::string shares = op.Node("Softmax", {scores}, {{"axis", int64_t{1}}});
  const std::string rows = Unpadded(op, shares, offsets);
  op.Set("Out", WithDimsBehind(op, rows, 1, op.Rank("X")));
}

void SequencePad(OpExport& op) {
  const std::string offsets = op.Offsets("X");
  const int64_t given = op.Int("padded_length");
  const PaddedRows rows =
      given < 0 ? PaddedRowsOf(op, offsets) : PaddedRowsOf(op, offsets, op.IntNumber(given));
  const std::string padded = RowsAt(op, op.In("X"), rows.row);
  op.Set("Out", Masked(op, rows.is_row, 2, padded, op.Rank("X") + 1, op.In("PadValue")));
  op.Set("Length", LengthsOf(op, offsets));
}

void SequenceUnpad(OpExport& op) {
  const std::string offsets = OffsetsOf(op, op.In("Length"));
  const std::string rows = Unpadded(op, op.In("X"), offsets);
  op.Set("Out", op.Rank("X") == 2 ? Unsqueezed(op, rows, {1}) : rows);
  op.SetLoD("Out", {offsets});
}

void SequenceReverse(OpExport& op) {
  const std::string offsets = op.Offsets("X");
  const RowPlaces places = PlacesOf(op, offsets);
  const std::string ends = RowsAt(op, EndsOf(op, offsets), places.sequence);
  const std::string after = op.Node("Add", {places.position, op.IntNumber(1)});
  op.Set("Y", RowsAt(op, op.In("X"), op.Node("Sub", {ends, after})));
}

void SequenceExpandAs(OpExport& op) {
  const RowPlaces places = PlacesOf(op, op.Offsets("Y"));
  op.Set("Out", RowsAt(op, op.In("X"), places.sequence));
  op.SetLoD("Out", op.LoD("Y"));
}

void SequenceExpand(OpExport& op) {
  const LoDValues levels = op.LoD("Y");
  const int64_t level = op.Int("ref_level");
  const std::string& counts = level < 0 ? levels.back() : levels.at(static_cast<size_t>(level));
  // The item of X that each item of Y repeats.
  const std::string item = PlacesOf(op, counts).sequence;
  if (!op.IsRagged("X")) return op.Set("Out", RowsAt(op, op.In("X"), item));
  const std::string offsets = op.Offsets("X");
  SetSequences(op, "X", "Out", RowsAt(op, FirstRowsOf(op, offsets), item),
               RowsAt(op, LengthsOf(op, offsets), item));
}

void SequenceSlice(OpExport& op) {
  const std::string begin = Reshaped(op, op.In("Offset"), {-1});
  const std::string first = op.Node("Add", {FirstRowsOf(op, op.Offsets("X")), begin});
  SetSequences(op, "X", "Out", first, Reshaped(op, op.In("Length"), {-1}));
}

void SequenceConcat(OpExport& op) {
  std::string base = op.IntVector({0});
  std::vector<std::string> masks;
  std::vector<std::string> numbers;
  std::string offsets;
  for (size_t i = 0; i < op.InputCount("X"); ++i) {
    const std::string own = op.Offsets("X", i);
    const PaddedRows rows = PaddedRowsOf(op, own);
    masks.push_back(rows.is_row);
    numbers.push_back(op.Node("Add", {rows.row, base}));
    base = op.Node("Add", {base, DimsOf(op, op.In("X", i), 0, 1)});
    offsets = i == 0 ? own : op.Node("Add", {offsets, own});
  }
  const std::string is_row = Reshaped(op, Joined(op, masks, 1), {-1});
  const std::string rows =
      op.Node("Compress", {Reshaped(op, Joined(op, numbers, 1), {-1}), is_row});
  op.Set("Out", RowsAt(op, Joined(op, op.Ins("X")), rows));
  op.SetLoD("Out", {offsets});
}

void SequenceReshape(OpExport& op) {
  const int64_t from = op.ShapeOf("X")[1];
  const int64_t to = op.Int("new_dim");
  if (from < 0) Refuse("the width of X is unknown");
  const std::string offsets = op.Offsets("X");
  const std::string elements = op.Node("Mul", {offsets, op.IntNumber(from)});
  op.Set("Out", Reshaped(op, op.In("X"), {-1, to}));
  op.SetLoD("Out", {op.Node("Div", {elements, op.IntNumber(to)})});
}

void SequenceEnumerate(OpExport& op) {
  const std::string offsets = op.Offsets("X");
  const std::string pad = op.Number(op.DTypeOf("X"), static_cast<double>(op.Int("pad_value")));
  const std::string x = op.In("X");
  const int64_t window = op.Int("win_size");
  std::vector<std::string> columns;
  for (int64_t i = 0; i < window; ++i) {
    const NeighbourRows next = NeighboursOf(op, offsets, i);
    columns.push_back(Masked(op, next.is_inside, 1, RowsAt(op, x, next.row), 2, pad));
  }
  op.Set("Out", Joined(op, columns, 1));
}

void SequenceErase(OpExport& op) {
  LoDValues lod = op.LoD("X");
  const std::string x = op.In("X");
  const std::string tokens = op.Cast(op.IntVector(op.Ints("tokens")), op.DTypeOf("X"));
  const std::string is_one = op.Cast(op.Node("Equal", {x, tokens}), DType::kInt64);
  const std::string count = Reduced(op, "ReduceSum", is_one, {1}, false);
  const std::string stays = op.Node("Equal", {count, op.IntNumber(0)});
  const PaddedRows rows = PaddedRowsOf(op, lod.back());
  const std::string in_sequence = op.Node("And", {RowsAt(op, stays, rows.row), rows.is_row});
  op.Set("Out", op.Node("Compress", {x, stays}, {{"axis", int64_t{0}}}));
  lod.back() =
      OffsetsOf(op, Reduced(op, "ReduceSum", op.Cast(in_sequence, DType::kInt64), {1}, false));
  op.SetLoD("Out", lod);
}

void SequenceScatter(OpExport& op) {
  op.NeedOpset(16, "a reduction of ScatterND");
  const RowPlaces places = PlacesOf(op, op.Offsets("Ids"));
  const std::string ids = op.Cast(Reshaped(op, op.In("Ids"), {-1, 1}), DType::kInt64);
  const std::string elements = Joined(op, {Unsqueezed(op, places.sequence, {1}), ids}, 1);
  const std::string x = op.In("X");
  const std::string rows = op.Node("Flatten", {x}, {{"axis", int64_t{1}}});
  const std::string updates = Reshaped(op, op.In("Updates"), {-1});
  const std::string sums =
      op.Node("ScatterND", {rows, elements, updates}, {{"reduction", std::string("add")}});
  op.Set("Out", ReshapedTo(op, sums, op.ShapeOf("X"), x));
}

// Returns, for each row, the row of PaddingData that a neighbour outside of its sequence has: first
// come the `before` rows before a sequence, then those after it.
std::string TrainedPadding(OpExport& op, const std::string& offsets, const NeighbourRows& rows,
                           int64_t before) {
  const std::string length = RowsAt(op, LengthsOf(op, offsets), PlacesOf(op, offsets).sequence);
  const std::string is_before = op.Node("Less", {rows.position, op.IntNumber(0)});
  const std::string behind = op.Node("Sub", {rows.position, length});
  const std::string distance = op.Node("Where", {is_before, rows.position, behind});
  const std::string place = op.Node("Add", {distance, op.IntNumber(before)});
  const std::string known = op.Node("Where", {rows.is_inside, op.IntNumber(0), place});
  return RowsAt(op, op.In("PaddingData"), known);
}

void SequenceConv(OpExport& op) {
  const std::string offsets = op.Offsets("X");
  const int64_t start = op.Int("contextStart");
  const int64_t length = op.Int("contextLength");
  const bool is_trained = op.Bool("paddingTrainable");
  const std::string x = op.In("X");
  if (!is_trained) op.Ignore("PaddingData");
  std::vector<std::string> context;
  for (int64_t distance = start; distance < start + length; ++distance) {
    if (distance == 0) {
      context.push_back(x);
      continue;
    }
    const NeighbourRows rows = NeighboursOf(op, offsets, distance);
    const std::string other = is_trained
                                  ? TrainedPadding(op, offsets, rows, std::max(-start, int64_t{0}))
                                  : op.Number(op.DTypeOf("X"), 0);
    context.push_back(Masked(op, rows.is_inside, 1, RowsAt(op, x, rows.row), 2, other));
  }
  op.Set("Out", op.Node("MatMul", {Joined(op, context, 1), op.In("Filter")}));
}

// Returns the rows that follow each row at a distance, 0 where the sequence has none: of a batch of
// sequences [batch, rows, width] that has `length` - 1 rows of 0 behind each, or of ragged X.
std::string RowsBehind(OpExport& op, const std::string& x, int64_t distance, int64_t length) {
  if (op.IsRagged("X")) {
    const NeighbourRows rows = NeighboursOf(op, op.Offsets("X"), distance);
    return Masked(op, rows.is_inside, 1, RowsAt(op, x, rows.row), 2, op.Number(op.DTypeOf("X"), 0));
  }
  const int64_t cut = length - 1 - distance;
  const int64_t end = cut == 0 ? std::numeric_limits<int64_t>::max() : -cut;
  return op.Node("Slice", {x, op.IntVector({distance}), op.IntVector({end}), op.IntVector({1})});
}

void RowConv(OpExport& op) {
  const int64_t length = op.ShapeOf("Filter")[0];
  if (length < 0) Refuse("the rows of Filter are unknown");
  std::string x = op.In("X");
  if (!op.IsRagged("X")) {
    x = op.Node("Pad",
                {x, op.IntVector({0, 0, 0, 0, length - 1, 0}), op.Number(op.DTypeOf("X"), 0)});
  }
  std::string sum;
  for (int64_t i = 0; i < length; ++i) {
    const std::string factors = RowsAt(op, op.In("Filter"), op.IntNumber(i));
    const std::string term = op.Node("Mul", {RowsBehind(op, x, i, length), factors});
    sum = sum.empty() ? term : op.Node("Add", {sum, term});
  }
  op.Set("Out", sum);
}

// Returns every stride-th pixel from (y, x) on, `height` · `width` of them, as
// [images, channels, 1, height, width].
std::string PixelsAt(OpExport& op, const std::string& image, const std::vector<int64_t>& first,
                     const std::vector<int64_t>& counts, const std::vector<int64_t>& strides) {
  std::vector<int64_t> ends;
  for (size_t i = 0; i < 2; ++i) ends.push_back(first[i] + (counts[i] - 1) * strides[i] + 1);
  const std::string pixels = op.Node("Slice", {image, op.IntVector(first), op.IntVector(ends),
                                               op.IntVector({2, 3}), op.IntVector(strides)});
  return Unsqueezed(op, pixels, {2});
}

void Im2Sequence(OpExport& op) {
  const Shape& shape = op.ShapeOf("X");
  if (shape[1] < 0 || shape[2] < 0 || shape[3] < 0) Refuse("the size of the images is unknown");
  const std::vector<int64_t> kernels = op.Ints("kernels");
  const std::vector<int64_t> strides = op.Ints("strides");
  const std::vector<int64_t> paddings = op.Ints("paddings");
  std::vector<int64_t> counts;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t size = shape[static_cast<int>(i) + 2] + paddings[i] + paddings[i + 2];
    counts.push_back((size - kernels[i]) / strides[i] + 1);
  }
  const std::string image = op.Node(
      "Pad",
      {op.In("X"), op.IntVector({0, 0, paddings[0], paddings[1], 0, 0, paddings[2], paddings[3]}),
       op.Number(op.DTypeOf("X"), 0)});
  std::vector<std::string> pixels;
  for (int64_t y = 0; y < kernels[0]; ++y) {
    for (int64_t x = 0; x < kernels[1]; ++x) {
      pixels.push_back(PixelsAt(op, image, {y, x}, counts, strides));
    }
  }
  // [images, channels, window, height, width], whose rows are the places of windows.
  const std::string windows = Transposed(op, Joined(op, pixels, 2), {0, 3, 4, 1, 2});
  op.Set("Out", Reshaped(op, windows, {-1, shape[1] * kernels[0] * kernels[1]}));
  const std::string images = Reshaped(op, DimsOf(op, op.In("X"), 0, 1), {});
  const std::string places = Counted(op, op.Node("Add", {images, op.IntNumber(1)}));
  op.SetLoD("Out", {op.Node("Mul", {places, op.IntNumber(counts[0] * counts[1])})});
}

void LodReset(OpExport& op) {
  const bool appends = op.Bool("append");
  const std::vector<int64_t> target = op.Ints("target_lod");
  op.Set("Out", op.Node("Identity", {op.In("X")}));
  if (op.IsRagged("Y")) return op.SetLoD("Out", op.LoD("Y"));
  LoDValues lod;
  if (appends && op.IsRagged("X")) lod = op.LoD("X");
  const bool is_data = op.Has("Y");
  lod.push_back(is_data ? Reshaped(op, op.Cast(op.In("Y"), DType::kInt64), {-1})
                        : op.IntVector(target));
  op.SetLoD("Out", lod);
}

}  // namespace

void AddSequenceExporters(ExporterTable* table) {
  table->Add("sequence_pool", SequencePool);
  table->Add("sequence_softmax", SequenceSoftmax);
  table->AddMover("sequence_pad", SequencePad);
  table->AddMover("sequence_unpad", SequenceUnpad);
  table->AddMover("sequence_reverse", SequenceReverse);
  table->AddMover("sequence_expand", SequenceExpand);
  table->AddMover("sequence_expand_as", SequenceExpandAs);
  table->AddMover("sequence_slice", SequenceSlice);
  table->AddMover("sequence_concat", SequenceConcat);
  table->AddMover("sequence_reshape", SequenceReshape);
  table->AddMover("sequence_enumerate", SequenceEnumerate);
  table->AddMover("sequence_erase", SequenceErase);
  table->Add("sequence_scatter", SequenceScatter);
  table->Add("sequence_conv", SequenceConv);
  table->Add("row_conv", RowConv);
  table->Add("im2sequence", Im2Sequence);
  table->AddMover("lod_reset", LodReset);
}

}  // namespace skiff::onnx_export
