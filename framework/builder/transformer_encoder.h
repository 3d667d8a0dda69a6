// Transformer encoders: attention and feed-forward networks with residual connections.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "framework/builder/attention.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct TransformerEncoderOptions {
  int64_t layers = 1;
  int64_t heads = 1;         // divides the width of the input
  int64_t feed_forward = 0;  // width of the hidden layer; 0: four times the input's
  std::string act = "gelu";  // of the hidden layer: an op such as gelu or relu, or gelu_tanh
  // Of the output of attention and of the feed-forward network, before they are added.
  float dropout = 0.0f;
  float attention_dropout = 0.0f;  // of the attention's weights
  bool is_test = false;
  Variable mask = {};         // as in AttentionOptions
  Variable key_lengths = {};  // as in AttentionOptions
  // One matrix projects to queries, keys and values at once.
  bool packed = false;
  // Normalises the inputs of attention and of the feed-forward network, and the result of the last
  // layer, instead of the sums ("pre-norm").
  bool normalize_first = false;
  float epsilon = 1e-5f;  // of the normalisations
  // Of all matrices and of all biases, so neither may be shared or have a name.
  ParamAttr param_attr = {};
  ParamAttr bias_attr = {};
  std::string name = {};
};

// Returns vectors of the same shape as x [N, L, width]. A layer computes
//
//   y = norm(x + drop(attention(x)))
//   norm(y + drop(fc_1(act(fc_0(y)))))
//
// (Vaswani et al. 2017, section 3.1), or with normalize_first
//
//   y = x + drop(attention(norm(x)))
//   y + drop(fc_1(act(fc_0(norm(y)))))
//
// (Xiong et al. 2020). Parameters have the names of published ERNIE models: the names of layer i
// begin with <name>_layer_<i>, followed by _multi_head_att_query_fc, _key_fc, _value_fc (or
// _qkv_fc) and _output_fc, _post_att_layer_norm_scale and _bias, _ffn_fc_0, _ffn_fc_1, and
// _post_ffn_layer_norm_scale and _bias. With normalize_first, the normalisations of a layer are
// called pre_att and pre_ffn, and the last one is <name>_post_layer_norm.
//
// Throws an Error (kInvalidArgument) unless layers >= 1, feed_forward >= 0 and 0 <= dropout < 1,
// and the Errors of Attention.
Variable TransformerEncoder(const Variable& x, const TransformerEncoderOptions& options,
                            Site site = Site::current());

}  // namespace skiff::layers
