// Attention and what belongs to it: positions, rotations, caches.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"

namespace skiff::onnx_export {
namespace {

// Returns [N, L, columns] as [N, heads, L, d]; -1 columns are unknown.
std::string Heads(OpExport& op, const std::string& value, int64_t heads, int64_t columns) {
  const int64_t width = columns < 0 ? -1 : columns / heads;
  return Transposed(op, Reshaped(op, value, {0, 0, heads, width}), {0, 2, 1, 3});
}

// Returns dim `axis` of a value as a number of rank 0.
std::string Extent(OpExport& op, const std::string& value, int64_t axis) {
  return Reshaped(op, DimsOf(op, value, axis, axis + 1), {});
}

// Returns the place of the first of the new tokens of each sequence, [N, 1]: what positions
// [N, L] say, within [0, room - L].
std::string FirstPlaces(OpExport& op, const std::string& positions, const std::string& room,
                        const std::string& length) {
  const std::string first =
      op.Node("Slice", {positions, op.IntVector({0}), op.IntVector({1}), op.IntVector({1})});
  const std::string zero = op.Number(DType::kInt64, 0);
  const std::string last = op.Node("Sub", {room, length});
  // Not Clip: the upper bound must win if both meet, and it is no constant.
  return op.Node("Min", {op.Node("Max", {first, zero}), last});
}

struct AttentionValues {
  std::string query;  // [N, heads, Lq, d]
  std::string key;    // [N, heads, Lk, d]
  std::string value;  // [N, heads, Lk, d]
  std::string query_count;
  std::string key_count;
};

AttentionValues ValuesOf(OpExport& op) {
  const int64_t heads = op.Int("num_heads");
  std::string query = op.In("Query");
  std::string key;
  std::string value;
  if (op.Has("Key")) {
    key = op.In("Key");
    value = op.In("Value");
  } else {
    const int64_t width = op.ShapeOf("Query")[2];
    if (width <= 0) Refuse("the width of the packed Query is unknown");
    const std::vector<std::string> parts =
        op.Nodes("Split", {query, op.IntVector({width / 3, width / 3, width / 3})},
                 {{"axis", int64_t{2}}}, 3);
    query = parts[0];
    key = parts[1];
    value = parts[2];
  }
  AttentionValues values;
  values.query_count = Extent(op, query, 1);
  values.key_count = Extent(op, key, 1);
  const int64_t columns = op.OutShape("Out")[2];
  values.query = Heads(op, query, heads, columns);
  values.key = Heads(op, key, heads, columns);
  values.value = Heads(op, value, heads, columns);
  return values;
}

// Returns whether query i sees key j, [Lq, Lk] or [N, 1, Lq, Lk].
std::string CausalMask(OpExport& op, const AttentionValues& values) {
  const std::string queries = Unsqueezed(op, Counted(op, values.query_count), {1});
  const std::string keys = Counted(op, values.key_count);
  std::string first = op.Node("Sub", {values.key_count, values.query_count});
  if (op.Has("Positions")) {
    first = FirstPlaces(op, op.In("Positions"), values.key_count, values.query_count);
    first = Unsqueezed(op, first, {1, 2});
  }
  return op.Node("LessOrEqual", {keys, op.Node("Add", {queries, first})});
}

// Returns which keys each sequence has, [N, 1, 1, Lk].
std::string LengthMask(OpExport& op, const AttentionValues& values) {
  const std::string lengths = Unsqueezed(op, op.In("KeyLengths"), {1, 2, 3});
  return op.Node("Less", {Counted(op, values.key_count), lengths});
}

void Attention(OpExport& op) {
  if (op.Float("dropout_prob") != 0 && !op.Bool("is_test")) Refuse("it draws random numbers");
  for (const char* name : {"seed", "fix_seed"}) op.Ignore(name);
  const DType dtype = op.DTypeOf("Query");
  const AttentionValues values = ValuesOf(op);
  std::string scores = op.Node("MatMul", {values.query, Transposed(op, values.key, {0, 1, 3, 2})});
  const std::string scale = op.Number(dtype, static_cast<double>(op.Float("scale")));
  scores = op.Node("Mul", {scores, scale});
  if (op.Has("Bias")) scores = op.Node("Add", {scores, op.In("Bias")});
  const std::string hidden = op.Number(dtype, -std::numeric_limits<double>::infinity());
  if (op.Bool("causal")) {
    scores = op.Node("Where", {CausalMask(op, values), scores, hidden});
  } else {
    op.Ignore("Positions");
  }
  std::string mask;
  if (op.Has("KeyLengths")) {
    mask = LengthMask(op, values);
    scores = op.Node("Where", {mask, scores, hidden});
  }
  std::string weights = op.Node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  // A sequence of length 0 has zeros, not the NaN of a softmax of nothing.
  if (!mask.empty()) weights = op.Node("Where", {mask, weights, op.Number(dtype, 0)});
  const std::string found = op.Node("MatMul", {weights, values.value});
  op.Set("Out", Reshaped(op, Transposed(op, found, {0, 2, 1, 3}), {0, 0, op.OutShape("Out")[2]}));
}

// Returns the angles of tokens and pairs, [N or 1, L, 1, d / 2], in float64, less whole turns:
// float32 would lose the digits of large positions.
std::string Angles(OpExport& op, const std::string& x, int64_t width) {
  std::string positions =
      op.Has("Positions") ? op.In("Positions") : Unsqueezed(op, Counted(op, Extent(op, x, 1)), {0});
  positions = Unsqueezed(op, op.Cast(positions, DType::kFloat64), {2, 3});
  const auto base = static_cast<double>(op.Float("base"));
  std::vector<double> speeds;
  for (int64_t i = 0; i < width / 2; ++i) {
    speeds.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width)));
  }
  const Tensor speed = Tensor::FromValues(Shape{width / 2}, speeds);
  const std::string angles = op.Node("Mul", {positions, op.Constant(speed)});
  const std::string turn = op.Number(DType::kFloat64, 2 * M_PI);
  return op.Node("Mod", {angles, turn}, {{"fmod", int64_t{1}}});
}

void RotaryEmbedding(OpExport& op) {
  const int64_t heads = op.Int("num_heads");
  const int64_t columns = op.ShapeOf("X")[2];
  if (columns <= 0) Refuse("the number of columns is unknown");
  const int64_t width = columns / heads;
  const bool interleaved = op.Bool("interleaved");
  const DType dtype = op.DTypeOf("X");
  const std::string x = op.In("X");
  const std::string angles = op.Cast(Angles(op, x, width), dtype);
  const std::string cosines = op.Node("Cos", {angles});
  const std::string sines = op.Node("Sin", {angles});
  // Pairs side by side: [N, L, heads, d / 2] each.
  std::string first;
  std::string second;
  if (interleaved) {
    const std::string pairs = Reshaped(op, x, {0, 0, heads, width / 2, 2});
    const std::vector<std::string> parts =
        op.Nodes("Split", {pairs, op.IntVector({1, 1})}, {{"axis", int64_t{4}}}, 2);
    first = Squeezed(op, parts[0], {4});
    second = Squeezed(op, parts[1], {4});
  } else {
    const std::string rows = Reshaped(op, x, {0, 0, heads, width});
    const std::vector<std::string> parts =
        op.Nodes("Split", {rows, op.IntVector({width / 2, width / 2})}, {{"axis", int64_t{3}}}, 2);
    first = parts[0];
    second = parts[1];
  }
  const auto product = [&](const std::string& a, const std::string& b) {
    return op.Node("Mul", {a, b});
  };
  const std::string turned_first =
      op.Node("Sub", {product(first, cosines), product(second, sines)});
  const std::string turned_second =
      op.Node("Add", {product(second, cosines), product(first, sines)});
  const std::string together =
      interleaved
          ? Joined(op, {Unsqueezed(op, turned_first, {4}), Unsqueezed(op, turned_second, {4})}, 4)
          : Joined(op, {turned_first, turned_second}, 3);
  op.Set("Out", Reshaped(op, together, {0, 0, columns}));
}

void TokenPositions(OpExport& op) {
  op.Ignore("limit");
  const std::string x = op.In("X");
  const std::string dims = DimsOf(op, x, 0, 2);
  std::string places = Counted(op, Extent(op, x, 1));
  if (op.Has("Start")) places = op.Node("Add", {Unsqueezed(op, op.In("Start"), {1}), places});
  op.Set("Out", op.Node("Expand", {places, dims}));
}

// Rows of X behind those of a cache [N, capacity, …].
void WriteToCache(OpExport& op) {
  const std::string cache = op.In("Cache");
  const std::string x = op.In("X");
  const std::string length = Extent(op, x, 1);
  const std::string first = FirstPlaces(op, op.In("Positions"), Extent(op, cache, 1), length);
  const std::string places = op.Node("Add", {first, Counted(op, length)});  // [N, L]
  const std::string sequences = op.Node(
      "Expand", {Unsqueezed(op, Counted(op, Extent(op, x, 0)), {1}), op.Node("Shape", {places})});
  const std::string indices =
      Joined(op, {Unsqueezed(op, sequences, {2}), Unsqueezed(op, places, {2})}, 2);
  op.Set("Out", op.Node("ScatterND", {cache, indices, x}));
}

}  // namespace

void AddAttentionExporters(ExporterTable* table) {
  table->Add("multihead_attention", Attention);
  table->Add("rotary_embedding", RotaryEmbedding);
  table->AddMover("token_positions", TokenPositions);
  table->AddMover("write_to_cache", WriteToCache);
}

}  // namespace skiff::onnx_export
