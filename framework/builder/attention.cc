#include "framework/builder/attention.h"

#include <cmath>
#include <utility>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/tensor.h"
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
  call.Use(x);
  call.Enforce(x.dims().size() == 3 && x.dims()[2] > 0, "input \"", x.name(), "\" has the shape ",
               Shape(x.dims()), ", expected [N, L, width] with a known width");
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

// The op that computes all of it, for projections [N, L, width], or for packed ones in `query`.
Variable AttendByLengths(const LayerCall& call, const Projected& projected,
                         const AttentionOptions& options) {
  Op op("multihead_attention");
  op.SetInput("Query", {projected.query.name()});
  if (projected.key.defined()) {
    op.SetInput("Key", {projected.key.name()}).SetInput("Value", {projected.value.name()});
  }
  if (options.mask.defined()) op.SetInput("Bias", {call.Use(options.mask)});
  op.SetInput("KeyLengths", {call.Use(options.key_lengths)});
  for (const char* slot : {"RowMax", "RowSum", "DropoutKey"})
    op.SetOutput(slot, {call.NewOutput().name()});
  op.SetAttr("num_heads", options.heads)
      .SetAttr("scale", ScoreScale(options))
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
    call.Use(options.mask);
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

}  // namespace

Variable Attention(const Variable& query, const Variable& key, const Variable& value,
                   const AttentionOptions& options, Site site) {
  const LayerCall call("multi_head_attention", options.name, site);
  const AttentionOptions checked = Checked(call, query, options);
  CheckInput(call, key);
  CheckInput(call, value);
  call.Enforce(!options.packed, "packed projections of three inputs, expected one input");
  const auto project = [&](const Variable& x, const char* what) {
    return Project(call, x, checked.width, what, checked, site);
  };
  const Projected projected{.query = project(query, "_query_fc"),
                            .key = project(key, "_key_fc"),
                            .value = project(value, "_value_fc")};
  const Variable joined = checked.key_lengths.defined()
                              ? AttendByLengths(call, projected, checked)
                              : AttendInOpsOfFluid(call, projected, checked, site);
  return Project(call, joined, checked.width, "_output_fc", checked, site);
}

Variable Attention(const Variable& x, const AttentionOptions& options, Site site) {
  if (!options.packed) return Attention(x, x, x, options, site);
  const LayerCall call("multi_head_attention", options.name, site);
  const AttentionOptions checked = Checked(call, x, options);
  const Variable all = Project(call, x, 3 * checked.width, "_qkv_fc", checked, site);
  const auto attend_to_parts = [&] {
    const std::vector<Variable> parts = Split(all, 3, 2, site);
    return AttendInOpsOfFluid(call, {parts[0], parts[1], parts[2]}, checked, site);
  };
  const Variable joined = checked.key_lengths.defined()
                              ? AttendByLengths(call, {.query = all}, checked)
                              : attend_to_parts();
  return Project(call, joined, checked.width, "_output_fc", checked, site);
}

Variable PaddingMask(const Variable& is_token, Site site) {
  const LayerCall call("padding_mask", "", site);
  call.Use(is_token);
  call.Enforce(is_token.dims().size() == 2, "input \"", is_token.name(), "\" has the shape ",
               Shape(is_token.dims()), ", expected [N, L]");
  constexpr float kHidden = 1e4f;
  const Variable scores =
      Scale(is_token, {.scale = kHidden, .bias = -1.0f, .bias_after_scale = false}, site);
  return Unsqueeze(scores, {1, 2}, site);
}

}  // namespace skiff::layers
