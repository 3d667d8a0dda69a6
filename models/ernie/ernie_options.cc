#include "models/ernie/ernie_options.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/json.h"
#include "models/common/network_sizes.h"

namespace skiff::models {
namespace {

struct Preset {
  const char* name;
  int64_t layers;
  int64_t hidden;
  int64_t heads;
};

// A head is 64 wide, and a feed-forward layer four times as wide as a token's vector.
constexpr Preset kPresets[] = {{"tiny", 2, 128, 2},   {"mini", 4, 256, 4},
                               {"small", 6, 384, 6},  {"medium", 6, 768, 12},
                               {"base", 12, 768, 12}, {"xbase", 20, 1024, 16}};

// Calls visit(key, option) for each key of the file.
template <typename Options, typename Visit>
void VisitOptions(Options& options, const Visit& visit) {
  visit("vocab_size", options.vocabulary);
  visit("hidden_size", options.hidden);
  visit("num_hidden_layers", options.layers);
  visit("num_attention_heads", options.heads);
  visit("intermediate_size", options.feed_forward);
  visit("max_position_embeddings", options.positions);
  visit("type_vocab_size", options.sentences);
  visit("task_type_vocab_size", options.tasks);
  visit("hidden_act", options.act);
  visit("hidden_dropout_prob", options.dropout);
  visit("attention_probs_dropout_prob", options.attention_dropout);
  visit("initializer_range", options.initializer_range);
  visit("layer_norm_eps", options.layer_norm_eps);
}

[[noreturn]] void Refuse(const nlohmann::json& value, const std::string& key,
                         const char* expected) {
  Throw(ErrorCode::kInvalidArgument, "configuration key \"", key, "\": expected ", expected,
        ", found ", QuotedJson(value));
}

void ReadValue(const nlohmann::json& value, const std::string& key, int64_t& option) {
  const std::optional<int64_t> number = JsonInteger(value);
  if (!number.has_value()) Refuse(value, key, "an integer");
  option = *number;
}

void ReadValue(const nlohmann::json& value, const std::string& key, float& option) {
  if (!value.is_number()) Refuse(value, key, "a number");
  option = value.get<float>();
}

void ReadValue(const nlohmann::json& value, const std::string& key, std::string& option) {
  if (!value.is_string()) Refuse(value, key, "a string");
  option = value.get<std::string>();
}

void CheckProbability(const char* name, float value) {
  SKIFF_ENFORCE(value >= 0 && value < 1, kInvalidArgument, "ERNIE: ", name, " = ", value,
                ": expected a probability in [0, 1)");
}

}  // namespace

std::vector<std::string> ErniePresetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

ErnieOptions ErniePreset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name != name) continue;
    ErnieOptions options;
    options.layers = preset.layers;
    options.hidden = preset.hidden;
    options.heads = preset.heads;
    options.feed_forward = 4 * preset.hidden;
    return options;
  }
  Throw(ErrorCode::kInvalidArgument, "preset \"", name, "\": expected one of ",
        Join(ErniePresetNames(), ", "));
}

ErnieOptions WithSizesOfData(const ErnieOptions& options, const ErnieDataSizes& data) {
  ErnieOptions sized = options;
  if (sized.vocabulary == kDecidedByData) sized.vocabulary = data.vocabulary;
  SKIFF_ENFORCE(sized.vocabulary == data.vocabulary, kInvalidArgument,
                "ERNIE: vocab_size = ", sized.vocabulary, ": expected the ", data.vocabulary,
                " tokens of the vocabulary");
  // More kinds of sentence ids than these texts have cost little, and other texts may need them.
  if (sized.sentences == kDecidedByData) {
    sized.sentences = std::max(ErnieOptions().sentences, data.sentences);
  }
  CheckSizes("ERNIE", {{"type_vocab_size", sized.sentences, data.sentences}});
  if (sized.tasks == kDecidedByData) sized.tasks = data.tasks;
  CheckSizes("ERNIE", {{"task_type_vocab_size", sized.tasks, data.tasks}});
  return sized;
}

void CheckErnieOptions(const ErnieOptions& options) {
  CheckSizes("ERNIE", {{"vocab_size", options.vocabulary},
                       {"hidden_size", options.hidden},
                       {"num_hidden_layers", options.layers, 1, kMostLayers},
                       {"num_attention_heads", options.heads},
                       {"intermediate_size", options.feed_forward},
                       {"max_position_embeddings", options.positions},
                       {"type_vocab_size", options.sentences},
                       {"task_type_vocab_size", options.tasks, 0}});
  SKIFF_ENFORCE(options.hidden % options.heads == 0, kInvalidArgument,
                "ERNIE: hidden_size = ", options.hidden, ": expected a multiple of the ",
                options.heads, " heads");
  SKIFF_ENFORCE(options.act == "gelu" || options.act == "gelu_new" || options.act == "relu",
                kInvalidArgument, "ERNIE: hidden_act = \"", options.act,
                "\": expected gelu, gelu_new or relu");
  CheckProbability("hidden_dropout_prob", options.dropout);
  CheckProbability("attention_probs_dropout_prob", options.attention_dropout);
  SKIFF_ENFORCE(options.initializer_range > 0 && std::isfinite(options.initializer_range),
                kInvalidArgument, "ERNIE: initializer_range = ", options.initializer_range,
                ": expected a positive number");
  // The op layer_norm takes no larger one.
  SKIFF_ENFORCE(options.layer_norm_eps > 0 && options.layer_norm_eps <= 1e-3f, kInvalidArgument,
                "ERNIE: layer_norm_eps = ", options.layer_norm_eps,
                ": expected a number in (0, 0.001]");
  SKIFF_ENFORCE(options.dtype == DType::kFloat32 || options.dtype == DType::kFloat64,
                kInvalidArgument, "ERNIE: dtype ", options.dtype, ": expected float32 or float64");
}

std::string ErnieOptionsToJson(const ErnieOptions& options) {
  nlohmann::ordered_json json;
  VisitOptions(options, [&](const char* key, const auto& option) { json[key] = option; });
  return json.dump(2) + "\n";
}

std::map<std::string, std::string> ErnieOptionsByKey(const ErnieOptions& options) {
  std::map<std::string, std::string> values;
  VisitOptions(options, [&](const char* key, const auto& option) {
    values[key] = nlohmann::json(option).dump();
  });
  return values;
}

std::map<std::string, std::string> EarlierErnieOptions() {
  constexpr const char* kNew = "layer_norm_eps";
  return {{kNew, ErnieOptionsByKey(ErnieOptions()).at(kNew)}};
}

ErnieOptions ErnieOptionsFromJson(std::string_view text, const ErnieOptions& defaults) {
  const nlohmann::json json = ParseJson(text, "configuration", ErrorCode::kInvalidArgument);
  SKIFF_ENFORCE(json.is_object(), kInvalidArgument,
                "expected a configuration as a JSON object, found ", QuotedJson(json));
  ErnieOptions options = defaults;
  VisitOptions(options, [&](const char* key, auto& option) {
    const auto found = json.find(key);
    if (found != json.end()) ReadValue(*found, key, option);
  });
  return options;
}

}  // namespace skiff::models
