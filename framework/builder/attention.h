// Attention, with its projections.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "framework/builder/activation.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct AttentionOptions {
  int64_t heads = 1;
  int64_t width = 0;  // of all heads together; 0: that of the queries
  // Of weights, with upscale_in_train: the others are divided by 1 - dropout in training.
  float dropout = 0.0f;
  bool is_test = false;
  // Added to the scores, so -1e9 hides a key: [N, heads, Lq, Lk], any of them but Lk may be 1.
  // Undefined: none. PaddingMask makes one. One that wants a gradient gets it, but is in the way of
  // fuse_attention.
  Variable mask = {};
  // [N], int64: how many keys of each sequence are seen, the first ones. Undefined: all. Saves the
  // work that a mask would hide. A sequence with 0 keys gives zeros, where a mask that hides all of
  // them gives their mean.
  Variable key_lengths = {};
  // One matrix projects to queries, keys and values at once. Only for one input.
  bool packed = false;
  // Of all projections, so neither may be shared or have a name.
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string name = {};
};
// Multi-head attention (Vaswani et al. 2017): the projections of queries [N, Lq, …], keys and
// values [N, Lk, …] are split into heads of d columns each; each computes softmax(q k' / sqrt(d) +
// mask) v; the joined results are projected to [N, Lq, width]. The layers of the projections are
// called <name>_query_fc, _key_fc, _value_fc (or _qkv_fc) and _output_fc.
//
// It consists of ops of Fluid. The pass fuse_attention makes one instruction of all but the
// projections, whose memory grows with the length, not with its square. With key_lengths, that
// instruction is already in the program, as the op multihead_attention, which Fluid doesn't have.
//
// Error unless the inputs have rank 3 and a known width, heads divides the width, and 0 <= dropout
// < 1, and for key_lengths of another dtype or rank. With them, Minimize throws an Error
// (kUnimplemented) if the mask wants a gradient.
Variable Attention(const Variable& query, const Variable& key, const Variable& value,
                   const AttentionOptions& options, Site site = Site::current());
// The same with x for all three.
Variable Attention(const Variable& x, const AttentionOptions& options, Site site = Site::current());

// Returns the mask that hides padding from every query: from is_token [N, L], 1 for a token and 0
// for padding, it makes [N, 1, 1, L] of 0 and -10,000, whose exponential is 0 beside any real
// score. A sequence of padding alone attends to all of it. Throws an Error (kInvalidArgument)
// unless the input has rank 2.
Variable PaddingMask(const Variable& is_token, Site site = Site::current());

}  // namespace skiff::layers
