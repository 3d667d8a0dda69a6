#include "framework/builder/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

// Queries, keys and values, projected: [N, L, width].
struct Projected {
  Variable query;
  Variable key;
  Variable value;
};

void CheckInput(const LayerCall& call, const Variable& x) {
  call.CheckedName(x);
  call.Enforce(x.dims().size() == 3 && x.dims()[2] > 0, "input \"", x.name(), "\" has the shape ",
               Shape(x.dims()), ", expected [N, L, width] with a known width");
}

// Checks that positions beyond the cache's room are an Error of a run: write_to_cache clamps them.
void CheckReach(const LayerCall& call, const Variable& positions, const Variable& cache) {
  if (cache.dims().size() < 2) return;
  for (const auto& op : positions.block()->ops()) {
    const std::vector<std::string>& made = op->Output("Out");
    if (op->type != "token_positions" || std::ranges::count(made, positions.name()) == 0) continue;
    const int64_t limit = op->Attr<int32_t>("limit");
    call.Enforce(limit <= cache.dims()[1], "positions have the limit ", limit, ", and the cache \"",
                 cache.name(), "\" has room for ", cache.dims()[1],
                 " tokens: expected TokenPositions with .limit = ", cache.dims()[1]);
  }
}

// Returns the options with the width set.
AttentionOptions Checked(const LayerCall& call, const Variable& query, AttentionOptions options) {
  CheckInput(call, query);
  if (options.width == 0) options.width = query.dims()[2];
  call.Enforce(options.heads >= 1 && options.width >= 1 && options.width % options.heads == 0,
               options.heads, " heads of a width of ", options.width,
               ", expected a positive width that heads divides");
  call.Enforce(options.dropout >= 0.0f && options.dropout < 1.0f, "dropout = ", options.dropout,
               " is outside [0, 1)");
  call.Enforce(options.cache.empty() || options.cache.size() == 2, options.cache.size(),
               " variables of a cache, expected its keys and its values");
  call.Enforce(options.cache.empty() || options.positions.defined(),
               "a cache without positions, expected those of the new tokens");
  // They would have no effect.
  call.Enforce(options.rotary || !options.cache.empty() || !options.positions.defined(),
               "positions without rotary and without a cache, expected one of them");
  call.Enforce(options.rotary || !options.rotary_interleaved,
               "rotary_interleaved without rotary, expected both");
  call.Enforce(options.cache.empty() || !options.key_lengths.defined(),
               "a cache with key_lengths, expected the positions alone");
  if (!options.cache.empty()) {
    call.CheckedNames({options.positions, options.cache[0]});
    CheckReach(call, options.positions, options.cache[0]);
  }
  const auto serves_all = [](const ParamAttr& attr) {
    return attr.name.empty() && !attr.shared.defined();
  };
  call.Enforce(serves_all(options.param_attr) &&
                   (!options.bias_attr.has_value() || serves_all(*options.bias_attr)),
               "param_attr or bias_attr names a parameter, but there is one for each projection");
  return options;
}

Variable Project(const LayerCall& call, const Variable& x, int64_t width, const char* what,
                 const AttentionOptions& options, Site site) {
  return Fc(x, width,
            {.num_flatten_dims = 2,
             .param_attr = options.param_attr,
             .bias_attr = options.bias_attr,
             .name = call.name() + what},
            site);
}

// [N, L, width] to [N, heads, L, width / heads]
Variable SplitHeads(const Variable& x, const AttentionOptions& options, Site site) {
  return Transpose(Reshape(x, {0, 0, options.heads, options.width / options.heads}, site),
                   {0, 2, 1, 3}, site);
}

float ScoreScale(const AttentionOptions& options) {
  const double head_width = static_cast<double>(options.width / options.heads);
  return static_cast<float>(1 / std::sqrt(head_width));
}

// Whether the program has the op for it: no ops of Fluid hide keys from some queries without a mask
// for all pairs.
bool IsOneOp(const AttentionOptions& options) {
  return options.causal || options.key_lengths.defined() || !options.cache.empty();
}

// The op that computes all of it, for projections [N, L, width], or for packed ones in `query`.
Variable AttendInOneOp(const LayerCall& call, const Projected& projected,
                       const AttentionOptions& options) {
  Op op("multihead_attention");
  op.SetInput("Query", {projected.query.name()});
  if (projected.key.defined()) {
    op.SetInput("Key", {projected.key.name()}).SetInput("Value", {projected.value.name()});
  }
  if (options.mask.defined()) op.SetInput("Bias", {call.CheckedName(options.mask)});
  if (options.key_lengths.defined())
    op.SetInput("KeyLengths", {call.CheckedName(options.key_lengths)});
  if (!options.cache.empty()) op.SetInput("Positions", {call.CheckedName(options.positions)});
  for (const char* slot : {"RowMax", "RowSum", "DropoutKey"})
    op.SetOutput(slot, {call.NewOutput().name()});
  op.SetAttr("num_heads", options.heads)
      .SetAttr("scale", ScoreScale(options))
      .SetAttr("causal", options.causal || !options.cache.empty())
      .SetAttr("dropout_prob", options.dropout)
      .SetAttr("is_test", options.is_test);
  return call.AppendFor(std::move(op));
}

Variable AttendInOpsOfFluid(const LayerCall& call, const Projected& projected,
                            const AttentionOptions& options, Site site) {
  const Variable query =
      Scale(SplitHeads(projected.query, options, site), {.scale = ScoreScale(options)}, site);
  const Variable key = SplitHeads(projected.key, options, site);
  const Variable value = SplitHeads(projected.value, options, site);
  Variable scores = MatMul(query, key, {.transpose_y = true}, site);
  if (options.mask.defined()) {
    call.CheckedName(options.mask);
    scores = ElementwiseAdd(scores, options.mask, {}, site);
  }
  Variable weights = Softmax(scores, -1, site);
  if (options.dropout > 0) {
    weights = Dropout(weights, options.dropout,
                      {.is_test = options.is_test, .implementation = "upscale_in_train"}, site);
  }
  return Reshape(Transpose(MatMul(weights, value, {}, site), {0, 2, 1, 3}, site),
                 {0, 0, options.width}, site);
}

// Turns queries and keys by their positions, and puts keys and values into the cache, if the
// options say so.
Projected Placed(Projected projected, const AttentionOptions& options, Site site) {
  if (options.rotary) {
    for (Variable* x : {&projected.query, &projected.key}) {
      *x = RotaryEmbedding(*x,
                           {.heads = options.heads,
                            .positions = options.positions,
                            .base = options.rotary_base,
                            .interleaved = options.rotary_interleaved},
                           site);
    }
  }
  if (!options.cache.empty()) {
    projected.key = WriteToCache(options.cache[0], projected.key, options.positions, site);
    projected.value = WriteToCache(options.cache[1], projected.value, options.positions, site);
  }
  return projected;
}

// The layer with projected inputs. `options` are checked.
Variable Attend(const LayerCall& call, const Projected& projected, const AttentionOptions& options,
                Site site) {
  const Variable joined = IsOneOp(options) ? AttendInOneOp(call, projected, options)
                                           : AttendInOpsOfFluid(call, projected, options, site);
  return Project(call, joined, options.width, "_output_fc", options, site);
}

// The positions that an option gives, or those from 0 on.
Variable PositionsOf(const Variable& tokens, const Variable& given, Site site) {
  return given.defined() ? given : TokenPositions(tokens, {}, site);
}

Projected ProjectEach(const LayerCall& call, const Variable& query, const Variable& key,
                      const Variable& value, const AttentionOptions& options, Site site) {
  const auto project = [&](const Variable& x, const char* what) {
    return Project(call, x, options.width, what, options, site);
  };
  return {.query = project(query, "_query_fc"),
          .key = project(key, "_key_fc"),
          .value = project(value, "_value_fc")};
}

Projected ProjectPacked(const LayerCall& call, const Variable& x, const AttentionOptions& options,
                        Site site) {
  const Variable all = Project(call, x, 3 * options.width, "_qkv_fc", options, site);
  // The op takes them as they are.
  if (IsOneOp(options) && !options.rotary && options.cache.empty()) return {.query = all};
  const std::vector<Variable> parts = Split(all, 3, 2, site);
  return {.query = parts[0], .key = parts[1], .value = parts[2]};
}

}  // namespace

Variable TokenPositions(const Variable& tokens, const TokenPositionsOptions& options, Site site) {
  const LayerCall call("token_positions", "", site);
  Op op("token_positions");
  op.SetInput("X", {call.CheckedName(tokens)}).SetAttr("limit", options.limit);
  if (options.start.defined()) op.SetInput("Start", {call.CheckedName(options.start)});
  return call.AppendFor(std::move(op)).StopGradient();
}

Variable SinusoidalEmbedding(const Variable& tokens, const SinusoidalEmbeddingOptions& options,
                             Site site) {
  const LayerCall call("sinusoidal_embedding", "", site);
  const int64_t width = options.width;
  call.Enforce(width >= 2 && width % 2 == 0, "width = ", width,
               ", expected a positive even number");
  const Variable positions = PositionsOf(tokens, options.positions, site);
  std::vector<float> frequencies;
  for (int64_t i = 0; i < width / 2; ++i) {
    frequencies.push_back(static_cast<float>(
        std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(width))));
  }
  const Variable angles =
      ElementwiseMul(Unsqueeze(Cast(positions, DType::kFloat32, site), {2}, site),
                     AssignValue({width / 2}, frequencies, site), {}, site);
  const Variable pairs = Stack({Sin(angles, site), Cos(angles, site)}, 3, site);
  return Reshape(pairs, {0, 0, width}, site).StopGradient();
}

Variable PositionEmbedding(const Variable& tokens, const PositionEmbeddingOptions& options,
                           Site site) {
  const LayerCall call("position_embedding", options.name, site);
  return Embedding(PositionsOf(tokens, options.positions, site),
                   {.rows = options.rows,
                    .width = options.width,
                    .param_attr = options.param_attr,
                    .dtype = options.dtype,
                    .name = call.name()},
                   site);
}

Variable RotaryEmbedding(const Variable& x, const RotaryEmbeddingOptions& options, Site site) {
  const LayerCall call("rotary_embedding", "", site);
  Op op("rotary_embedding");
  op.SetInput("X", {call.CheckedName(x)});
  if (options.positions.defined()) op.SetInput("Positions", {call.CheckedName(options.positions)});
  op.SetAttr("num_heads", options.heads)
      .SetAttr("base", options.base)
      .SetAttr("interleaved", options.interleaved);
  return call.AppendFor(std::move(op));
}

std::vector<Variable> KeyValueCache(const KeyValueCacheOptions& options, Site site) {
  const LayerCall call("key_value_cache", options.name, site);
  call.Enforce(
      options.layers >= 1 && options.sequences >= 1 && options.capacity >= 1 && options.width >= 1,
      options.layers, " layers, ", options.sequences, " sequences, a capacity of ",
      options.capacity, " and a width of ", options.width, ", expected at least 1 of each");
  std::vector<Variable> cache;
  for (int64_t i = 0; i < options.layers; ++i) {
    for (const char* what : {"keys", "values"}) {
      cache.push_back(CreatePersistable(StrCat(call.name(), "_", i, "_", what),
                                        {options.sequences, options.capacity, options.width},
                                        options.dtype, 0.0, site));
    }
  }
  return cache;
}

Variable WriteToCache(const Variable& cache, const Variable& x, const Variable& positions,
                      Site site) {
  const LayerCall call("write_to_cache", "", site);
  Op op("write_to_cache");
  op.SetInput("Cache", {call.CheckedName(cache)})
      .SetInput("X", {call.CheckedName(x)})
      .SetInput("Positions", {call.CheckedName(positions)})
      .SetOutput("Out", {cache.name()});
  call.Append(std::move(op));
  return cache;
}

Variable Attention(const Variable& query, const Variable& key, const Variable& value,
                   const AttentionOptions& options, Site site) {
  const LayerCall call("multi_head_attention", options.name, site);
  const AttentionOptions checked = Checked(call, query, options);
  CheckInput(call, key);
  CheckInput(call, value);
  const char* for_one = options.packed           ? "packed projections"
                        : options.rotary         ? "rotary embeddings"
                        : !options.cache.empty() ? "a cache"
                                                 : nullptr;
  call.Enforce(for_one == nullptr, for_one, " of three inputs, expected one input");
  return Attend(call, ProjectEach(call, query, key, value, checked, site), checked, site);
}

Variable Attention(const Variable& x, const AttentionOptions& options, Site site) {
  const LayerCall call("multi_head_attention", options.name, site);
  const AttentionOptions checked = Checked(call, x, options);
  const Projected projected = options.packed ? ProjectPacked(call, x, checked, site)
                                             : ProjectEach(call, x, x, x, checked, site);
  return Attend(call, Placed(projected, checked, site), checked, site);
}

Variable PaddingMask(const Variable& is_token, Site site) {
  const LayerCall call("padding_mask", "", site);
  call.CheckedName(is_token);
  call.Enforce(is_token.dims().size() == 2, "input \"", is_token.name(), "\" has the shape ",
               Shape(is_token.dims()), ", expected [N, L]");
  constexpr float kHidden = 1e4f;
  const Variable scores =
      Scale(is_token, {.scale = kHidden, .bias = -1.0f, .bias_after_scale = false}, site);
  return Unsqueeze(scores, {1, 2}, site);
}

}  // namespace skiff::layers
