#include "models/ernie/network_flags.h"

#include <gflags/gflags.h>

#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/command_line/command_line.h"
#include "framework/io/file.h"

DEFINE_string(preset, "tiny",
              "Sizes of the network: tiny (2 layers of width 128), mini (4, 256), small (6, 384), "
              "medium (6, 768), base (12, 768) or xbase (20, 1024).");
DEFINE_string(
    config, "",
    "JSON file of sizes, with the usual keys (hidden_size, num_hidden_layers, …); what it "
    "says takes the place of the preset's, and flags for single sizes take its place.");
DEFINE_int64(layers, 0, "Layers of the network. 0: as the preset or --config says.");
DEFINE_int64(hidden, 0, "Width of the network. 0: as the preset or --config says.");
DEFINE_int64(heads, 0, "Heads of attention in a layer. 0: as the preset or --config says.");
DEFINE_int64(feed_forward, 0,
             "Width of the feed-forward layers. 0: as the preset or --config says.");
DEFINE_int64(
    positions, 0,
    "Most tokens of an input that the network can learn from. 0: 512, or as --config says.");
DEFINE_string(
    act, "",
    "Of the feed-forward layers: gelu, gelu_new (the approximation by tanh) or relu. Empty: "
    "gelu, or as --config says.");
DEFINE_double(initializer_range, 0,
              "Standard deviation of initial weights. 0: 0.02, or as --config says.");
DEFINE_double(layer_norm_eps, 0,
              "What layer norms add to variances. 0: 1e-5, or as --config says.");
DEFINE_double(
    dropout, -1,
    "Of embeddings, layers and attention. -1: 0.1, or as --config or --initial_model says.");
DEFINE_double(attention_dropout, -1, "Of attention alone. -1: as elsewhere.");

namespace skiff::models {
namespace {

constexpr std::pair<const int64_t*, int64_t ErnieOptions::*> kSizes[] = {
    {&FLAGS_layers, &ErnieOptions::layers},
    {&FLAGS_hidden, &ErnieOptions::hidden},
    {&FLAGS_heads, &ErnieOptions::heads},
    {&FLAGS_feed_forward, &ErnieOptions::feed_forward},
    {&FLAGS_positions, &ErnieOptions::positions}};

ErnieOptions ReadOptions(const ErnieOptions& defaults, const ErnieDataSizes& data) {
  if (FLAGS_config.empty()) return WithSizesOfData(defaults, data);
  const std::string json = ReadFile(FLAGS_config);
  try {
    return WithSizesOfData(ErnieOptionsFromJson(json, defaults), data);
  } catch (const Error& error) {
    throw error.WithContext(FLAGS_config);
  }
}

void SetDropout(ErnieOptions* options) {
  if (FLAGS_dropout != -1) {
    options->dropout = options->attention_dropout = static_cast<float>(FLAGS_dropout);
  }
  if (FLAGS_attention_dropout != -1) {
    options->attention_dropout = static_cast<float>(FLAGS_attention_dropout);
  }
}

}  // namespace

ErnieOptions ErnieOptionsFromFlags(const ErnieDataSizes& data) {
  ErnieOptions defaults = ErniePreset(FLAGS_preset);
  defaults.vocabulary = defaults.sentences = defaults.tasks = kDecidedByData;
  ErnieOptions options = ReadOptions(defaults, data);
  for (const auto& [flag, option] : kSizes) {
    if (*flag != 0) options.*option = *flag;
  }
  if (!FLAGS_act.empty()) options.act = FLAGS_act;
  if (FLAGS_initializer_range != 0) {
    options.initializer_range = static_cast<float>(FLAGS_initializer_range);
  }
  if (FLAGS_layer_norm_eps != 0) {
    options.layer_norm_eps = static_cast<float>(FLAGS_layer_norm_eps);
  }
  SetDropout(&options);
  return options;
}

ErnieOptions WithDropoutFromFlags(const ErnieOptions& of_model) {
  RefuseFlags({"preset", "config", "layers", "hidden", "heads", "feed_forward", "positions", "act",
               "initializer_range", "layer_norm_eps"},
              "the network is that of --initial_model");
  ErnieOptions options = of_model;
  SetDropout(&options);
  return options;
}

}  // namespace skiff::models
