// Attention and the embedding of positions by rotation.
#include <cmath>
#include <limits>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// [batch, time, heads · width] as [batch, heads, time, width].
Variable ByHeads(const OnnxNode& node, size_t i, int64_t heads) {
  const Variable x = node.InOfRank(i, 3, 4);
  if (x.dims().size() == 4) return x;
  if (heads < 1 || x.dims()[2] < 1 || x.dims()[2] % heads != 0) {
    node.Invalid("divides ", x.dims()[2], " columns among ", heads, " heads");
  }
  return layers::Transpose(layers::Reshape(x, {0, 0, heads, x.dims()[2] / heads}), {0, 2, 1, 3});
}

Variable WithPast(const OnnxNode& node, size_t past, const Variable& x) {
  return node.Has(past) ? layers::Concat({node.InOfRank(past, 4, 4), x}, 2) : x;
}

// What is added to the scores where the mask has bools or numbers.
Variable BiasOfMask(const OnnxNode& node, const Variable& mask, const Variable& key) {
  const int64_t length = key.dims()[2];
  const int64_t masked = mask.dims().empty() ? -1 : mask.dims().back();
  const bool differ = length != masked && length >= 0 && masked >= 0;
  if (differ) node.Unsupported("its mask is for ", masked, " of ", length, " keys");
  if (mask.dtype() != DType::kBool) return mask;
  const Variable zeros = layers::Cast(mask, key.dtype()) * 0.0;
  return layers::Where(mask, zeros, -double{kInfinity});
}

Variable CausalBias(const OnnxNode& node, const Variable& query, const Variable& key) {
  const int64_t rows = query.dims()[2];
  const int64_t columns = key.dims()[2];
  const int64_t past = node.Has(4) ? node.InOfRank(4, 4, 4).dims()[2] : 0;
  if (rows < 0 || columns < 0 || past < 0) {
    node.Unsupported("is_causal with lengths that only a run knows");
  }
  if (rows > 0 && columns > kMostConstant / rows) {
    node.Unsupported("is_causal with ", rows, " queries of ", columns, " keys");
  }
  std::vector<float> bias;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < columns; ++k) bias.push_back(k > past + i ? -kInfinity : 0.0f);
  }
  return layers::Cast(layers::AssignValue({rows, columns}, bias), query.dtype());
}

Variable Repeated(const OnnxNode& node, const Variable& x, int64_t heads) {
  const int64_t own = x.dims()[1];
  // Numbers that only a run knows are taken for equal: a run says so if they aren't.
  if (own == heads || own < 0 || heads < 0) return x;
  if (own < 1 || heads < 1 || heads % own != 0) node.Invalid("has ", heads, " heads for ", own);
  return layers::RepeatInterleave(x, heads / own, 1);
}

void Attention(const OnnxNode& node) {
  node.CheckInputs(3, 7);
  if (node.Has(6)) node.Unsupported("has nonpad_kv_seqlen");
  const int64_t mode = node.Int("qk_matmul_output_mode", 0);
  const Variable query = ByHeads(node, 0, node.Int("q_num_heads", 0));
  const Variable present_key = WithPast(node, 4, ByHeads(node, 1, node.Int("kv_num_heads", 0)));
  const Variable present_value = WithPast(node, 5, ByHeads(node, 2, node.Int("kv_num_heads", 0)));
  node.Out(1, present_key);
  node.Out(2, present_value);
  const int64_t heads = query.dims()[1];
  const Variable key = Repeated(node, present_key, heads);
  const int64_t width = query.dims()[3];
  if (width < 1) node.Unsupported("the width of its heads is known only in a run");
  const double scale = node.HasAttr("scale") ? double{node.Float("scale", 1)}
                                             : 1 / std::sqrt(static_cast<double>(width));
  Variable scores = layers::MatMul(query * scale, key, {.transpose_y = true});
  Variable shown = scores;
  if (node.Has(3)) scores = scores + BiasOfMask(node, node.In(3), key);
  if (node.Int("is_causal", 0) != 0) scores = scores + CausalBias(node, query, key);
  if (mode == 1) shown = scores;
  const double cap = node.Float("softcap", 0.0f);
  if (cap > 0) scores = layers::Tanh(scores * (1 / cap)) * cap;
  if (mode == 2) shown = scores;
  const Variable shares = layers::Softmax(scores, -1);
  if (mode == 3) shown = shares;
  node.Out(3, shown);
  Variable out = layers::MatMul(shares, Repeated(node, present_value, heads));
  if (node.In(0).dims().size() == 3) {
    const int64_t columns = heads * out.dims()[3];
    out = layers::Reshape(layers::Transpose(out, {0, 2, 1, 3}), {0, 0, columns});
  }
  node.Out(0, out);
}

// The cosines or sines of each position: [batch, time, 1, half].
Variable OfPositions(const OnnxNode& node, const Variable& cache) {
  if (!node.Has(3)) return layers::Unsqueeze(cache, {2});
  const Variable ids = node.InOfRank(3, 2, 2);
  const Variable flat = layers::Gather(cache, layers::Reshape(ids, {-1}));
  const int64_t time = ids.dims()[1];
  if (time < 1 || cache.dims()[1] < 1) node.Unsupported("its lengths are known only in a run");
  return layers::Reshape(flat, {-1, time, 1, cache.dims()[1]});
}

Variable Columns(const Variable& x, int64_t begin, int64_t end, int64_t step) {
  const layers::StridedSliceOptions options = {
      .axes = {3}, .starts = {begin}, .ends = {end}, .strides = {step}};
  return layers::StridedSlice(x, options);
}

void RotaryEmbedding(const OnnxNode& node) {
  node.CheckInputs(3, 4);
  const Variable input = node.InOfRank(0, 3, 4);
  const bool is_flat = input.dims().size() == 3;
  // [batch, time, heads, width]
  Variable x;
  if (is_flat) {
    const int64_t heads = node.Int("num_heads", 0);
    if (heads < 1 || input.dims()[2] < 1) node.Invalid("num_heads = ", heads);
    x = layers::Reshape(input, {0, 0, heads, input.dims()[2] / heads});
  } else {
    x = layers::Transpose(input, {0, 2, 1, 3});
  }
  const int64_t width = x.dims()[3];
  const int64_t asked = node.Int("rotary_embedding_dim", 0);
  const int64_t rotated = asked == 0 ? width : asked;
  if (rotated < 2 || rotated % 2 != 0 || rotated > width)
    node.Invalid("rotates ", rotated, " columns");
  const bool pairs = node.Int("interleaved", 0) != 0;
  const Variable first = pairs ? Columns(x, 0, rotated, 2) : Columns(x, 0, rotated / 2, 1);
  const Variable second = pairs ? Columns(x, 1, rotated, 2) : Columns(x, rotated / 2, rotated, 1);
  const size_t rank = node.Has(3) ? 2 : 3;
  const Variable cos = OfPositions(node, node.InOfRank(1, rank, rank));
  const Variable sin = OfPositions(node, node.InOfRank(2, rank, rank));
  const Variable real = cos * first - sin * second;
  const Variable imaginary = sin * first + cos * second;
  Variable turned = pairs ? layers::Reshape(layers::Stack({real, imaginary}, 4), {0, 0, 0, rotated})
                          : layers::Concat({real, imaginary}, 3);
  if (rotated < width) turned = layers::Concat({turned, Columns(x, rotated, width, 1)}, 3);
  node.Out(0, is_flat ? layers::Reshape(turned, {0, 0, input.dims()[2]})
                      : layers::Transpose(turned, {0, 2, 1, 3}));
}

}  // namespace

std::vector<OnnxConverterEntry> AttentionConverters() {
  return {
      {"Attention", Attention},
      {"RotaryEmbedding", RotaryEmbedding},
  };
}

}  // namespace skiff
