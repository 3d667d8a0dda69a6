#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "framework/tensor/philox.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct AttentionSpec {
  std::string name;
  int64_t batch = 2;
  int64_t heads = 2;
  int64_t queries = 5;
  int64_t keys = 5;
  int64_t width = 4;  // of a head
  bool packed = false;
  Shape bias = {};  // rank 0: none
  float scale = 0.5f;
  bool causal = false;
  float dropout = 0;
  bool is_test = false;
  int32_t seed = 7;                        // of dropout
  std::vector<int64_t> key_lengths = {};   // empty: none
  std::vector<int64_t> first_places = {};  // of the queries of each sequence; empty: no Positions
  bool benchmark_only = false;
};

// The places of Query, Key and Value, or of the parts of a packed Query.
class Columns {
 public:
  Columns(const AttentionSpec& spec, const Arrays& inputs, int part)
      : values_(inputs.at(spec.packed || part == 0 ? "Query"
                          : part == 1              ? "Key"
                                                   : "Value")[0]
                    .values),
        length_(part == 0 ? spec.queries : spec.keys),
        stride_(spec.heads * spec.width * (spec.packed ? 3 : 1)),
        first_(spec.packed ? part * spec.heads * spec.width : 0),
        width_(spec.width) {}

  double At(int64_t n, int64_t h, int64_t row, int64_t column) const {
    const int64_t at = (n * length_ + row) * stride_ + first_ + h * width_ + column;
    return values_[static_cast<size_t>(at)];
  }

 private:
  const std::vector<double>& values_;
  int64_t length_;
  int64_t stride_;
  int64_t first_;
  int64_t width_;
};

double BiasAt(const AttentionSpec& spec, const Arrays& inputs, int64_t n, int64_t h, int64_t q,
              int64_t k) {
  if (spec.bias.rank() == 0) return 0;
  Shape shape = {1, 1, 1, 1};
  for (int axis = 1; axis <= spec.bias.rank(); ++axis) shape[4 - axis] = spec.bias.dim(-axis);
  int64_t at = shape[0] == 1 ? 0 : n;
  at = at * shape[1] + (shape[1] == 1 ? 0 : h);
  at = at * shape[2] + (shape[2] == 1 ? 0 : q);
  return inputs.at("Bias")[0].values[static_cast<size_t>(at * shape[3] + k)];
}

// The weight that the mask of the op dropout leaves of 1.
double Kept(const AttentionSpec& spec, int64_t n, int64_t h, int64_t q, int64_t k) {
  if (spec.dropout == 0 || spec.is_test) return 1;
  const auto at = static_cast<uint64_t>(((n * spec.heads + h) * spec.queries + q) * spec.keys + k);
  constexpr uint64_t kHarnessStep = 3;
  const uint32_t word =
      Philox({static_cast<uint64_t>(spec.seed), 0, kHarnessStep}).At(at / 4)[at % 4];
  const double p = spec.dropout;
  return word < p * 0x1.0p32 ? 0 : 1 / (1 - p);
}

// One query: its scores, then its row of Out.
struct QueryResult {
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
  std::vector<double> out;
};

QueryResult Attend(const AttentionSpec& spec, const Arrays& inputs, int64_t n, int64_t h,
                   int64_t q) {
  const Columns query(spec, inputs, 0);
  const Columns key(spec, inputs, 1);
  const Columns value(spec, inputs, 2);
  int64_t visible = spec.causal ? q + 1 + spec.keys - spec.queries : spec.keys;
  if (!spec.first_places.empty()) {
    const int64_t first = spec.first_places[static_cast<size_t>(n)];
    visible = q + 1 + std::clamp<int64_t>(first, 0, spec.keys - spec.queries);
  }
  if (!spec.key_lengths.empty())
    visible = std::min(visible, spec.key_lengths[static_cast<size_t>(n)]);
  QueryResult result;
  std::vector<double> scores;
  for (int64_t k = 0; k < visible; ++k) {
    double dot = 0;
    for (int64_t c = 0; c < spec.width; ++c) dot += query.At(n, h, q, c) * key.At(n, h, k, c);
    scores.push_back(static_cast<double>(spec.scale) * dot + BiasAt(spec, inputs, n, h, q, k));
    result.max = std::max(result.max, scores.back());
  }
  for (double& score : scores) result.sum += score = std::exp(score - result.max);
  result.out.assign(static_cast<size_t>(spec.width), 0.0);
  for (int64_t k = 0; k < visible; ++k) {
    const double weight = scores[static_cast<size_t>(k)] / result.sum * Kept(spec, n, h, q, k);
    for (int64_t c = 0; c < spec.width; ++c)
      result.out[static_cast<size_t>(c)] += weight * value.At(n, h, k, c);
  }
  return result;
}

Arrays MultiheadAttentionReference(const AttentionSpec& spec, const Arrays& inputs) {
  const int64_t columns = spec.heads * spec.width;
  std::vector<double> out(static_cast<size_t>(spec.batch * spec.queries * columns));
  std::vector<double> max;
  std::vector<double> sum;
  for (int64_t n = 0; n < spec.batch; ++n) {
    for (int64_t h = 0; h < spec.heads; ++h) {
      for (int64_t q = 0; q < spec.queries; ++q) {
        const QueryResult result = Attend(spec, inputs, n, h, q);
        max.push_back(result.max);
        sum.push_back(result.sum);
        const int64_t at = (n * spec.queries + q) * columns + h * spec.width;
        std::ranges::copy(result.out, out.begin() + at);
      }
    }
  }
  const Shape statistics = {spec.batch, spec.heads, spec.queries};
  return {{"Out", {Values({spec.batch, spec.queries, columns}, std::move(out))}},
          {"RowMax", {Values(statistics, std::move(max))}},
          {"RowSum", {Values(statistics, std::move(sum))}}};
}

Array LengthsOf(const AttentionSpec& spec) {
  return Values({spec.batch}, {spec.key_lengths.begin(), spec.key_lengths.end()}, DType::kInt64);
}

Array PositionsOf(const AttentionSpec& spec) {
  std::vector<double> positions;
  for (const int64_t first : spec.first_places) {
    for (int64_t q = 0; q < spec.queries; ++q) positions.push_back(static_cast<double>(first + q));
  }
  return Values({spec.batch, spec.queries}, std::move(positions), DType::kInt64);
}

OpCase MultiheadAttentionCase(const AttentionSpec& spec) {
  const int64_t columns = spec.heads * spec.width;
  OpCase op_case;
  op_case.name = spec.name;
  op_case.type = "multihead_attention";
  op_case.inputs = {{"Query", {Uniform({spec.batch, spec.queries, columns}, 1)}},
                    {"Key", {Uniform({spec.batch, spec.keys, columns}, 2)}},
                    {"Value", {Uniform({spec.batch, spec.keys, columns}, 3)}}};
  op_case.gradients = {"Query", "Key", "Value"};
  if (spec.packed) {
    op_case.inputs = {{"Query", {Uniform({spec.batch, spec.queries, 3 * columns}, 1)}}};
    op_case.gradients = {"Query"};
  }
  if (spec.bias.rank() > 0) op_case.inputs["Bias"] = {Uniform(spec.bias, 4)};
  if (!spec.key_lengths.empty()) op_case.inputs["KeyLengths"] = {LengthsOf(spec)};
  if (!spec.first_places.empty()) op_case.inputs["Positions"] = {PositionsOf(spec)};
  op_case.attrs = {{"num_heads", static_cast<int32_t>(spec.heads)},
                   {"scale", spec.scale},
                   {"causal", spec.causal},
                   {"dropout_prob", spec.dropout},
                   {"is_test", spec.is_test},
                   {"seed", spec.seed}};
  op_case.reference = [spec](const Arrays& inputs) {
    return MultiheadAttentionReference(spec, inputs);
  };
  op_case.outputs = {{"Out", 1}, {"RowMax", 1}, {"RowSum", 1}, {"DropoutKey", 1}};
  // Weights, too, are rounded, and what is summed with them may cancel: found 0.026.
  // attention_bfloat16_test has the bounds of each element.
  op_case.bfloat16_tolerance = 0x1p-4;
  op_case.loss_outputs = {"Out"};
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

// Sets numbers of a bias [batch, 1, 1, keys]: the keys of sequence n from visible[n] on are hidden.
void HideKeys(const std::vector<int64_t>& visible, double value, OpCase* op_case) {
  Array& bias = op_case->inputs.at("Bias")[0];
  const int64_t keys = bias.shape[3];
  for (int64_t n = 0; n < bias.shape[0]; ++n) {
    for (int64_t k = 0; k < keys; ++k)
      bias.values[static_cast<size_t>(n * keys + k)] =
          k < visible[static_cast<size_t>(n)] ? 0.0 : value;
  }
}

void AddMasks(CaseList& cases) {
  const double infinity = std::numeric_limits<double>::infinity();
  const AttentionSpec spec = {.keys = 70, .width = 3, .bias = {2, 1, 1, 70}};
  // More than a tile of hidden keys, first in a row and last.
  for (const auto& [name, value] : {std::pair("padding", -1e9), std::pair("cut_off", -infinity)}) {
    cases.push_back(MultiheadAttentionCase(spec));
    cases.back().name = std::string("hidden_by_") + name;
    HideKeys({3, 68}, value, &cases.back());
    cases.push_back(MultiheadAttentionCase(spec));
    cases.back().name = std::string("first_tile_hidden_by_") + name;
    HideKeys({70, 70}, value, &cases.back());
    for (size_t k = 0; k < 66; ++k) cases.back().inputs.at("Bias")[0].values[k] = value;
  }
  // Scores beside -1e9 are rounded away in float32: every key counts the same. Those of float64
  // keep 1e-7, and differences of the loss that much less.
  OpCase hidden = MultiheadAttentionCase(spec);
  hidden.name = "everything_hidden_by_padding";
  // About -1e9, which bfloat16 hasn't.
  HideKeys({0, 70}, -0x1p30, &hidden);
  hidden.inputs["Query"] = {
      Values(hidden.inputs.at("Query")[0].shape, std::vector<double>(2 * 5 * 6, 0.0))};
  hidden.gradients = {"Value"};
  cases.push_back(hidden);
  // As softmax does.
  hidden = MultiheadAttentionCase(spec);
  hidden.name = "everything_cut_off";
  HideKeys({0, 70}, -infinity, &hidden);
  hidden.gradients = {};
  hidden.reference = [spec](const Arrays& inputs) {
    Arrays outputs = MultiheadAttentionReference(spec, inputs);
    outputs.erase("RowMax");
    outputs.erase("RowSum");
    return outputs;
  };
  cases.push_back(hidden);
}

// "several_tiles" and the like have more than AttentionSizes::kTile queries or keys.
std::vector<AttentionSpec> SmallSpecs() {
  std::vector<AttentionSpec> specs = {
      {.name = "small"},
      {.name = "one_key", .batch = 1, .heads = 1, .queries = 1, .keys = 1, .width = 1},
      {.name = "odd_sizes", .heads = 3, .queries = 17, .keys = 9, .width = 7},
      {.name = "several_tiles", .batch = 1, .queries = 67, .keys = 131, .width = 5},
      {.name = "whole_tiles", .batch = 1, .heads = 1, .queries = 64, .keys = 128, .width = 16},
      {.name = "wide_heads", .batch = 1, .queries = 6, .keys = 7, .width = 67},
      // A head is too much for one thread: the gradient has a task for each tile.
      {.name = "one_head", .batch = 1, .heads = 1, .queries = 150, .keys = 133, .width = 3},
      {.name = "packed", .queries = 9, .keys = 9, .packed = true},
      {.name = "packed_tiles", .batch = 1, .queries = 70, .keys = 70, .width = 3, .packed = true},
      {.name = "large_scale", .scale = 30.0f},
      {.name = "causal", .queries = 9, .keys = 9, .causal = true},
      {.name = "causal_tiles", .batch = 1, .queries = 130, .keys = 130, .width = 2, .causal = true},
      {.name = "causal_after_a_prefix", .heads = 1, .queries = 70, .keys = 110, .causal = true},
      {.name = "causal_with_bias", .queries = 9, .keys = 9, .bias = {2, 1, 1, 9}, .causal = true},
      {.name = "dropout_at_odd_words", .queries = 19, .keys = 67, .width = 3, .dropout = 0.5f},
      {.name = "dropout_of_tiles", .batch = 1, .queries = 65, .keys = 132, .dropout = 0.1f},
      {.name = "dropout_packed", .packed = true, .bias = {2, 1, 1, 5}, .dropout = 0.4f},
      {.name = "dropout_causal", .queries = 13, .keys = 13, .causal = true, .dropout = 0.3f},
      {.name = "dropout_in_evaluation", .dropout = 0.5f, .is_test = true},
      {.name = "lengths", .keys = 7, .key_lengths = {3, 7}},
      {.name = "lengths_at_tiles", .batch = 3, .keys = 130, .width = 3, .key_lengths = {64, 65, 1}},
      {.name = "lengths_of_nothing", .keys = 70, .bias = {2, 1, 1, 70}, .key_lengths = {0, 66}},
      {.name = "lengths_of_one_head",
       .batch = 1,
       .heads = 1,
       .queries = 150,
       .keys = 133,
       .width = 3,
       .key_lengths = {60}},
      {.name = "lengths_packed", .packed = true, .key_lengths = {5, 2}},
      {.name = "lengths_causal", .queries = 9, .keys = 9, .causal = true, .key_lengths = {4, 9}},
      {.name = "lengths_with_dropout",
       .keys = 67,
       .bias = {2, 1, 5, 67},
       .dropout = 0.3f,
       .key_lengths = {31, 66}},
      {.name = "one_query_of_a_cache",
       .queries = 1,
       .keys = 70,
       .causal = true,
       .first_places = {0, 66}},
      {.name = "queries_of_a_cache",
       .queries = 7,
       .keys = 20,
       .causal = true,
       .dropout = 0.3f,
       .first_places = {5, 13}},
      {.name = "tiles_of_a_cache",
       .queries = 70,
       .keys = 140,
       .width = 3,
       .causal = true,
       .first_places = {0, 61}},
      {.name = "one_head_of_a_cache",
       .batch = 1,
       .heads = 1,
       .queries = 100,
       .keys = 200,
       .width = 3,
       .causal = true,
       .first_places = {37}},
      {.name = "places_beyond_the_cache",
       .queries = 3,
       .keys = 9,
       .causal = true,
       .first_places = {-2, 8}},
      {.name = "no_sequences", .batch = 0},
      {.name = "no_queries", .queries = 0},
      {.name = "no_keys", .keys = 0},
      {.name = "bias_of_tiles", .batch = 1, .queries = 66, .keys = 65, .bias = {1, 2, 66, 65}},
  };
  for (const auto& [what, bias] : {std::pair("key", Shape{2, 1, 1, 5}),
                                   {"pair", {2, 1, 3, 5}},
                                   {"head", {2, 2, 3, 5}},
                                   {"head_and_key", {1, 2, 1, 5}},
                                   {"pair_of_all_heads", {3, 5}}}) {
    specs.push_back({.name = std::string("bias_a_") + what, .queries = 3, .bias = bias});
  }
  return specs;
}

AttentionSpec BenchmarkSpec(const std::string& name, int64_t batch, int64_t heads, int64_t length) {
  return {.name = name,
          .batch = batch,
          .heads = heads,
          .queries = length,
          .keys = length,
          .width = 64,
          .scale = 0.125f,
          .benchmark_only = true};
}

std::vector<AttentionSpec> BenchmarkSpecs() {
  AttentionSpec mini = BenchmarkSpec("ernie_mini", 16, 4, 128);
  mini.bias = {16, 1, 1, 128};
  AttentionSpec mini_dropout = mini;
  mini_dropout.name += "_dropout";
  mini_dropout.dropout = 0.1f;
  std::vector<AttentionSpec> specs = {mini, mini_dropout, BenchmarkSpec("ernie_base", 4, 12, 512)};
  // The memory of all scores would be 4, 16 and 64 times as much.
  for (const int64_t length : {512, 1024, 2048, 4096})
    specs.push_back(BenchmarkSpec("length_" + std::to_string(length), 1, 4, length));
  specs.push_back(BenchmarkSpec("causal_2048", 1, 4, 2048));
  specs.back().causal = true;
  AttentionSpec step = BenchmarkSpec("step_of_gpt2", 1, 12, 1024);
  step.queries = 1;
  step.causal = true;
  step.first_places = {511};
  specs.push_back(step);
  return specs;
}

}  // namespace

void AddMultiheadAttentionCases(CaseList& cases) {
  for (const AttentionSpec& spec : SmallSpecs()) cases.push_back(MultiheadAttentionCase(spec));
  for (const AttentionSpec& spec : BenchmarkSpecs()) cases.push_back(MultiheadAttentionCase(spec));
  AddMasks(cases);
}

}  // namespace skiff::harness
