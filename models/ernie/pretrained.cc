#include "models/ernie/pretrained.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/json.h"
#include "framework/text/vocabulary.h"
#include "models/ernie/ernie.h"
#include "models/ernie/fine_tuning.h"
#include "models/ernie/model_directory.h"

namespace skiff::models {
namespace {

constexpr int64_t kUsualLength = 128;
constexpr int64_t kUsualMasked = 20;
constexpr const char* kNextSentence = "next_sent_fc";
constexpr const char* kWordHead = "mask_lm_trans_fc.w_0";

// The rules of a Linear and of a layer norm: weight and bias.
void AddLinear(const std::string& pattern, const std::string& to, std::vector<NameRule>* rules) {
  rules->push_back({pattern + R"(\.weight)", to + ".w_0", NameChange::kTranspose});
  rules->push_back({pattern + R"(\.bias)", to + ".b_0"});
}

void AddNorm(const std::string& pattern, const std::string& to, std::vector<NameRule>* rules) {
  rules->push_back({pattern + R"(\.weight)", to + "_layer_norm_scale"});
  rules->push_back({pattern + R"(\.bias)", to + "_layer_norm_bias"});
}

nlohmann::json ParseConfig(std::string_view text) {
  nlohmann::json json = ParseJson(text, "configuration", ErrorCode::kInvalidArgument);
  SKIFF_ENFORCE(json.is_object(), kInvalidArgument,
                "expected a configuration as a JSON object, found ", QuotedJson(json));
  return json;
}

// Throws an Error if the configuration has the key with another value.
void CheckIfThere(const nlohmann::json& json, const char* key, const nlohmann::json& expected) {
  const auto found = json.find(key);
  SKIFF_ENFORCE(found == json.end() || *found == expected, kInvalidArgument, "configuration key \"",
                key, "\": found ", QuotedJson(*found), ", expected ", QuotedJson(expected),
                ": models/ernie has no other network");
}

// Names that transformers has for the same function.
void TakeCommonActs(nlohmann::json* json) {
  static const std::map<std::string, std::string> kActs = {
      {"gelu_python", "gelu"}, {"gelu_fast", "gelu_new"}, {"gelu_pytorch_tanh", "gelu_new"}};
  const auto act = json->find("hidden_act");
  if (act == json->end() || !act->is_string()) return;
  const auto found = kActs.find(act->get<std::string>());
  if (found != kActs.end()) *act = found->second;
}

// The defaults of transformers' BertConfig and ErnieConfig.
ErnieOptions HuggingFaceDefaults() {
  ErnieOptions options = ErniePreset("base");
  options.vocabulary = 30522;
  options.layer_norm_eps = 1e-12f;
  return options;
}

// ERNIE 2.0 has other names for the kinds of sentences.
ErnieOptions OptionsOfPaddle(const std::string& text) {
  nlohmann::json json = ParseConfig(text);
  if (json.contains("sent_type_vocab_size")) {
    json["type_vocab_size"] = json["sent_type_vocab_size"];
  }
  TakeCommonActs(&json);
  return ErnieOptionsFromJson(json.dump());
}

// The values of an attribute in all ops of a type.
template <typename T>
std::set<T> ValuesOf(const Program& program, const std::string& type, const char* name, T absent) {
  std::set<T> values;
  for (const auto& op : program.root()->ops()) {
    if (op->type == type) values.insert(op->template Attr<T>(name, absent));
  }
  return values;
}

// Takes from the program what no configuration has for sure.
void TakeFromProgram(const Program& program, const std::string& folder, ErnieOptions* options) {
  const std::set<float> epsilons = ValuesOf(program, "layer_norm", "epsilon", 1e-5f);
  SKIFF_ENFORCE(epsilons.size() == 1, kInvalidArgument, folder, ": the layer norms have ",
                epsilons.size(), " values of epsilon, expected one");
  options->layer_norm_eps = *epsilons.begin();
  const std::set<bool> approximate = ValuesOf(program, "gelu", "approximate", false);
  SKIFF_ENFORCE(approximate.size() <= 1, kInvalidArgument, folder,
                ": some gelu are approximate and some are not, expected all alike");
  if (!approximate.empty()) options->act = *approximate.begin() ? "gelu_new" : "gelu";
}

std::string FirstThere(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    if (PathExists(path)) return path;
  }
  Throw(ErrorCode::kNotFound, folder, ": has none of ", Join(names, ", "));
}

// Returns the tokens of a tokenizer.json, by id.
std::vector<std::string> TokensOfJson(const std::string& path) {
  // Other members may be large and of any depth.
  const nlohmann::json json =
      ParseJson(ReadFile(path), path, ErrorCode::kDataLoss, /*levels=*/32,
                [](int depth, const std::string& key) {
                  return depth == 1 ? key == "model" : depth > 2 || key == "type" || key == "vocab";
                });
  const nlohmann::json model = json.is_object() && json.contains("model") ? json["model"] : nullptr;
  const bool is_word_piece = model.is_object() &&
                             model.value("type", nlohmann::json()) == "WordPiece" &&
                             model.contains("vocab") && model["vocab"].is_object();
  SKIFF_ENFORCE(is_word_piece, kInvalidArgument, path,
                ": expected a model of the type WordPiece with a vocab");
  std::vector<std::string> tokens(model["vocab"].size());
  for (const auto& [token, value] : model["vocab"].items()) {
    const std::optional<int64_t> id = JsonInteger(value);
    const bool is_new = id && *id >= 0 && *id < static_cast<int64_t>(tokens.size()) &&
                        tokens[static_cast<size_t>(*id)].empty();
    SKIFF_ENFORCE(is_new, kDataLoss, path, ": token \"", token, "\" has the id ", QuotedJson(value),
                  ", expected each of 0 to ", tokens.size() - 1, " once");
    tokens[static_cast<size_t>(*id)] = token;
  }
  return tokens;
}

std::vector<std::string> ReadTokens(const std::string& path) {
  if (path.ends_with(".json")) return TokensOfJson(path);
  const text::Vocabulary vocabulary = text::ReadVocabulary(path);
  std::vector<std::string> tokens;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    tokens.push_back(vocabulary.token(static_cast<text::TokenId>(id)));
  }
  return tokens;
}

// Networks may have more rows than tokens, so that sizes are round.
text::Vocabulary VocabularyOf(const ErnieConversion& conversion, const std::string& folder,
                              const ErnieOptions& options) {
  const std::string path =
      conversion.vocabulary.empty()
          ? FirstThere(folder, {"vocab.txt", "vocabulary.txt", "tokenizer.json"})
          : conversion.vocabulary;
  std::vector<std::string> tokens = ReadTokens(path);
  const auto rows = static_cast<size_t>(options.vocabulary);
  SKIFF_ENFORCE(tokens.size() <= rows, kInvalidArgument, path, ": has ", tokens.size(),
                " tokens, expected at most the ", rows, " of the network");
  while (tokens.size() < rows) tokens.push_back(StrCat("[no token ", tokens.size(), "]"));
  return text::Vocabulary(std::move(tokens), path);
}

// Appends what the weights are for.
void Build(const ErnieOptions& options, int64_t length, const NamedShapes& shapes,
           EmptyModel* model) {
  const ProgramGuard guard(&model->main, &model->startup);
  const ErnieInputs inputs = ErnieFeeds(options, length);
  const Variable encoded = ErnieEncoder(inputs, options);
  model->feeds = InputNames(inputs, options);
  if (shapes.contains(kWordHead)) {
    const Variable places =
        layers::Data("masked_positions", {-1, std::min(length, kUsualMasked)}, DType::kInt64);
    model->feeds.push_back(places.name());
    model->fetches.push_back(
        ErnieWordScores(encoded, layers::Reshape(places, {-1}), options).name());
  }
  model->fetches.push_back(encoded.name());
  if (!shapes.contains(StrCat(kErniePooler, ".w_0"))) return;
  const Variable pooled = ErniePool(encoded, options);
  model->fetches.push_back(pooled.name());
  if (shapes.contains(StrCat(kNextSentence, ".w_0"))) {
    model->fetches.push_back(ErnieSequenceScores(pooled, 2, kNextSentence, options).name());
  }
  const auto classifier = shapes.find(StrCat(kErnieClassifier, ".w_0"));
  if (classifier == shapes.end() || classifier->second.size() != 2) return;
  const Variable scores =
      ErnieSequenceScores(pooled, classifier->second[1], kErnieClassifier, options);
  model->fetches.push_back(layers::Softmax(scores).name());
}

// What a source's folder says about the network.
struct Described {
  PretrainedFiles files;
  ErnieOptions options;
  std::vector<NameRule> rules;
};

Described DescribePaddle(const ErnieConversion& conversion) {
  Described described{.files = FindPaddleModel(conversion.source)};
  const std::string& folder = described.files.folder;
  const std::string config = FirstThere(folder, {"config.json", "ernie_config.json"});
  described.options = OptionsOfPaddle(ReadFile(config));
  Scope scope;
  TakeFromProgram(*LoadInferenceModel(folder, &scope).program, folder, &described.options);
  const bool has_tasks =
      scope.Find("task_embedding") != nullptr || scope.Find("embedding_3.w_0") != nullptr;
  if (!has_tasks) described.options.tasks = 0;
  CheckErnieOptions(described.options);
  described.rules =
      InTurn(conversion.rename, PaddleErnieRules(described.options.layers, has_tasks));
  return described;
}

Described DescribeHuggingFace(const ErnieConversion& conversion) {
  Described described{.files = FindSafetensors(conversion.source)};
  const std::string config = JoinPath(described.files.folder, "config.json");
  try {
    described.options = ErnieOptionsOfHuggingFace(ReadFile(config), conversion.from);
  } catch (const Error& error) {
    throw error.WithContext(config);
  }
  described.rules = InTurn(conversion.rename, HuggingFaceErnieRules());
  return described;
}

// Returns a line about what Skiff's programs do in another way, or nothing.
std::string NoteOnCase(const std::string& folder) {
  const std::string path = JoinPath(folder, "tokenizer_config.json");
  if (!PathExists(path)) return "";
  const nlohmann::json json = ParseJson(ReadFile(path), path);
  if (!json.is_object() || json.value("do_lower_case", nlohmann::json()) != false) return "";
  return StrCat("warning: ", path, ": do_lower_case is false, but the programs of models/ernie ",
                "make all letters small\n");
}

}  // namespace

std::vector<NameRule> HuggingFaceErnieRules() {
  std::vector<NameRule> rules = {
      // Names of versions before 2019.
      {R"((.*)\.gamma)", "$1.weight"},
      {R"((.*)\.beta)", "$1.bias"},
      // A model with heads has the encoder as a part.
      {R"((?:bert|ernie)\.(.*))", "$1"},
      // Buffers: the numbers from 0 on, and zeros.
      {.pattern = R"(embeddings\.(?:position_ids|token_type_ids))", .change = NameChange::kDrop},
      {R"(embeddings\.word_embeddings\.weight)", "word_embedding"},
      {R"(embeddings\.position_embeddings\.weight)", "pos_embedding"},
      {R"(embeddings\.token_type_embeddings\.weight)", "sent_embedding"},
      {R"(embeddings\.task_type_embeddings\.weight)", "task_embedding"},
      {R"(cls\.predictions\.decoder\.weight)", "word_embedding", NameChange::kTie},
      {R"(cls\.predictions\.decoder\.bias)", "mask_lm_out_fc.b_0", NameChange::kTie},
      {R"(cls\.predictions\.bias)", "mask_lm_out_fc.b_0"}};
  const std::string layer = R"(encoder\.layer\.(\d+)\.)";
  AddNorm(R"(embeddings\.LayerNorm)", "pre_encoder", &rules);
  AddLinear(layer + R"(attention\.self\.(query|key|value))",
            "encoder_layer_$1_multi_head_att_$2_fc", &rules);
  AddLinear(layer + R"(attention\.output\.dense)", "encoder_layer_$1_multi_head_att_output_fc",
            &rules);
  AddNorm(layer + R"(attention\.output\.LayerNorm)", "encoder_layer_$1_post_att", &rules);
  AddLinear(layer + R"(intermediate\.dense)", "encoder_layer_$1_ffn_fc_0", &rules);
  AddLinear(layer + R"(output\.dense)", "encoder_layer_$1_ffn_fc_1", &rules);
  AddNorm(layer + R"(output\.LayerNorm)", "encoder_layer_$1_post_ffn", &rules);
  AddLinear(R"(pooler\.dense)", kErniePooler, &rules);
  AddLinear(R"(cls\.predictions\.transform\.dense)", "mask_lm_trans_fc", &rules);
  AddNorm(R"(cls\.predictions\.transform\.LayerNorm)", "mask_lm_trans", &rules);
  AddLinear(R"(cls\.seq_relationship)", kNextSentence, &rules);
  AddLinear("classifier", kErnieClassifier, &rules);
  return rules;
}

std::vector<NameRule> PaddleErnieRules(int64_t layers, bool has_tasks) {
  std::vector<NameRule> rules;
  const auto add = [&](const std::string& type, int64_t number, const std::string& to,
                       const std::vector<const char*>& endings) {
    for (size_t i = 0; i < endings.size(); ++i) {
      const char* parameter = i == 0 ? "w_0" : "b_0";
      rules.push_back({StrCat(type, "_", number, R"(\.)", parameter), to + endings[i]});
    }
  };
  const auto add_linear = [&](int64_t number, const std::string& to) {
    add("linear", number, to, {".w_0", ".b_0"});
  };
  const auto add_norm = [&](int64_t number, const std::string& to) {
    add("layer_norm", number, to, {"_layer_norm_scale", "_layer_norm_bias"});
  };
  add("embedding", 0, "word_embedding", {""});
  add("embedding", 1, "pos_embedding", {""});
  add("embedding", 2, "sent_embedding", {""});
  if (has_tasks) add("embedding", 3, "task_embedding", {""});
  add_norm(0, "pre_encoder");
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = StrCat("encoder_layer_", i);
    int64_t linear = 6 * i;
    for (const char* part : {"query", "key", "value", "output"}) {
      add_linear(linear++, StrCat(layer, "_multi_head_att_", part, "_fc"));
    }
    add_linear(linear++, layer + "_ffn_fc_0");
    add_linear(linear++, layer + "_ffn_fc_1");
    add_norm(2 * i + 1, layer + "_post_att");
    add_norm(2 * i + 2, layer + "_post_ffn");
  }
  add_linear(6 * layers, kErniePooler);
  return rules;
}

ErnieOptions ErnieOptionsOfHuggingFace(std::string_view text, ErnieSource from) {
  const bool is_bert = from == ErnieSource::kHuggingFaceBert;
  nlohmann::json json = ParseConfig(text);
  CheckIfThere(json, "model_type", is_bert ? "bert" : "ernie");
  CheckIfThere(json, "position_embedding_type", "absolute");
  CheckIfThere(json, "is_decoder", false);
  CheckIfThere(json, "add_cross_attention", false);
  TakeCommonActs(&json);
  const bool has_tasks = !is_bert && json.value("use_task_id", nlohmann::json()) == true;
  ErnieOptions defaults = HuggingFaceDefaults();
  defaults.tasks = 3;
  ErnieOptions options = ErnieOptionsFromJson(json.dump(), defaults);
  if (!has_tasks) options.tasks = 0;
  CheckErnieOptions(options);
  return options;
}

std::string ConvertErnie(const ErnieConversion& conversion) {
  const Described described = conversion.from == ErnieSource::kPaddle
                                  ? DescribePaddle(conversion)
                                  : DescribeHuggingFace(conversion);
  const ErnieOptions& options = described.options;
  const text::Vocabulary vocabulary = VocabularyOf(conversion, described.files.folder, options);
  EmptyModel model;
  Build(options,
        conversion.length == 0 ? std::min(kUsualLength, options.positions) : conversion.length,
        RuledShapes(described.files.weights, described.rules), &model);
  model.files = ErnieModelFiles(options, vocabulary);
  const std::string report =
      WriteConverted(described.files.weights, described.rules, conversion, model);
  return StrCat(report, NoteOnCase(described.files.folder),
                "fine-tune: bazel-bin/models/ernie/finetune --data=texts.tsv --initial_model=",
                conversion.output, "\n");
}

}  // namespace skiff::models
