#include "tools/skiff/convert.h"

#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/base/str_cat.h"
#include "framework/io/inference_model.h"
#include "framework/onnx/export.h"
#include "framework/onnx/import.h"
#include "framework/tensor/scope.h"

DEFINE_string(source, "", "the model to convert");
DEFINE_string(from, "", "the format of the model: onnx");
DEFINE_string(to, "", "the format to write: onnx");
DEFINE_int32(opset, skiff::OnnxExportOptions().opset, "the opset of an ONNX file to write");
DEFINE_bool(widen_half, false, "make float32 of an ONNX file's float16 and bfloat16");
DEFINE_string(feed_dims, "",
              "dims of an ONNX file's inputs, for a program of these dims alone: "
              "image=1,3,224,224;length=1");
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

void Import() {
  RefuseFlags({"opset"}, "a model is read");
  Scope scope;
  const InferenceModel model =
      ImportOnnx(FLAGS_source, &scope, {.widen_half = FLAGS_widen_half, .feed_dims = FeedDims()});
  SaveInferenceModel(FLAGS_output, model.feed_names, model.fetch_names, *model.program, scope,
                     {.files = {.params_filename = kCombinedParamsFile}});
}

void Export() {
  RefuseFlags({"widen_half", "feed_dims"}, "a model is written");
  Scope scope;
  const InferenceModel model = LoadInferenceModel(FLAGS_source, &scope);
  ExportOnnx(FLAGS_output, model, scope, {.opset = FLAGS_opset});
}

int Run() {
  SKIFF_ENFORCE(!FLAGS_output.empty(), kInvalidArgument, "--output is missing");
  SKIFF_ENFORCE(FLAGS_from.empty() != FLAGS_to.empty(), kInvalidArgument, "--from=\"", FLAGS_from,
                "\" and --to=\"", FLAGS_to, "\", expected one of them");
  const std::string& format = FLAGS_from.empty() ? FLAGS_to : FLAGS_from;
  SKIFF_ENFORCE(format == kOnnx, kInvalidArgument, "there is no format \"", format,
                "\", expected onnx");
  FLAGS_from.empty() ? Export() : Import();
  std::printf("wrote %s\n", FLAGS_output.c_str());
  return 0;
}

}  // namespace

Subcommand ConvertSubcommand() {
  return {.name = "convert",
          .summary = "models of ONNX as saved models, and saved models as models of ONNX",
          .command = {.usage = "skiff convert FILE --from=onnx --output=DIR [--widen_half]\n"
                               "                   [--feed_dims=x=1,3,224,224]\n"
                               "       skiff convert DIR --to=onnx --output=FILE [--opset=N]",
                      .summary = "Reads a .onnx file and saves it as a directory that "
                                 "LoadInferenceModel, tools/run_program and Python\nload; or "
                                 "writes such a directory as a .onnx file. Lists all parts that "
                                 "have no form in the other format.",
                      .run = Run,
                      .flags = {"from", "to", "output", "opset", "widen_half", "feed_dims"},
                      .operand = "source"}};
}

}  // namespace skiff
