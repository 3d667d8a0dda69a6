#include "models/ernie/pretrained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/name_rules.h"
#include "framework/io/safetensors.h"
#include "framework/tensor/scope.h"
#include "models/ernie/model_directory.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kConfig = R"({"model_type": "bert", "vocab_size": 9, "hidden_size": 4,
  "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 6,
  "max_position_embeddings": 8, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
  "position_embedding_type": "absolute", "is_decoder": false, "hidden_act": "gelu"})";

// A tensor whose elements no other tensor of the model has.
Tensor Numbered(const Shape& shape) {
  static float next = 0;
  Tensor tensor(shape, DType::kFloat32);
  for (float& x : tensor.values<float>()) x = ++next;
  return tensor;
}

void AddLinear(const std::string& name, int64_t out, int64_t in, TensorMap* tensors) {
  tensors->emplace(name + ".weight", Numbered({out, in}));
  tensors->emplace(name + ".bias", Numbered({out}));
}

// `weight`, `bias`: the names of scale and shift in the version that wrote the model.
void AddNorm(const std::string& name, TensorMap* tensors, const char* weight = "weight",
             const char* bias = "bias") {
  tensors->emplace(name + "." + weight, Numbered({4}));
  tensors->emplace(name + "." + bias, Numbered({4}));
}

// transformers' BertModel of kConfig.
TensorMap Encoder() {
  TensorMap tensors = {{"embeddings.word_embeddings.weight", Numbered({9, 4})},
                       {"embeddings.position_embeddings.weight", Numbered({8, 4})},
                       {"embeddings.token_type_embeddings.weight", Numbered({2, 4})},
                       {"embeddings.position_ids", Tensor({1, 8}, DType::kInt64)}};
  AddNorm("embeddings.LayerNorm", &tensors, "gamma", "beta");
  for (const std::string layer : {"encoder.layer.0.", "encoder.layer.1."}) {
    for (const char* part : {"query", "key", "value"}) {
      AddLinear(layer + "attention.self." + part, 4, 4, &tensors);
    }
    AddLinear(layer + "attention.output.dense", 4, 4, &tensors);
    AddNorm(layer + "attention.output.LayerNorm", &tensors);
    AddLinear(layer + "intermediate.dense", 6, 4, &tensors);
    AddLinear(layer + "output.dense", 4, 6, &tensors);
    AddNorm(layer + "output.LayerNorm", &tensors);
  }
  AddLinear("pooler.dense", 4, 4, &tensors);
  return tensors;
}

// BertForPreTraining.
TensorMap WithHeads() {
  TensorMap tensors;
  for (auto& [name, tensor] : Encoder()) tensors.emplace("bert." + name, tensor);
  AddLinear("cls.predictions.transform.dense", 4, 4, &tensors);
  AddNorm("cls.predictions.transform.LayerNorm", &tensors);
  tensors.emplace("cls.predictions.bias", Numbered({9}));
  tensors.emplace("cls.predictions.decoder.weight",
                  tensors.at("bert.embeddings.word_embeddings.weight"));
  tensors.emplace("cls.predictions.decoder.bias", tensors.at("cls.predictions.bias"));
  AddLinear("cls.seq_relationship", 2, 4, &tensors);
  return tensors;
}

std::vector<float> Transposed(const Tensor& matrix) {
  const auto rows = static_cast<size_t>(matrix.shape().dims()[0]);
  const auto columns = static_cast<size_t>(matrix.shape().dims()[1]);
  const std::vector<float> from = matrix.ToVector<float>();
  std::vector<float> to;
  for (size_t j = 0; j < columns; ++j) {
    for (size_t i = 0; i < rows; ++i) to.push_back(from[i * columns + j]);
  }
  return to;
}

class PretrainedErnieTest : public testing::Test {
 protected:
  PretrainedErnieTest() {
    CreateNewDirectory(source_);
    WriteFile("config.json", kConfig);
    WriteFile("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n");
  }

  void WriteFile(const std::string& name, const std::string& text) {
    AtomicWriteFile(JoinPath(source_, name), text);
  }
  void WriteWeights(const TensorMap& tensors) {
    WriteSafetensors(JoinPath(source_, "model.safetensors"), tensors);
  }
  std::string Convert() { return ConvertErnie(conversion_); }
  std::string Refusal() {
    const std::string text = ErrorText([&] { Convert(); });
    EXPECT_FALSE(PathExists(output_)) << "no half folder";
    return text;
  }
  std::string ConfigRefusal(const std::string& from, const std::string& to) {
    std::string config = kConfig;
    config.replace(config.find(from), from.size(), to);
    WriteFile("config.json", config);
    return Refusal();
  }
  // The converted model's values.
  std::vector<float> Values(const std::string& parameter) {
    Scope scope;
    LoadInferenceModel(output_, &scope);
    return scope.Get(parameter).ToVector<float>();
  }

  TempDirectory directory_;
  std::string source_ = directory_ / "source";
  std::string output_ = directory_ / "output";
  ErnieConversion conversion_{{.source = source_, .output = output_}};
};

TEST_F(PretrainedErnieTest, EncodersGetOurNames) {
  const TensorMap tensors = Encoder();
  WriteWeights(tensors);
  const std::string report = Convert();
  EXPECT_THAT(report, StartsWith("taken: 39\nmissing: 0\nunused: 0\ndropped: 1\n"));
  const auto equal = [&](const char* ours, const char* theirs) {
    EXPECT_EQ(Values(ours), tensors.at(theirs).ToVector<float>()) << ours;
  };
  const auto transposed = [&](const char* ours, const char* theirs) {
    EXPECT_EQ(Values(ours), Transposed(tensors.at(theirs))) << ours;
  };
  equal("word_embedding", "embeddings.word_embeddings.weight");
  equal("pos_embedding", "embeddings.position_embeddings.weight");
  equal("sent_embedding", "embeddings.token_type_embeddings.weight");
  equal("pre_encoder_layer_norm_scale", "embeddings.LayerNorm.gamma");
  equal("pre_encoder_layer_norm_bias", "embeddings.LayerNorm.beta");
  transposed("encoder_layer_1_multi_head_att_key_fc.w_0",
             "encoder.layer.1.attention.self.key.weight");
  equal("encoder_layer_1_multi_head_att_value_fc.b_0", "encoder.layer.1.attention.self.value.bias");
  transposed("encoder_layer_0_multi_head_att_output_fc.w_0",
             "encoder.layer.0.attention.output.dense.weight");
  equal("encoder_layer_0_post_att_layer_norm_scale",
        "encoder.layer.0.attention.output.LayerNorm.weight");
  transposed("encoder_layer_1_ffn_fc_0.w_0", "encoder.layer.1.intermediate.dense.weight");
  transposed("encoder_layer_1_ffn_fc_1.w_0", "encoder.layer.1.output.dense.weight");
  equal("encoder_layer_1_post_ffn_layer_norm_bias", "encoder.layer.1.output.LayerNorm.bias");
  transposed("pooled_fc.w_0", "pooler.dense.weight");
}

TEST_F(PretrainedErnieTest, TheFolderSaysWhatTheNetworkIs) {
  WriteWeights(Encoder());
  Convert();
  const text::Vocabulary vocabulary = ReadErnieVocabulary(output_);
  EXPECT_EQ(vocabulary.size(), 9) << "the network has rows for no token";
  EXPECT_EQ(vocabulary.token(6), "b");
  const ErnieOptions options = ReadErnieOptions(output_, vocabulary);
  EXPECT_EQ(options.layer_norm_eps, 1e-12f);
  EXPECT_EQ(options.hidden, 4);
  EXPECT_EQ(options.tasks, 0);
  Scope scope;
  const InferenceModel model = LoadInferenceModel(output_, &scope);
  EXPECT_EQ(model.fetch_names.size(), 2u) << "tokens and the pooled vector";
}

TEST_F(PretrainedErnieTest, HeadsComeAlong) {
  WriteWeights(WithHeads());
  EXPECT_THAT(Convert(), StartsWith("taken: 46\nmissing: 0\nunused: 0\ndropped: 3\n"));
  Scope scope;
  const InferenceModel model = LoadInferenceModel(output_, &scope);
  EXPECT_EQ(model.fetch_names.size(), 4u);
  EXPECT_THAT(model.feed_names, ElementsAre("token_ids", "sentence_ids", "position_ids",
                                            "input_mask", "masked_positions"));
}

TEST_F(PretrainedErnieTest, UntiedWordsAreRefused) {
  TensorMap tensors = WithHeads();
  tensors["cls.predictions.decoder.weight"] = Numbered({9, 4});
  WriteWeights(tensors);
  EXPECT_THAT(Refusal(), HasSubstr("tensor \"cls.predictions.decoder.weight\" differs from"));
}

TEST_F(PretrainedErnieTest, ErniesMayHaveTaskEmbeddings) {
  std::string config = kConfig;
  config.replace(config.find("\"bert\""), 6, R"("ernie", "use_task_id": true)");
  WriteFile("config.json", config);
  TensorMap tensors = Encoder();
  tensors.emplace("embeddings.task_type_embeddings.weight", Numbered({3, 4}));
  WriteWeights(tensors);
  EXPECT_THAT(Refusal(), HasSubstr("\"model_type\": found \"ernie\", expected \"bert\""));
  conversion_.from = ErnieSource::kHuggingFaceErnie;
  Convert();
  EXPECT_EQ(ReadErnieOptions(output_, ReadErnieVocabulary(output_)).tasks, 3);
}

TEST_F(PretrainedErnieTest, WhatLacksAndWhatIsLeftIsListed) {
  TensorMap tensors = Encoder();
  tensors.erase("encoder.layer.1.output.dense.bias");
  tensors.emplace("encoder.layer.2.output.dense.bias", Numbered({4}));
  WriteWeights(tensors);
  EXPECT_THAT(Refusal(), HasSubstr("the model lacks the parameters encoder_layer_1_ffn_fc_1.b_0 [4]"
                                   ": expected all: the model has another configuration, or other "
                                   "names; it has what becomes no parameter: "
                                   "encoder.layer.2.output.dense.bias [4]"));
  conversion_.allow_partial = true;
  EXPECT_THAT(Convert(), StartsWith("taken: 38\nmissing: 1\n  encoder_layer_1_ffn_fc_1.b_0 [4]\n"
                                    "unused: 1\n  encoder.layer.2.output.dense.bias [4]\n"));
}

TEST_F(PretrainedErnieTest, UsersRulesComeFirst) {
  TensorMap tensors;
  for (auto& [name, tensor] : Encoder()) tensors.emplace("student." + name, tensor);
  WriteWeights(tensors);
  conversion_.rename = {{R"(student\.(.*))", "bert.$1"}};
  EXPECT_THAT(Convert(), StartsWith("taken: 39\nmissing: 0\nunused: 0\n"));
}

TEST_F(PretrainedErnieTest, OtherShapesAreRefusedWhateverIsAllowed) {
  TensorMap tensors = Encoder();
  tensors["encoder.layer.0.output.dense.weight"] = Numbered({4, 7});
  WriteWeights(tensors);
  conversion_.allow_partial = true;
  EXPECT_THAT(Refusal(),
              HasSubstr("(tensor \"encoder.layer.0.output.dense.weight\", transposed) is "
                        "float32[7, 4], expected float32[6, 4]"));
}

TEST_F(PretrainedErnieTest, NetworksThatWeDoNotHaveAreRefused) {
  WriteWeights(Encoder());
  EXPECT_THAT(ConfigRefusal("\"absolute\"", "\"relative_key\""),
              HasSubstr("\"position_embedding_type\": found \"relative_key\", expected"));
  EXPECT_THAT(ConfigRefusal("\"is_decoder\": false", "\"is_decoder\": true"),
              HasSubstr("\"is_decoder\": found true, expected false"));
  EXPECT_THAT(ConfigRefusal("\"gelu\"", "\"silu\""), HasSubstr("hidden_act = \"silu\""));
  EXPECT_THAT(ConfigRefusal("\"bert\"", "\"roberta\""), HasSubstr("found \"roberta\""));
}

TEST_F(PretrainedErnieTest, OtherNamesOfTheApproximationAreOne) {
  WriteWeights(Encoder());
  std::string config = kConfig;
  config.replace(config.find("\"gelu\""), 6, "\"gelu_pytorch_tanh\"");
  WriteFile("config.json", config);
  Convert();
  EXPECT_EQ(ReadErnieOptions(output_, ReadErnieVocabulary(output_)).act, "gelu_new");
}

TEST_F(PretrainedErnieTest, VocabulariesMayBeInATokenizer) {
  WriteWeights(Encoder());
  conversion_.vocabulary = JoinPath(source_, "tokenizer.json");
  WriteFile("tokenizer.json", R"({"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[UNK]": 1,
      "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "z": 5}}, "normalizer": {"type": "BertNormalizer"}})");
  Convert();
  EXPECT_EQ(ReadErnieVocabulary(output_).token(5), "z");
}

TEST_F(PretrainedErnieTest, VocabulariesThatDoNotFitAreRefused) {
  WriteWeights(Encoder());
  conversion_.vocabulary = JoinPath(source_, "tokenizer.json");
  WriteFile("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {}}})");
  EXPECT_THAT(Refusal(), HasSubstr("expected a model of the type WordPiece"));
  WriteFile("tokenizer.json", R"({"model": {"type": "WordPiece", "vocab": {"a": 0, "b": 2}}})");
  EXPECT_THAT(Refusal(), HasSubstr("token \"b\" has the id 2, expected each of 0 to 1 once"));
  conversion_.vocabulary = "";
  WriteFile("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\n");
  EXPECT_THAT(Refusal(), HasSubstr("has 10 tokens, expected at most the 9 of the network"));
}

TEST(PaddleErnieRules, CountTheLayersInTheOrderOfPaddle) {
  const auto ruled = [](const char* name) {
    const std::vector<NameRule> rules = PaddleErnieRules(/*layers=*/2, /*has_tasks=*/true);
    return ApplyRules(rules, {name})[0].name;
  };
  EXPECT_EQ(ruled("embedding_3.w_0"), "task_embedding");
  EXPECT_EQ(ruled("layer_norm_0.b_0"), "pre_encoder_layer_norm_bias");
  EXPECT_EQ(ruled("linear_1.w_0"), "encoder_layer_0_multi_head_att_key_fc.w_0");
  EXPECT_EQ(ruled("linear_9.b_0"), "encoder_layer_1_multi_head_att_output_fc.b_0");
  EXPECT_EQ(ruled("linear_11.w_0"), "encoder_layer_1_ffn_fc_1.w_0");
  EXPECT_EQ(ruled("layer_norm_3.w_0"), "encoder_layer_1_post_att_layer_norm_scale");
  EXPECT_EQ(ruled("linear_12.w_0"), "pooled_fc.w_0");
}

TEST_F(PretrainedErnieTest, InferenceModelsKeepPublishedNames) {
  WriteWeights(Encoder());
  Convert();
  const std::vector<float> pooler = Values("pooled_fc.w_0");
  // A configuration that doesn't say what the program knows.
  std::string config = kConfig;
  config.replace(config.find("\"layer_norm_eps\""), 16, "\"other\"");
  AtomicWriteFile(JoinPath(output_, "config.json"), config);
  conversion_.from = ErnieSource::kPaddle;
  conversion_.source = output_;
  conversion_.output = output_ = directory_ / "again";
  EXPECT_THAT(Convert(), StartsWith("taken: 39\nmissing: 0\nunused: 0\ndropped: 0\n"));
  EXPECT_EQ(Values("pooled_fc.w_0"), pooler);
  EXPECT_EQ(ReadErnieOptions(output_, ReadErnieVocabulary(output_)).layer_norm_eps, 1e-12f);
}

TEST_F(PretrainedErnieTest, WhatIsThereStays) {
  WriteWeights(Encoder());
  Convert();
  EXPECT_THAT(ErrorText([&] { Convert(); }), HasSubstr(output_ + ": exists"));
  EXPECT_EQ(Values("pooled_fc.b_0").size(), 4u);
}

}  // namespace
}  // namespace skiff::models
