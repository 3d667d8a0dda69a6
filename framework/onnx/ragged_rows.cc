#include "framework/onnx/ragged_rows.h"

#include <limits>
#include <vector>

#include "framework/onnx/compositions.h"

namespace skiff::onnx_export {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

std::string Part(OpExport& op, const std::string& x, int64_t begin, int64_t end) {
  return op.Node("Slice", {x, op.IntVector({begin}), op.IntVector({end}), op.IntVector({0})});
}

// Returns the places of all rows, [2, rows]: sequences, then positions.
std::string AllPlaces(OpExport& op, const std::string& offsets) {
  const std::string is_row = PaddedRowsOf(op, offsets).is_row;
  return op.Shared("places of " + offsets,
                   [&] { return std::vector{op.Node("NonZero", {is_row})}; })[0];
}

}  // namespace

std::string LengthsOf(OpExport& op, const std::string& offsets) {
  const std::string ends = EndsOf(op, offsets);
  const std::string first = FirstRowsOf(op, offsets);
  return op.Shared("lengths of " + offsets, [&] {
    return std::vector{op.Node("Sub", {ends, first})};
  })[0];
}

std::string FirstRowsOf(OpExport& op, const std::string& offsets) {
  return op.Shared("first rows of " + offsets,
                   [&] { return std::vector{Part(op, offsets, 0, -1)}; })[0];
}

std::string EndsOf(OpExport& op, const std::string& offsets) {
  return op.Shared("ends of " + offsets,
                   [&] { return std::vector{Part(op, offsets, 1, kToTheEnd)}; })[0];
}

std::string OffsetsOf(OpExport& op, const std::string& lengths) {
  return op.Node("CumSum", {Joined(op, {op.IntVector({0}), lengths}), op.IntNumber(0)});
}

std::string LargestOf(OpExport& op, const std::string& lengths) {
  return Reduced(op, "ReduceMax", Joined(op, {op.IntVector({0}), lengths}), {}, false);
}

RowPlaces PlacesOf(OpExport& op, const std::string& offsets) {
  const std::string places = AllPlaces(op, offsets);
  const std::vector<std::string> made = op.Shared("place vectors of " + offsets, [&] {
    return std::vector{op.Node("Gather", {places, op.IntNumber(0)}),
                       op.Node("Gather", {places, op.IntNumber(1)})};
  });
  return {.sequence = made[0], .position = made[1]};
}

PaddedRows PaddedRowsOf(OpExport& op, const std::string& offsets) {
  const std::string lengths = LengthsOf(op, offsets);
  const std::vector<std::string> made = op.Shared("padded rows of " + offsets, [&] {
    const PaddedRows rows = PaddedRowsOf(op, offsets, LargestOf(op, lengths));
    return std::vector{rows.is_row, rows.row};
  });
  return {.is_row = made[0], .row = made[1]};
}

PaddedRows PaddedRowsOf(OpExport& op, const std::string& offsets, const std::string& steps) {
  const std::string lengths = Unsqueezed(op, LengthsOf(op, offsets), {1});
  const std::string first = Unsqueezed(op, FirstRowsOf(op, offsets), {1});
  const std::string step = Unsqueezed(op, Counted(op, steps), {0});
  const std::string is_row = op.Node("Less", {step, lengths});
  const std::string row =
      op.Node("Where", {is_row, op.Node("Add", {first, step}), op.IntNumber(0)});
  return {.is_row = is_row, .row = row};
}

std::string RowsAt(OpExport& op, const std::string& x, const std::string& rows) {
  return op.Node("Gather", {x, rows});
}

std::string Padded(OpExport& op, const std::string& x, const std::string& offsets) {
  return RowsAt(op, x, PaddedRowsOf(op, offsets).row);
}

std::string PaddedSteps(OpExport& op, const std::string& x, const std::string& offsets) {
  return RowsAt(op, x, Transposed(op, PaddedRowsOf(op, offsets).row, {1, 0}));
}

std::string Unpadded(OpExport& op, const std::string& x, const std::string& offsets) {
  return op.Node("GatherND", {x, Transposed(op, AllPlaces(op, offsets), {1, 0})});
}

std::string UnpaddedSteps(OpExport& op, const std::string& x, const std::string& offsets) {
  const std::string swapped = op.Node("Gather", {AllPlaces(op, offsets), op.IntVector({1, 0})});
  return op.Node("GatherND", {x, Transposed(op, swapped, {1, 0})});
}

void SetSequences(OpExport& op, std::string_view from, std::string_view slot,
                  const std::string& first, const std::string& lengths) {
  const std::string offsets = OffsetsOf(op, lengths);
  const RowPlaces places = PlacesOf(op, offsets);
  const std::string begin = RowsAt(op, first, places.sequence);
  op.Set(slot, RowsAt(op, op.In(from), op.Node("Add", {begin, places.position})));
  op.SetLoD(slot, {offsets});
}

std::string WithDimsBehind(OpExport& op, const std::string& x, int64_t rank, int64_t wanted) {
  std::vector<int64_t> axes;
  for (int64_t axis = rank; axis < wanted; ++axis) axes.push_back(axis);
  return Unsqueezed(op, x, axes);
}

std::string MaskedScores(OpExport& op, const std::string& mask, const std::string& scores,
                         DType dtype) {
  const auto least = static_cast<double>(std::numeric_limits<float>::lowest());
  return op.Node("Where", {mask, scores, op.Number(dtype, least)});
}

NeighbourRows NeighboursOf(OpExport& op, const std::string& offsets, int64_t distance) {
  const RowPlaces places = PlacesOf(op, offsets);
  const std::string length = RowsAt(op, LengthsOf(op, offsets), places.sequence);
  const std::string first = RowsAt(op, FirstRowsOf(op, offsets), places.sequence);
  const std::string position = op.Node("Add", {places.position, op.IntNumber(distance)});
  const std::string is_inside =
      op.Node("And", {op.Node("GreaterOrEqual", {position, op.IntNumber(0)}),
                      op.Node("Less", {position, length})});
  const std::string row =
      op.Node("Where", {is_inside, op.Node("Add", {first, position}), op.IntNumber(0)});
  return {.is_inside = is_inside, .row = row, .position = position};
}

}  // namespace skiff::onnx_export
