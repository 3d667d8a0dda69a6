// Attention, with its projections, positions of tokens and caches of keys and values.
//
// A program that generates a sequence keeps the keys and values of earlier tokens in a cache, so
// that each run computes the new tokens alone:
//
//   Variable Gpt(const Variable& ids, const Variable& positions,
//                const std::vector<Variable>& cache);
//
//   const ProgramGuard guard(&train, &startup);     // ids [N, L]: whole sequences
//   const Variable ids = layers::Data("ids", {-1, -1}, DType::kInt64);
//   const Variable logits = Gpt(ids, layers::TokenPositions(ids), {});
//
//   const ProgramGuard guard(&generate, &startup);  // ids [1, L]: a prompt, then token by token
//   const Variable ids = layers::Data("ids", {1, -1}, DType::kInt64);
//   const Variable length = layers::Data("length", {1}, DType::kInt64);  // tokens in the cache
//   const Variable logits =
//       Gpt(ids, layers::TokenPositions(ids, {.start = length, .limit = 64}),
//           layers::KeyValueCache({.layers = 4, .capacity = 64, .width = 128}));
//
// Both programs use the parameters of one scope. Parameters have the same names if the layers of
// both programs have names, or if both programs make the layers in the same order.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct TokenPositionsOptions {
  // [N], int64: the position of the first token of each sequence. Undefined: 0.
  Variable start = {};
  int64_t limit = 2147483647;  // positions are below that
};
// The positions of the tokens [N, L, …] in their sequences: [N, L], int64, start to start + L - 1.
// An op of Skiff's own. A run throws an Error (kOutOfRange) if a start is negative or a position
// isn't below the limit.
Variable TokenPositions(const Variable& tokens, const TokenPositionsOptions& options = {},
                        Site site = Site::current());

struct PositionEmbeddingOptions {
  int64_t rows = 0;         // the most positions; must be set
  int64_t width = 0;        // of a vector; must be set
  Variable positions = {};  // [N, L], int64; undefined: 0 to L - 1
  ParamAttr param_attr = {};
  DType dtype = DType::kFloat32;
  std::string name = {};
};
// The vectors of the positions of the tokens [N, L, …], rows of a table that is learned: [N, L,
// width]. Throws the Errors of Embedding. A run throws an Error (kOutOfRange) for a position that
// has no row.
Variable PositionEmbedding(const Variable& tokens, const PositionEmbeddingOptions& options,
                           Site site = Site::current());

struct SinusoidalEmbeddingOptions {
  int64_t width = 0;        // of a vector, even; must be set
  Variable positions = {};  // [N, L], int64; undefined: 0 to L - 1
};
// Vectors of the positions of the tokens [N, L, …] without a parameter (Vaswani et al. 2017,
// section 3.5): [N, L, width], float32, with sin(position / 10000^(2i / width)) in column 2i and
// the cosine in column 2i + 1. Throws an Error (kInvalidArgument) unless the width is even and
// positive.
Variable SinusoidalEmbedding(const Variable& tokens, const SinusoidalEmbeddingOptions& options,
                             Site site = Site::current());

struct RotaryEmbeddingOptions {
  int64_t heads = 1;
  Variable positions = {};  // [N, L], int64; undefined: 0 to L - 1
  float base = 10000.0f;
  // Pair i is the columns 2i and 2i + 1 of a head, as in RoFormer, GPT-J and Meta's Llama; else i
  // and i + d / 2, as in GPT-NeoX and in Hugging Face's Llama.
  bool interleaved = false;
};
// x [N, L, heads · d] with each pair of columns of a head turned by the angle
// position · base^(-2i / d) (Su et al. 2021), so that products of queries and keys depend on their
// distance. An op of Skiff's own. Throws an Error (kInvalidArgument) unless d is even.
Variable RotaryEmbedding(const Variable& x, const RotaryEmbeddingOptions& options = {},
                         Site site = Site::current());

struct KeyValueCacheOptions {
  int64_t layers = 1;
  int64_t sequences = 1;
  int64_t capacity = 0;  // tokens of a sequence; must be set
  int64_t width = 0;     // of all heads together; must be set
  DType dtype = DType::kFloat32;
  std::string name = "cache";
};
// Returns the keys and the values of each layer, [sequences, capacity, width]: persistable
// variables <name>_<layer>_keys and _values, for AttentionOptions and TransformerDecoderOptions.
// Only the caller knows how much of a cache is in use. So a new sequence begins with positions from
// 0, and nothing needs to be cleared. Throws an Error (kInvalidArgument) for a size below 1, and
// the Errors of CreatePersistable.
std::vector<Variable> KeyValueCache(const KeyValueCacheOptions& options,
                                    Site site = Site::current());
// Writes x [N, L, …] into a cache [N, capacity, …], in place, at the positions [N, L] of
// TokenPositions, which are consecutive in each sequence. Returns the cache. An op of Skiff's own.
// The first position counts, and is clamped to [0, capacity - L].
Variable WriteToCache(const Variable& cache, const Variable& x, const Variable& positions,
                      Site site = Site::current());

struct AttentionOptions {
  int64_t heads = 1;
  int64_t width = 0;  // of all heads together; 0: the width of the queries
  // Query i of Lq sees the keys up to i + Lk - Lq alone: a token sees itself and earlier tokens.
  bool causal = false;
  // Of weights, with upscale_in_train: the weights that remain are divided by 1 - dropout in
  // training.
  float dropout = 0.0f;
  bool is_test = false;
  // Added to the scores, so -1e9 hides a key: [N, heads, Lq, Lk], any of them but Lk may be 1.
  // Undefined: none. PaddingMask makes one. One that wants a gradient gets it, but is in the way of
  // fuse_attention.
  Variable mask = {};
  // [N], int64: how many keys, the first keys of each sequence, are seen. Undefined: all. Saves the
  // work that a mask would hide. A sequence with 0 keys gives zeros; a mask that hides all keys
  // gives the mean.
  Variable key_lengths = {};
  // Turns queries and keys by RotaryEmbedding. Only for one input.
  bool rotary = false;
  float rotary_base = 10000.0f;     // as in RotaryEmbeddingOptions
  bool rotary_interleaved = false;  // as in RotaryEmbeddingOptions
  // [N, L], int64: for rotary and for the cache alone; undefined: 0 to L - 1.
  Variable positions = {};
  // Keys and values of earlier tokens (KeyValueCache): two variables, or none. The keys and values
  // of x are written behind the earlier tokens, at `positions`, which must be set, and a token sees
  // all tokens up to its own position. Only for one input, and without key_lengths.
  std::vector<Variable> cache = {};
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
// projections, whose memory grows with the length, not with its square. If it is causal or has
// key_lengths or a cache, that instruction is already in the program, as the op
// multihead_attention, which Fluid doesn't have; it skips most of the work that is hidden.
//
// Error unless the inputs have rank 3 and a known width, heads divides the width, and 0 <= dropout
// < 1, for more queries than keys if it is causal, and for key_lengths of another dtype or rank.
// With that op, Minimize throws an Error (kUnimplemented) if the mask wants a gradient, and (with
// a cache) if keys or values want one.
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
