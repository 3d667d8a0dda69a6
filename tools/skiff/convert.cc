#include "tools/skiff/convert.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/base/str_cat.h"
#include "framework/io/inference_model.h"
#include "framework/io/name_rules.h"
#include "framework/ir/program.h"
#include "framework/onnx/export.h"
#include "framework/onnx/import.h"
#include "framework/tensor/scope.h"
#include "models/common/pretrained.h"
#include "models/ernie/pretrained.h"
#include "models/resnet/pretrained.h"

DEFINE_string(source, "", "the model to convert");
DEFINE_string(from, "",
              "the format of the model: onnx; or the library and network of weights: hf-bert, "
              "hf-ernie, hf-resnet, torchvision (a ResNet), timm (a ResNet), paddle (an inference "
              "model: a ResNet if it has convolutions, else an ERNIE)");
DEFINE_string(to, "", "the format to write: onnx");
DEFINE_int32(opset, skiff::OnnxExportOptions().opset, "the opset of an ONNX file to write");
DEFINE_bool(widen_half, false, "make float32 of an ONNX file's float16 and bfloat16");
DEFINE_string(feed_dims, "",
              "dims of an ONNX file's inputs, for a program of these dims alone: "
              "image=1,3,224,224;length=1");
DEFINE_bool(allow_partial, false,
            "of weights: parameters may lack, and tensors may be left over; the report lists both");
DEFINE_string(
    rename, "",
    "of weights: other names for the source's, before its rules: REGEX=TO;REGEX=TO, where "
    "REGEX matches a whole name and TO has $1 for its first group");
DEFINE_string(vocabulary, "",
              "of BERT and ERNIE: the file of tokens. Empty: vocab.txt, vocabulary.txt or "
              "tokenizer.json beside the weights");
DEFINE_int64(length, 0,
             "of BERT and ERNIE: the length of the sequences that the saved program takes. 0: 128");
DEFINE_int64(extent, 224,
             "of ResNets: the height and width of the images that the saved program takes");
DECLARE_string(output);

namespace skiff {
namespace {

constexpr const char* kOnnx = "onnx";

// Reads NAME=DIM,DIM;NAME=…
std::map<std::string, std::vector<int64_t>> FeedDims() {
  std::map<std::string, std::vector<int64_t>> feeds;
  std::istringstream texts(FLAGS_feed_dims);
  for (std::string text; std::getline(texts, text, ';');) {
    const size_t equals = text.find('=');
    SKIFF_ENFORCE(equals != std::string::npos, kInvalidArgument, "--feed_dims: found \"", text,
                  "\", expected NAME=DIM,DIM,…");
    std::vector<int64_t>& dims = feeds[text.substr(0, equals)];
    std::istringstream numbers(text.substr(equals + 1));
    for (std::string number; std::getline(numbers, number, ',');) {
      const auto dim = ParseNumber<int64_t>(number);
      SKIFF_ENFORCE(dim && *dim >= 0, kInvalidArgument, "--feed_dims: found \"", number, "\" in \"",
                    text, "\", expected a dim");
      dims.push_back(*dim);
    }
  }
  return feeds;
}

// Throws an Error for flags of other formats than `kept`'s.
void RefuseOthers(const std::vector<std::string>& kept) {
  std::vector<std::string> others;
  for (const char* flag : {"opset", "widen_half", "feed_dims", "allow_partial", "rename",
                           "vocabulary", "length", "extent"}) {
    if (std::ranges::count(kept, flag) == 0) others.emplace_back(flag);
  }
  RefuseFlags(others, StrCat("the format is ", FLAGS_from.empty() ? FLAGS_to : FLAGS_from));
}

void Import() {
  RefuseOthers({"widen_half", "feed_dims"});
  Scope scope;
  const InferenceModel model =
      ImportOnnx(FLAGS_source, &scope, {.widen_half = FLAGS_widen_half, .feed_dims = FeedDims()});
  SaveInferenceModel(FLAGS_output, model.feed_names, model.fetch_names, *model.program, scope,
                     {.files = {.params_filename = kCombinedParamsFile}});
}

void Export() {
  RefuseOthers({"opset"});
  Scope scope;
  const InferenceModel model = LoadInferenceModel(FLAGS_source, &scope);
  ExportOnnx(FLAGS_output, model, scope, {.opset = FLAGS_opset});
}

models::Conversion ConversionFromFlags() {
  return {.source = FLAGS_source,
          .output = FLAGS_output,
          .allow_partial = FLAGS_allow_partial,
          .rename = ParseNameRules(FLAGS_rename)};
}

void ImportErnie(models::ErnieSource from) {
  RefuseOthers({"allow_partial", "rename", "vocabulary", "length"});
  std::printf(
      "%s",
      models::ConvertErnie({ConversionFromFlags(), from, FLAGS_vocabulary, FLAGS_length}).c_str());
}

void ImportResNet(models::ResNetSource from) {
  RefuseOthers({"allow_partial", "rename", "extent"});
  std::printf("%s", models::ConvertResNet({ConversionFromFlags(), from, FLAGS_extent}).c_str());
}

void ImportPaddle() {
  Scope scope;
  const InferenceModel model =
      LoadInferenceModel(models::FindPaddleModel(FLAGS_source).folder, &scope);
  const bool has_convolutions = std::ranges::any_of(
      model.program->root()->ops(), [](const auto& op) { return op->type == "conv2d"; });
  has_convolutions ? ImportResNet(models::ResNetSource::kPaddle)
                   : ImportErnie(models::ErnieSource::kPaddle);
}

// What reads each format.
const std::map<std::string, std::function<void()>>& Importers() {
  using models::ErnieSource;
  using models::ResNetSource;
  static const auto& importers = *new std::map<std::string, std::function<void()>>{
      {kOnnx, Import},
      {"hf-bert", [] { ImportErnie(ErnieSource::kHuggingFaceBert); }},
      {"hf-ernie", [] { ImportErnie(ErnieSource::kHuggingFaceErnie); }},
      {"hf-resnet", [] { ImportResNet(ResNetSource::kHuggingFace); }},
      {"paddle", ImportPaddle},
      {"timm", [] { ImportResNet(ResNetSource::kTimm); }},
      {"torchvision", [] { ImportResNet(ResNetSource::kTorchvision); }}};
  return importers;
}

void ImportFrom(const std::string& format) {
  const auto importer = Importers().find(format);
  std::vector<std::string> names;
  for (const auto& [name, function] : Importers()) names.push_back(name);
  SKIFF_ENFORCE(importer != Importers().end(), kInvalidArgument, "there is no format \"", format,
                "\" to read, expected one of ", Join(names, ", "));
  importer->second();
}

void ExportTo(const std::string& format) {
  SKIFF_ENFORCE(format == kOnnx, kInvalidArgument, "there is no format \"", format,
                "\" to write, expected onnx");
  Export();
}

int Run() {
  SKIFF_ENFORCE(!FLAGS_output.empty(), kInvalidArgument, "--output is missing");
  SKIFF_ENFORCE(FLAGS_from.empty() != FLAGS_to.empty(), kInvalidArgument, "--from=\"", FLAGS_from,
                "\" and --to=\"", FLAGS_to, "\", expected one of them");
  FLAGS_from.empty() ? ExportTo(FLAGS_to) : ImportFrom(FLAGS_from);
  std::printf("wrote %s\n", FLAGS_output.c_str());
  return 0;
}

}  // namespace

Subcommand ConvertSubcommand() {
  return {.name = "convert",
          .summary =
              "models of ONNX and pretrained weights as saved models, saved models as "
              "models of ONNX",
          .command = {.usage = "skiff convert FILE --from=onnx --output=DIR [--widen_half]\n"
                               "                   [--feed_dims=x=1,3,224,224]\n"
                               "       skiff convert DIR --to=onnx --output=FILE [--opset=N]\n"
                               "       skiff convert DIR --from=hf-bert --output=DIR [flags]",
                      .summary = "Reads a .onnx file and saves it as a directory that "
                                 "LoadInferenceModel, tools/run_program and Python\nload; or "
                                 "writes such a directory as a .onnx file. Lists all parts that "
                                 "have no form in the other format.\nOr makes a model of "
                                 "models/ernie or models/resnet of pretrained weights, and says "
                                 "what it took.",
                      .run = Run,
                      .flags = {"from", "to", "output", "opset", "widen_half", "feed_dims",
                                "allow_partial", "rename", "vocabulary", "length", "extent"},
                      .operand = "source"}};
}

}  // namespace skiff
