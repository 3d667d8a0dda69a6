// Sequences of tensors whose length is known here: they are lists of values, of which the program
// has nothing.
#include <algorithm>
#include <utility>
#include <vector>

#include "framework/builder/tensor_layers.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;
using Values = std::vector<OnnxValuePtr>;

// Each SequenceInsert makes another list.
constexpr size_t kMostItems = 1000;

// Returns the one number of input i, below 0 counted from the back of `count` items, and enforces
// that it is at most `last`.
int64_t PlaceOf(const OnnxNode& node, size_t i, size_t count, size_t last) {
  const Ints numbers = node.Ints(i);
  if (numbers.size() != 1) node.Invalid("input ", i, " isn't one number");
  const int64_t place = numbers[0] < 0 ? numbers[0] + static_cast<int64_t>(count) : numbers[0];
  if (place < 0 || place > static_cast<int64_t>(last)) {
    node.Invalid("the place ", numbers[0], " isn't one of a sequence of ", count);
  }
  return place;
}

// Makes output 0 a sequence of tensors.
void OutTensors(const OnnxNode& node, Values items) {
  if (items.size() > kMostItems) node.Unsupported("makes a sequence of more than ", kMostItems);
  for (const OnnxValuePtr& item : items) {
    if (item->items) node.Invalid("makes a sequence of sequences");
  }
  node.OutItems(0, std::move(items));
}

void SequenceConstruct(const OnnxNode& node) {
  Values items;
  for (size_t i = 0; i < node.input_count(); ++i) items.push_back(node.Value(i));
  OutTensors(node, std::move(items));
}

void SequenceEmpty(const OnnxNode& node) { OutTensors(node, {}); }

void SequenceInsert(const OnnxNode& node) {
  node.CheckInputs(2, 3);
  Values items = node.Items(0);
  const size_t count = items.size();
  const int64_t place = node.Has(2) ? PlaceOf(node, 2, count, count) : static_cast<int64_t>(count);
  items.insert(items.begin() + place, node.Value(1));
  OutTensors(node, std::move(items));
}

// Returns the place of an item.
int64_t ItemPlace(const OnnxNode& node, size_t i) {
  const size_t count = node.Items(0).size();
  if (count == 0) node.Invalid("takes an item of an empty sequence");
  return PlaceOf(node, i, count, count - 1);
}

void SequenceErase(const OnnxNode& node) {
  node.CheckInputs(1, 2);
  Values items = node.Items(0);
  if (items.empty()) node.Invalid("takes an item of an empty sequence");
  items.erase(node.Has(1) ? items.begin() + ItemPlace(node, 1) : items.end() - 1);
  OutTensors(node, std::move(items));
}

void SequenceAt(const OnnxNode& node) {
  node.CheckInputs(2, 2);
  node.OutValue(0, *node.Items(0)[static_cast<size_t>(ItemPlace(node, 1))]);
}

void SequenceLength(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  const auto count = static_cast<int64_t>(node.Items(0).size());
  node.OutKnown(0, Tensor::FromValues<int64_t>({}, {count}));
}

void ConcatFromSequence(const OnnxNode& node) {
  node.CheckInputs(1, 1);
  std::vector<Variable> parts;
  for (const OnnxValuePtr& item : node.Items(0)) parts.push_back(node.VariableOf(item));
  if (parts.empty()) node.Invalid("joins no tensors");
  const bool stacks = node.Int("new_axis", 0) != 0;
  const int64_t axis = node.Axis(node.Int("axis", 0), parts[0].dims().size() + (stacks ? 1 : 0));
  node.Out(0, stacks ? layers::Stack(parts, axis) : layers::Concat(parts, axis));
}

// Returns the extents of the parts of an axis.
Ints SectionsOf(const OnnxNode& node, int64_t extent) {
  const Ints given = node.Has(1) ? node.Ints(1) : Ints{1};
  if (node.Has(1) && !node.Known(1)->shape().dims().empty()) return given;
  if (given.size() != 1 || given[0] < 1) node.Invalid("splits into parts of ", given[0]);
  Ints sections;
  for (int64_t rest = extent; rest > 0; rest -= sections.back()) {
    if (sections.size() == kMostItems) node.Unsupported("makes more than ", kMostItems, " parts");
    sections.push_back(std::min(given[0], rest));
  }
  return sections;
}

void SplitToSequence(const OnnxNode& node) {
  node.CheckInputs(1, 2);
  const Variable x = node.In(0);
  const int64_t axis = node.Axis(node.Int("axis", 0), x.dims().size());
  const int64_t extent = x.dims()[static_cast<size_t>(axis)];
  if (extent < 0) node.Unsupported("splits an axis whose extent is known only in a run");
  const Ints sections = SectionsOf(node, extent);
  if (sections.empty()) return OutTensors(node, {});
  const bool drops_axis = !node.Has(1) && node.Int("keepdims", 1) == 0;
  Values items;
  for (const Variable& part : layers::SplitSections(x, sections, axis)) {
    items.push_back(ValueOf(drops_axis ? layers::Squeeze(part, {axis}) : part));
  }
  OutTensors(node, std::move(items));
}

}  // namespace

std::vector<OnnxConverterEntry> SequenceConverters() {
  return {
      {"ConcatFromSequence", ConcatFromSequence}, {"SequenceAt", SequenceAt},
      {"SequenceConstruct", SequenceConstruct},   {"SequenceEmpty", SequenceEmpty},
      {"SequenceErase", SequenceErase},           {"SequenceInsert", SequenceInsert},
      {"SequenceLength", SequenceLength},         {"SplitToSequence", SplitToSequence},
  };
}

}  // namespace skiff
