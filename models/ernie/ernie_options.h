// The sizes of an ERNIE network: presets, JSON files, checks. And tasks about sentences.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/dtype.h"

namespace skiff::models {

struct ErnieOptions {
  int64_t vocabulary = 0;  // number of tokens; must be set
  int64_t hidden = 128;    // width of a token's vector
  int64_t layers = 2;
  int64_t heads = 2;  // of attention, in each layer; divides `hidden`
  int64_t feed_forward = 512;
  int64_t positions = 512;  // the longest sequence
  int64_t sentences = 2;    // kinds of sentence (segment) ids
  int64_t tasks = 0;        // kinds of task ids; 0: no task embedding
  // Of the feed-forward layers: gelu, gelu_new (the approximation by tanh) or relu.
  std::string act = "gelu";
  float dropout = 0.1f;  // of embeddings and of each sub-layer's output
  float attention_dropout = 0.1f;
  float initializer_range = 0.02f;  // standard deviation of initial weights
  // Of all layer norms. Published ERNIE 1.0 has 1e-5, BERT 1e-12.
  float layer_norm_eps = 1e-5f;
  // The dtype of parameters and of all values computed from parameters: float32 or float64. No file
  // has it.
  DType dtype = DType::kFloat32;

  friend bool operator==(const ErnieOptions&, const ErnieOptions&) = default;
};

// A task about the order of sentences.
struct SentenceTaskShape {
  std::string name;  // "next_sentence": the task of BERT; starts the name of the metric
  // The first task_id of the sequences of this task. Not read if there is only one task.
  int64_t id = 0;
  int64_t classes = 2;
};

// The names of presets, the smallest first: tiny (2 layers, 128 wide), mini (4, 256), small
// (6, 384), medium (6, 768), base (12, 768) and xbase (20, 1024).
std::vector<std::string> ErniePresetNames();
// Returns a preset without a vocabulary. Throws an Error (kInvalidArgument) that lists the names if
// there is none of this name.
ErnieOptions ErniePreset(std::string_view name);

// The data's requirements for a network.
struct ErnieDataSizes {
  int64_t vocabulary = 0;  // number of tokens
  int64_t sentences = 1;   // kinds of sentence ids
  int64_t tasks = 0;       // kinds of task ids; 0: no task embedding
};

// In place of a number of tokens, of kinds of sentence ids or of task ids: the data decide.
inline constexpr int64_t kDecidedByData = std::numeric_limits<int64_t>::min();

// Returns the options with numbers in place of kDecidedByData. Throws an Error (kInvalidArgument)
// for another number of tokens than the data's, and for fewer kinds of ids than the data have.
ErnieOptions WithSizesOfData(const ErnieOptions& options, const ErnieDataSizes& data);

// Throws an Error (kInvalidArgument) that names the first option out of range: sizes as CheckSizes
// (models/common/network_sizes.h).
void CheckErnieOptions(const ErnieOptions& options);

// The keys are those of published configurations: vocab_size, hidden_size, num_hidden_layers,
// num_attention_heads, intermediate_size, max_position_embeddings, type_vocab_size,
// task_type_vocab_size, hidden_act, hidden_dropout_prob, attention_probs_dropout_prob,
// initializer_range and layer_norm_eps.
std::string ErnieOptionsToJson(const ErnieOptions& options);
// The same, each value by its key.
std::map<std::string, std::string> ErnieOptionsByKey(const ErnieOptions& options);
// The keys that earlier versions didn't have, with the values that they computed with.
std::map<std::string, std::string> EarlierErnieOptions();
// Keys that are missing keep their values in `defaults`; keys that aren't in the list are ignored,
// as published files have more. Throws an Error (kInvalidArgument), which names the key, for a
// value of another type, for text other than a JSON object, and the Errors of ParseJson.
ErnieOptions ErnieOptionsFromJson(std::string_view json, const ErnieOptions& defaults = {});

}  // namespace skiff::models
