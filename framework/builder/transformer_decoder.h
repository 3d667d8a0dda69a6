// Transformer decoders: causal attention, attention to the output of an encoder, and feed-forward
// networks, with residual connections.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/attention.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct TransformerDecoderOptions {
  int64_t layers = 1;
  int64_t heads = 1;         // divides the width of the input
  int64_t feed_forward = 0;  // width of the hidden layer; 0: four times the input's
  std::string act = "gelu";  // of the hidden layer: an op such as gelu, relu or swish (SiLU)
  // Multiplies the hidden layer by another projection of its input (Shazeer 2020): with the act
  // swish, Llama's SwiGLU.
  bool gated = false;
  // Of the output of attention and of the feed-forward network, before they are added.
  float dropout = 0.0f;
  float attention_dropout = 0.0f;  // of the attention's weights
  bool is_test = false;
  Variable key_lengths = {};  // as in AttentionOptions: of x
  // [N, Lm, …]: the output of an encoder. Undefined: no such attention.
  Variable memory = {};
  Variable memory_lengths = {};  // [N], int64: how much of each sequence is seen; undefined: all
  // As in AttentionOptions, of x. The cache has two variables for each layer.
  bool rotary = false;
  float rotary_base = 10000.0f;
  bool rotary_interleaved = false;
  Variable positions = {};
  std::vector<Variable> cache = {};
  // One matrix projects x to queries, keys and values at once.
  bool packed = false;
  // Normalises the inputs of attention and of the feed-forward network, and the result of the last
  // layer, instead of the sums ("pre-norm").
  bool normalize_first = false;
  std::string norm = "layer_norm";  // or "rms_norm"
  float epsilon = 1e-5f;            // of the normalisations
  // Of all matrices and of all biases, so neither may be shared or have a name.
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string name = {};
};

// Returns vectors of the same shape as x [N, L, width]. Each vector depends on the vectors of x up
// to the same place. A layer computes
//
//   y = norm(x + drop(attention(x)))
//   z = norm(y + drop(attention(y, memory)))        only with a memory
//   norm(z + drop(fc_1(act(fc_0(z)))))              gated: fc_1(act(fc_0(z)) · fc_gate(z))
//
// (Vaswani et al. 2017, section 3.1), or with normalize_first
//
//   y = x + drop(attention(norm(x)))
//   z = y + drop(attention(norm(y), memory))
//   z + drop(fc_1(act(fc_0(norm(z)))))
//
// as in GPT-2. With rotary, gated, norm = "rms_norm", act = "swish", normalize_first and
// bias_attr = false it is Llama's. Parameters have the names of TransformerEncoder: the names of
// layer i begin with <name>_layer_<i>. The attention to the memory is called _cross_att, and its
// normalisation post_cross_att or pre_cross_att; the scales of RmsNorm end in _rms_norm_scale.
//
// attention.h shows how a program generates token by token with a cache. Each run projects the
// memory; with memory_lengths it also copies the cache of the first layer, so that an Error about a
// length leaves the cache as it was.
//
// Throws an Error (kInvalidArgument) unless layers >= 1, feed_forward >= 0, 0 <= dropout < 1, norm
// is a known name and the cache has two variables for each layer or none; and the Errors of
// Attention.
Variable TransformerDecoder(const Variable& x, const TransformerDecoderOptions& options,
                            Site site = Site::current());

}  // namespace skiff::layers
